/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Promela, run by tests/spin/run: from OPEN to a connection that both ends know, or that neither
 * has, by the rules of proto/krp_stream.h, for spin to go through all orders of events.
 *
 * An opener sends OPEN, again and again until it gives up (GIVE_UP), may be killed at any time, and
 * forgets. The other end's program accepts when it likes, or never. The network loses LOSSES
 * packets and doubles TWINS. Neither end has anything to say once the connection is open: an idle
 * server is what half-open connections stay with. What counts: the opener never believes in a
 * connection that was not accepted; if the opener stays, both ends end up in it; if it goes, or
 * has given up, the other end comes to its end, too.
 *
 * FAULTS: NOASK NOEXPIRE NOANSWER
 * In this order: an end that has accepted does not ask, an offer has no clock, ACCEPT that comes
 * again is not answered.
 */
#define LOSSES 2
#define TWINS 1
#define ASKS 5 /* more than can be lost: silence after as many is that of a peer that is gone */
#define QUIET (empty(there) && empty(back))
#define BOTH (opener == LIVE && other == LIVE && confirmed)
#define NEITHER (opener == OVER && (other == OVER || other == NONE))
#define SETTLED (QUIET && (BOTH || NEITHER)) /* a run that stops elsewhere has failed */

mtype = { OPEN, ACCEPT, CREDIT, REFUSE };
mtype = { OPENING, OFFERED, LIVE, OVER, NONE };

chan there = [2] of { mtype };
chan back = [2] of { mtype };
mtype opener = OPENING, other = NONE;
byte losses = 0, twins = 0, asks = 0, opens = 0;
bool gone = false; /* the opener's program was killed, or it gave up */
bool accepted = false, confirmed = false;

inline say(to, what) {
	if
	:: nfull(to) -> to ! what
	:: full(to) -> skip
	fi
}

active proctype first() {
	mtype m;

	do
	:: atomic { opener == OPENING && opens < ASKS && QUIET -> opens++; say(there, OPEN) }
	/* KRP_MESSAGE_OPEN_MS are over, or the program is killed */
	:: atomic { opener == OPENING && opens == ASKS && QUIET -> opener = OVER; gone = true }
	:: atomic { !gone && opener == OPENING && opens > 0 -> opener = OVER; gone = true }
	:: atomic { back ? m ->
		if
		:: m == ACCEPT && opener == OPENING ->
			assert(accepted);
			opener = LIVE;
			say(there, CREDIT)
		:: m == ACCEPT && opener == LIVE ->
#ifndef NOANSWER
			say(there, CREDIT)
#else
			skip
#endif
		:: m == ACCEPT && opener == OVER -> say(there, REFUSE)
		:: m == REFUSE && opener == OPENING -> opener = OVER; gone = true
		:: else -> skip
		fi;
		m = 0
	   }
	:: SETTLED -> break
	od
}

active proctype second() {
	mtype m;
	bool shy; /* the program does not accept */

	if
	:: shy = true
	:: shy = false
	fi;
	do
	:: atomic { there ? m ->
		if
		:: m == OPEN && other == NONE -> other = OFFERED
		:: m == OPEN && other == LIVE && !confirmed -> asks = 0; say(back, ACCEPT)
		:: m == OPEN && other == OVER -> say(back, REFUSE)
		:: m == CREDIT && other == LIVE -> confirmed = true
		:: m == REFUSE && other == LIVE -> other = OVER
		:: else -> skip
		fi;
		m = 0
	   }
	:: atomic { other == OFFERED && !shy -> other = LIVE; accepted = true; say(back, ACCEPT) }
#ifndef NOEXPIRE
	:: atomic { other == OFFERED && gone && QUIET -> other = OVER }
#endif
#ifndef NOASK
	:: atomic { other == LIVE && !confirmed && asks < ASKS && QUIET -> asks++; say(back, ACCEPT) }
	:: atomic { other == LIVE && !confirmed && asks == ASKS && QUIET -> other = OVER }
#endif
	:: SETTLED -> break
	od
}

active proctype network() {
	mtype m;

	do
	:: atomic { losses < LOSSES && nempty(there) -> there ? m; losses++; m = 0 }
	:: atomic { losses < LOSSES && nempty(back) -> back ? m; losses++; m = 0 }
	:: atomic { twins < TWINS && len(there) == 1 -> there ? m; there ! m; there ! m; twins++; m = 0 }
	:: atomic { twins < TWINS && len(back) == 1 -> back ? m; back ! m; back ! m; twins++; m = 0 }
	:: SETTLED -> break
	od
}
