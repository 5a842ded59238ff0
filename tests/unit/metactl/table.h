/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A small command table and an error sink, in place of main.c of krcore-metactl.
 */
#ifndef TEST_METACTL_TABLE_H
#define TEST_METACTL_TABLE_H

extern char table_error[512]; /* the last message of mc_error() */

#endif
