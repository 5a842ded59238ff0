# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Compile for another machine with Debian's cross compiler and a sysroot, and run what was
# compiled under qemu-user. tests/machines/run gives CMAKE_C_COMPILER and
#   KRC_MACHINE_GNU      triplet, such as aarch64-linux-gnu
#   KRC_MACHINE_QEMU     emulator, such as qemu-aarch64
#   KRC_MACHINE_SYSROOT  folder with the machine's libraries and headers
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KRC_MACHINE_GNU KRC_MACHINE_QEMU
	KRC_MACHINE_SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR ${KRC_MACHINE_GNU})
set(CMAKE_SYSROOT ${KRC_MACHINE_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE ${KRC_MACHINE_GNU})
set(CMAKE_CROSSCOMPILING_EMULATOR ${KRC_MACHINE_QEMU} -L ${KRC_MACHINE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${KRC_MACHINE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
	${KRC_MACHINE_SYSROOT}/usr/lib/${KRC_MACHINE_GNU}/pkgconfig:${KRC_MACHINE_SYSROOT}/usr/share/pkgconfig)
