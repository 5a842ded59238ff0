/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: what busy-polling tells the meter of ./run bench cost, so that waiting can be told
 * from work. Nothing of it is compiled without KRC_METER=y. Marks are no-ops on any x86-64
 * processor; bench/meter.h has those of programs. For guests with one processor.
 */
#ifndef KRC_METER_H
#define KRC_METER_H

#include <linux/compiler.h>
#include <linux/types.h>

#ifdef KRC_METER

/* So many times longer may spin_us be: answers of an emulated card take long on a busy machine. */
#define KRC_METER_SPIN_TIMES 20

#define KRC_METER_TRY 3
#define KRC_METER_VAIN 4
#define KRC_METER_PAUSE 5
#define KRC_METER_RESUME 6

/**
 * krc_meter_mark() - Tell a meter that counts instructions where an operation begins or ends.
 * @op: KRC_METER_*, a constant.
 *
 * An instruction without effect: nopl 0x6b7200OP(%rax). Context: any.
 */
static __always_inline void krc_meter_mark(int op)
{
	asm volatile(".byte 0x0f, 0x1f, 0x80, %c0, 0x00, 0x72, 0x6b" : : "i"(op) : "memory");
}

extern unsigned long krc_meter_completions;

/**
 * krc_meter_took() - Completions were taken from a completion queue.
 * @nr: how many.
 *
 * Context: any.
 */
static inline void krc_meter_took(int nr)
{
	WRITE_ONCE(krc_meter_completions, READ_ONCE(krc_meter_completions) + nr);
}

/**
 * krc_meter_try() - What comes now may be in vain.
 *
 * Context: any.
 * Return: what krc_meter_vain() asks for.
 */
static inline unsigned long krc_meter_try(void)
{
	krc_meter_mark(KRC_METER_TRY);
	return READ_ONCE(krc_meter_completions);
}

/**
 * krc_meter_vain() - It was in vain, unless completions were taken meanwhile.
 * @completions: what krc_meter_try() returned.
 *
 * Context: any.
 */
static inline void krc_meter_vain(unsigned long completions)
{
	if (completions == READ_ONCE(krc_meter_completions))
		krc_meter_mark(KRC_METER_VAIN);
}

/**
 * krc_meter_settle() - Wait, uncounted, for module parameter settle_us: what was posted has
 * completed then, and the first poll finds all of it.
 *
 * Context: task; does not sleep.
 */
void krc_meter_settle(void);

#else

#define KRC_METER_SPIN_TIMES 1

static inline void krc_meter_took(int nr)
{
}

static inline unsigned long krc_meter_try(void)
{
	return 0;
}

static inline void krc_meter_vain(unsigned long completions)
{
}

static inline void krc_meter_settle(void)
{
}

#endif

#endif /* KRC_METER_H */
