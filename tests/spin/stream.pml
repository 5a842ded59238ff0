/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Promela, run by tests/spin/run: numbers, windows and replay of proto/krp_stream.h, one
 * direction of a connection, for spin to go through all orders of events.
 *
 * A sender hands in MESSAGES messages within a window of WINDOW; the network loses, doubles and
 * reorders at will; an initiator may be reset at any time, after which all that is not
 * acknowledged is sent again; the receiver's program reads when it likes; acknowledgements and
 * grants may be lost, and the sender asks. Each packet carries what krp_message.h says: its
 * number, or the acknowledgement and the grant. What counts: messages are delivered in order and
 * once, nothing is delivered that was not granted, what is acknowledged was delivered, and from
 * every state the run can come to its end (no invalid end state).
 *
 * FAULTS: JUMP REPEAT KEEP FORGET
 * In this order: a gap is jumped, a repetition is taken, credits are not returned, nothing is
 * sent again.
 */
#define MESSAGES 3
#define WINDOW 2
#define LOSSES 2
#define TWINS 1
#define RESETS 1
#define PROBES 8 /* more than can be lost: one more would be no use */
#define QUIET (data[0] + data[1] + data[2] == 0 && empty(credit) && used == delivered)

/* what is on its way, in no order: how many copies of each message, and the latest credit */
byte data[MESSAGES];
chan credit = [3] of { byte, byte }; /* ack, grant */

byte una = 0;     /* sender: first message that is not acknowledged */
byte sent = 0;    /* first one to be sent */
byte granted = WINDOW; /* messages that it may have sent in all */
byte expect = 0;  /* receiver: first message that has not come */
byte used = 0;    /* messages that its program has read */
byte told = WINDOW; /* what it has granted */
byte delivered = 0;
byte losses = 0, twins = 0, resets = 0, probes = 0;
bool asked = false; /* a PROBE is under way */
bool gap = false;

inline grant() {
	if
#ifndef KEEP
	:: told < used + WINDOW -> told = used + WINDOW
#endif
	:: else -> skip
	fi
}

/* Say what there is to say; what does not fit is lost, as anything may be. */
inline answer() {
	grant();
	if
	:: nfull(credit) -> credit ! expect, told
	:: full(credit) -> skip
	fi
}

inline deliver(number) {
	assert(number == delivered);
	assert(number < told);
	delivered++;
	expect = number + 1;
}

inline come(number) {
	data[number]--;
	if
	:: number == expect -> deliver(number)
#ifdef REPEAT
	:: number < expect -> deliver(number)
#else
	:: number < expect -> skip
#endif
#ifdef JUMP
	:: number > expect -> deliver(number)
#else
	:: number > expect -> gap = true
#endif
	fi
}

active proctype sender() {
	byte ack, max;

	do
	:: atomic { sent < MESSAGES && sent < granted && data[sent] < 2 ->
		data[sent]++;
		sent++
	   }
	:: atomic { credit ? ack, max ->
		assert(ack <= delivered);
		if
		:: ack > una -> una = ack
		:: else -> skip
		fi;
		if
		:: sent < una -> sent = una
		:: else -> skip
		fi;
		if
		:: max > granted -> granted = max
		:: else -> skip
		fi;
		asked = false;
		ack = 0; max = 0
	   }
	:: atomic { gap && una == sent -> gap = false } /* it has closed meanwhile */
#ifndef FORGET
	/* a gap is reported, or the initiator was reset: all from the first one again */
	:: atomic { gap && una < sent -> gap = false; sent = una }
#endif
	:: atomic { resets < RESETS && una < sent -> resets++; sent = una }
	/* nothing is heard, for long: all else has come to its end */
	:: atomic { una < MESSAGES && !asked && QUIET && probes < PROBES &&
		    (sent == MESSAGES || sent >= granted) && !gap ->
		asked = true;
		probes++
	   }
	:: una == MESSAGES -> break
	od;
end_sender:
	do
	:: credit ? ack, max
	od
}

active proctype receiver() {
	byte n;

end_receiver:
	do
	:: atomic { data[0] > 0 -> come(0); answer() }
	:: atomic { data[1] > 0 -> come(1); answer() }
	:: atomic { data[2] > 0 -> come(2); answer() }
	/* the program reads; a grant is told at once, and may be lost */
	:: atomic { used < delivered -> used++; answer() }
	/* PROBE: the sender has sent what has not come, and nothing of it is on its way */
	:: atomic { asked && empty(credit) ->
		if
		:: expect < sent -> gap = true
		:: else -> skip
		fi;
		answer()
	   }
	od;
	n = 0
}

#define LOSE(n) :: atomic { losses < LOSSES && data[n] > 0 -> data[n]--; losses++ }
#define TWIN(n) :: atomic { twins < TWINS && data[n] > 0 -> data[n]++; twins++ }

active proctype network() {
	byte ack, max;

end_network:
	do
	LOSE(0)
	LOSE(1)
	LOSE(2)
	TWIN(0)
	TWIN(1)
	TWIN(2)
	:: atomic { losses < LOSSES && nempty(credit) -> credit ? ack, max; ack = 0; max = 0; losses++ }
	/* a credit is overtaken by later ones */
	:: atomic { twins < TWINS && len(credit) > 1 ->
		credit ? ack, max;
		credit ! ack, max;
		ack = 0; max = 0;
		twins++
	   }
	od
}
