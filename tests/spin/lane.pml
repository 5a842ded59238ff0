/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Promela, run by tests/spin/run: the hand-shake of lanes by the rules of proto/krp_lane.h,
 * krp_lane_end.h and krp_lanes.h, for one index of two ports, for spin to go through all orders of
 * events.
 *
 * Port 0 has the smaller GID. Both may ask at any time, also at once; port 1 may begin another
 * generation, of which port 0 learns by REFUSE or from the table; a lane may fail at either end.
 * The network loses what it likes, delays, and doubles TWINS packets. A queue pair has a number
 * that no other one has: the number of its first packet is part of it here. HEARD, CLOSED and
 * cookies decide nothing of what is shown, and are left out.
 *
 * What counts: who posts reaches nobody, or the queue pair that is connected to its own, in the
 * generation that it believes in, by the same lane; a REQUEST makes one lane at most; and none ends
 * what the peer still has.
 *
 * FAULTS: NONAME NOSPENT NOFLOOR NOGENERATION NOREADY
 * In this order: READY of another lane is taken, ACCEPT does not say which REQUESTs are spent, late
 * REQUESTs are taken, another generation takes what is not for it, an accepter posts before READY
 * has come. That one of two REQUESTs counts, by GID, is for both to come to an end, which no fault
 * here shows.
 */
#define TWINS 1
#define FAILS 1
#define ASKS 2 /* of each port in each generation */
#define OTHER (1 - me)
#define HAS(rq, rl, al, no) \
	(l[me].st != NONE && l[me].by == rq && l[me].gen == rl && l[me].peer == al && l[me].nr == no)
/* of a REQUEST; its queue pair has that name, and the one that is taken for it one that is 8 more */
#define NAME(rq, rl, no) (4 * rq + 2 * rl + no - 3)
/* generation of the other port that a lane is of */
#define THEIRS ((l[me].by == me -> l[me].peer : l[me].gen))
/* the end that a post of this one reaches, if any */
#define REACHED (l[OTHER].st != NONE && l[OTHER].qp == l[me].to)

mtype = { REQUEST, ACCEPT, STALE, READY, CLOSE };
mtype = { NONE, ASKING, LISTENING, UP };

typedef End {
	mtype st;
	byte by; /* who has requested the lane */
	byte gen; /* in which generation */
	byte peer; /* for which generation of the accepter */
	byte nr; /* its number */
	byte qp; /* queue pair here */
	byte to; /* that it is connected to */
};

typedef Port {
	byte gen;
	byte record; /* generation of the other port, as far as it knows */
	byte number; /* last one given */
	byte seen; /* generation of the other port, of which @floor is */
	byte floor;
};

/* type, requester, its generation, the accepter's, number, queue pair, spent or other generation */
chan to[2] = [2] of { mtype, byte, byte, byte, byte, byte, byte };
End l[2];
Port p[2];
byte twins = 0, fails = 0;
bool made[8]; /* REQUESTs that were accepted */

inline say(what, wby, wgen, wpeer, wnr, wqp, wx) {
	if
	:: nfull(to[OTHER]) -> to[OTHER] ! what, wby, wgen, wpeer, wnr, wqp, wx
	:: full(to[OTHER]) -> skip /* lost */
	fi
}

inline forget() {
	l[me].st = NONE;
	l[me].by = 0;
	l[me].gen = 0;
	l[me].peer = 0;
	l[me].nr = 0;
	l[me].qp = 0;
	l[me].to = 0
}

inline note(rl, no) {
	if
	:: rl > p[me].seen -> p[me].seen = rl; p[me].floor = no
	:: rl == p[me].seen && no > p[me].floor -> p[me].floor = no
	:: else -> skip
	fi
}

inline say_accept() {
#ifdef NOSPENT
	say(ACCEPT, l[me].by, l[me].gen, l[me].peer, l[me].nr, l[me].qp, 0)
#else
	say(ACCEPT, l[me].by, l[me].gen, l[me].peer, l[me].nr, l[me].qp, p[me].number)
#endif
}

/* The other end of a lane. A REQUEST of its own that crosses it is given up, but not its queue pair. */
inline accept(rl, no, q) {
	assert(!made[NAME(OTHER, rl, no)]);
	made[NAME(OTHER, rl, no)] = true;
	note(rl, no);
	if
	:: l[me].st == NONE -> l[me].qp = 9 + NAME(OTHER, rl, no)
	:: else -> skip
	fi;
	l[me].by = OTHER;
	l[me].gen = rl;
	l[me].peer = p[me].gen;
	l[me].nr = no;
	l[me].to = q;
	say_accept();
#ifdef NOREADY
	l[me].st = UP
#else
	l[me].st = LISTENING
#endif
}

/* What is in the way of a REQUEST, which comes again: the peer has not got that any more. */
inline replace() {
	assert(!(REACHED && l[OTHER].to == l[me].qp && l[OTHER].st == UP));
	forget()
}

inline requested(rl, al, no, q) {
	if
	:: HAS(OTHER, rl, al, no) -> say_accept()
	:: else ->
		if
#ifndef NOGENERATION
		:: al != p[me].gen -> say(STALE, OTHER, rl, al, no, 0, p[me].gen)
#endif
		:: rl < p[me].seen -> skip
#ifndef NOFLOOR
		:: rl == p[me].seen && no <= p[me].floor -> skip
#endif
		:: else ->
			if
			:: l[me].st == NONE -> accept(rl, no, q)
			:: l[me].st != NONE && THEIRS > rl -> skip
			:: l[me].st == ASKING && THEIRS < rl -> forget()
			:: l[me].st == ASKING && THEIRS == rl && me == 0 -> skip
			:: l[me].st == ASKING && THEIRS == rl && me == 1 -> accept(rl, no, q)
			:: (l[me].st == LISTENING || l[me].st == UP) && THEIRS <= rl -> replace()
			fi
		fi
	fi
}

inline answered(rq, rl, al, no, q, x) {
	if
	:: l[me].st == ASKING && HAS(rq, rl, al, no) ->
		l[me].to = q;
		l[me].st = LISTENING;
		note(al, x);
		say(READY, rq, rl, al, no, 0, 0)
	:: else -> skip
	fi
}

inline ready(rq, rl, al, no) {
	if
#ifdef NONAME
	:: l[me].st == LISTENING ->
#else
	:: HAS(rq, rl, al, no) && l[me].st == LISTENING ->
#endif
		l[me].st = UP;
		say(READY, rq, rl, al, no, 0, 0)
	:: HAS(rq, rl, al, no) -> skip
	:: !HAS(rq, rl, al, no) && (rq == me -> rl : al) == p[me].gen ->
		say(CLOSE, rq, rl, al, no, 0, 0)
	:: else -> skip
	fi
}

inline take(t, rq, rl, al, no, q, x) {
	if
	:: t == REQUEST -> requested(rl, al, no, q)
	:: t == ACCEPT -> answered(rq, rl, al, no, q, x)
	:: t == READY -> ready(rq, rl, al, no)
	:: t == CLOSE && HAS(rq, rl, al, no) -> forget()
	:: t == STALE && l[me].st == ASKING && HAS(rq, rl, al, no) -> p[me].record = x; forget()
	:: else -> skip
	fi
}

proctype port(byte me) {
	mtype t;
	byte rq, rl, al, no, q, x;

end:	do
	:: atomic { l[me].st == NONE && p[me].number < ASKS ->
		p[me].number++;
		l[me].st = ASKING;
		l[me].by = me;
		l[me].gen = p[me].gen;
		l[me].peer = p[me].record;
		l[me].nr = p[me].number;
		l[me].qp = 1 + NAME(me, p[me].gen, p[me].number);
		say(REQUEST, me, l[me].gen, l[me].peer, l[me].nr, l[me].qp, 0)
	   }
	/* what is not answered is said again, or given up */
	:: atomic { l[me].st == ASKING && empty(to[0]) && empty(to[1]) ->
		if
		:: say(REQUEST, me, l[me].gen, l[me].peer, l[me].nr, l[me].qp, 0)
		:: say(CLOSE, me, l[me].gen, l[me].peer, l[me].nr, 0, 0); forget()
		fi
	   }
	:: atomic { l[me].st == LISTENING && empty(to[0]) && empty(to[1]) ->
		say(READY, l[me].by, l[me].gen, l[me].peer, l[me].nr, 0, 0)
	   }
	:: atomic { (l[me].st == LISTENING || l[me].st == UP) && fails < FAILS ->
		fails++;
		say(CLOSE, l[me].by, l[me].gen, l[me].peer, l[me].nr, 0, 0);
		forget()
	   }
	/* a request: it is carried out by whom it reaches, or by nobody */
	:: atomic { l[me].st == UP && REACHED ->
		assert(l[OTHER].st == LISTENING || l[OTHER].st == UP);
		assert(l[OTHER].to == l[me].qp);
		assert(l[OTHER].by == l[me].by && l[OTHER].gen == l[me].gen &&
		       l[OTHER].peer == l[me].peer && l[OTHER].nr == l[me].nr);
		assert((l[me].by == me -> l[me].peer : l[me].gen) == p[OTHER].gen)
	   }
	:: atomic { me == 0 && p[0].record < p[1].gen -> p[0].record = p[1].gen }
	:: atomic { me == 1 && p[1].gen == 1 ->
		p[1].gen = 2;
		p[1].number = 0;
		p[1].seen = 0;
		p[1].floor = 0;
		forget()
	   }
	:: atomic { to[me] ? t, rq, rl, al, no, q, x ->
		take(t, rq, rl, al, no, q, x);
		t = 0; rq = 0; rl = 0; al = 0; no = 0; q = 0; x = 0
	   }
	od
}

/* Of the packets to a port. */
proctype network(byte me) {
	mtype t;
	byte rq, rl, al, no, q, x;

end:	do
	:: atomic { to[me] ? t, rq, rl, al, no, q, x ->
		if
		:: skip /* lost */
		:: twins < TWINS && empty(to[me]) ->
			twins++;
			to[me] ! t, rq, rl, al, no, q, x;
			to[me] ! t, rq, rl, al, no, q, x
		:: nempty(to[me]) -> to[me] ! t, rq, rl, al, no, q, x /* overtaken */
		fi;
		t = 0; rq = 0; rl = 0; al = 0; no = 0; q = 0; x = 0
	   }
	od
}

init {
	atomic {
		l[0].st = NONE;
		l[1].st = NONE;
		p[0].gen = 1;
		p[0].record = 1;
		p[1].gen = 1;
		p[1].record = 1;
		run port(0);
		run port(1);
		run network(0);
		run network(1)
	}
}
