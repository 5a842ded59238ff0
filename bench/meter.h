/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Marks for the meter of ./run bench cost (cost/meter.c): no-ops on any processor, seen by a
 * plugin of the emulator. Elsewhere than on x86-64 there are none.
 *
 *	BN_MARK(BEGIN) ... BN_MARK(END)		one operation; a record of what it took
 *	BN_MARK(TRY) poll BN_MARK(VAIN)		what was done since TRY found nothing: waiting
 *	BN_MARK(PAUSE) ... BN_MARK(RESUME)	not part of the operation
 */
#ifndef BN_METER_H
#define BN_METER_H

#define BN_METER_BEGIN 1
#define BN_METER_END 2
#define BN_METER_TRY 3
#define BN_METER_VAIN 4
#define BN_METER_PAUSE 5
#define BN_METER_RESUME 6

/**
 * BN_MARK() - Mark this place: nopl 0x6b7200OP(%rax), as kmod/base/meter.h has it.
 * @op: BEGIN, END, TRY, VAIN, PAUSE or RESUME.
 */
#ifdef __x86_64__
#define BN_MARK(op) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, %c0, 0x00, 0x72, 0x6b" \
			 : \
			 : "i"(BN_METER_##op) \
			 : "memory")
#else
#define BN_MARK(op) ((void)0)
#endif

#endif /* BN_METER_H */
