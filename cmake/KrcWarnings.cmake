# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Language level, warnings, hardening and sanitizers for every target.
include(CheckCCompilerFlag)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_compile_definitions(_GNU_SOURCE KRC_VERSION="${PROJECT_VERSION}")

foreach(flag -Wall -Wextra -Wshadow -Wformat=2 -Wmissing-prototypes -Wstrict-prototypes
	-Wwrite-strings -Wcast-function-type -Wvla -Wundef -Wpointer-arith
	-fstack-protector-strong)
	string(MAKE_C_IDENTIFIER "KRC_HAVE${flag}" var)
	check_c_compiler_flag(${flag} ${var})
	if(${var})
		add_compile_options(${flag})
	endif()
endforeach()
if(KRC_WERROR)
	add_compile_options(-Werror)
endif()

if(KRC_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
		message(FATAL_ERROR "KRC_FUZZ needs clang: -DCMAKE_C_COMPILER=clang")
	endif()
	add_compile_options(-fsanitize=fuzzer-no-link) # coverage everywhere
	set(KRC_SANITIZE "address,undefined")
endif()

if(KRC_SANITIZE)
	add_compile_options(-fsanitize=${KRC_SANITIZE} -fno-omit-frame-pointer
		-fno-sanitize-recover=all)
	add_link_options(-fsanitize=${KRC_SANITIZE})
	# ThreadSanitizer does not know fences. The code that has them orders what a NIC reads,
	# which is no thread of the program, and is not what such a build is for.
	if(KRC_SANITIZE MATCHES thread)
		add_compile_options(-Wno-tsan)
	endif()
else()
	add_compile_options($<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
	add_link_options(-Wl,-z,relro,-z,now)
endif()
