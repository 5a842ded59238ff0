# SPDX-License-Identifier: GPL-2.0-only OR MIT
# One line a test program: label, name, sources, libraries.

# krc_add_test(NAME name LABEL unit|stress|fuzz [THREADS] SOURCES ... [LIBS ...] [ARGS ...]
#	[TIMEOUT s])
# THREADS: it has some, so it also runs with ThreadSanitizer
# The target tests_LABEL is all programs of that LABEL.
function(krc_add_test)
	cmake_parse_arguments(T "THREADS" "NAME;LABEL;TIMEOUT" "SOURCES;LIBS;ARGS" ${ARGN})
	add_executable(${T_NAME} ${T_SOURCES})
	target_link_libraries(${T_NAME} PRIVATE ${T_LIBS} Threads::Threads)
	if(T_LABEL STREQUAL "unit" AND CMOCKA_FOUND)
		target_link_libraries(${T_NAME} PRIVATE PkgConfig::CMOCKA)
	endif()
	if(NOT T_TIMEOUT)
		set(T_TIMEOUT 600)
	endif()
	if(CMAKE_CROSSCOMPILING)
		math(EXPR T_TIMEOUT "10 * ${T_TIMEOUT}") # each instruction is emulated
	endif()
	set(labels ${T_LABEL})
	if(T_THREADS)
		list(APPEND labels threads)
	endif()
	if(NOT TARGET tests_${T_LABEL})
		add_custom_target(tests_${T_LABEL})
	endif()
	add_dependencies(tests_${T_LABEL} ${T_NAME})
	add_test(NAME ${T_NAME} COMMAND ${T_NAME} ${T_ARGS})
	set_tests_properties(${T_NAME} PROPERTIES LABELS "${labels}" TIMEOUT ${T_TIMEOUT})
	# 77 means "skipped" to a test of ours, but "found a crash" to libFuzzer
	if(NOT T_LABEL STREQUAL "fuzz")
		set_tests_properties(${T_NAME} PROPERTIES SKIP_RETURN_CODE 77)
	endif()
endfunction()
