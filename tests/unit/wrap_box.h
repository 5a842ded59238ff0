/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For handoff_box_test, which is linked with --wrap: what it defines, and what is behind it. */
#ifndef KRC_TESTS_UNIT_WRAP_BOX_H
#define KRC_TESTS_UNIT_WRAP_BOX_H

#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);
uid_t __wrap_geteuid(void);
int __wrap_statfs(const char *path, struct statfs *ret_fs);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);
int __real_rmdir(const char *path);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __real_write(int fd, const void *data, size_t bytes);
int __wrap_prctl(int option, ...);
int __real_prctl(int option, ...);

#endif
