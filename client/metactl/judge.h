/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How the checks of `doctor` report their findings: mc_about() begins a finding,
 * mc_cause() and mc_remedy() fill it, mc_say() ends it. checks.c has the checks of
 * what a look-up needs, checks_system.c those of the machine around it. Threads: one.
 */
#ifndef MC_JUDGE_H
#define MC_JUDGE_H

#include "client/metactl/checks.h"

/**
 * struct mc_judge - A run of the checks.
 * @probe: what was found.
 * @fn: called for each finding.
 * @arg: its first argument.
 * @check: name of the check that runs.
 * @failed: findings that are MC_CHECK_FAIL so far.
 * @finding: the finding being filled.
 */
struct mc_judge {
	const struct mc_probe *probe;
	mc_finding_fn *fn;
	void *arg;
	const char *check;
	unsigned int failed;
	struct mc_finding finding;
};

/** mc_about() - Begin a finding. @j: judgement. @verdict: how bad. @format: its subject. */
void mc_about(struct mc_judge *j, enum mc_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** mc_cause() - What was found. @j: judgement. @format: text. */
void mc_cause(struct mc_judge *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** mc_remedy() - What to do; not with MC_CHECK_OK. @j: judgement. @format: text. */
void mc_remedy(struct mc_judge *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** mc_say() - End a finding and report it. @j: judgement. */
void mc_say(struct mc_judge *j);

/** mc_check_driver() - Does krcore.ko fit the driver of the NIC that runs? @j: judgement. */
void mc_check_driver(struct mc_judge *j);

/** mc_check_signature() - Will the kernel accept krcore.ko as it is? @j: judgement. */
void mc_check_signature(struct mc_judge *j);

/** mc_check_fabric() - Are krcore's packets in a lossless class, if there is one? @j: judgement. */
void mc_check_fabric(struct mc_judge *j);

/** mc_check_records() - Has every server the records of this machine? @j: judgement. */
void mc_check_records(struct mc_judge *j);

#endif /* MC_JUDGE_H */
