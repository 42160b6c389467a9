/*
 * Unique keys: enqueues of one key, replacements, retries, the cleaner, and runs.
 * README.md has the promises, how to read a model, and the parts that are left out.
 *
 * Each of ENQUEUERS processes enqueues one task with the same key, with ConflictReplace. A client
 * retries tasks that have ended. Task 0 has the key at the start.
 */

#ifndef ENQUEUERS
#define ENQUEUERS 3
#endif
#ifndef RETRIES
#define RETRIES 1
#endif

#define TASKS (ENQUEUERS + 1)
#define NONE 255

/* --- Tables -------------------------------------------------------------------------------- */

mtype = { absent, waiting, running, ended };

typedef Task {
	mtype state = absent;
	byte fence;
	byte args;      /* the enqueuer that has given the arguments */
	byte run_args;  /* the arguments of the run under way */
}
Task task[TASKS];

byte holder = NONE; /* uniques: the task that took the key last, or NONE where there is no row */
byte token;         /* a number that whoever writes the row makes, and that is never used again */
byte made;          /* not in the table: the tokens that have been made */

#define HOLDS (holder != NONE && (task[holder].state == waiting || task[holder].state == running))

inline take(t) {
	holder = t;
#ifdef VERSIONS_FOR_TOKENS
	token++
#else
	made++; token = made
#endif
}

/* Promise 10: two tasks never hold one unique key. */
inline one_holds() {
	d_step {
		n = 0;
		for (i : 0 .. TASKS - 1) { if :: task[i].state == waiting || task[i].state == running -> n++ :: else fi }
		assert(n <= 1);
		n = 0; i = 0
	}
}

hidden byte i, n;

proctype Enqueuer(byte me) {
	byte seen, was, fence;
	/* uniqueEnqueue.holders: reads without locks */
	atomic { seen = token; was = holder; if :: HOLDS -> fence = task[holder].fence :: else fence = NONE fi };
	if
	:: fence == NONE ->
		/* takeKeys, with the tokens that were read. A transaction inserts the task, and withdraws
		 * it where the key is taken. */
		atomic {
			if
#ifdef KEYS_WITHOUT_TOKENS
			:: true -> task[me].state = waiting; task[me].args = me; take(me); goto stored
#else
			:: token == seen && (holder == NONE) == (was == NONE) -> task[me].state = waiting; task[me].args = me; take(me); one_holds(); goto stored
#endif
			:: else
			fi
		}
	:: else -> goto replaces
	fi;
	/* lockedHolders: once more, and the rows are locked to the commit */
	atomic {
		if
		:: !HOLDS -> task[me].state = waiting; task[me].args = me; take(me); one_holds(); goto stored
		:: else -> was = holder; fence = task[holder].fence
		fi
	}
replaces: /* ReplaceWaiting: compares the fence */
	atomic {
		if
		:: task[was].state == waiting && task[was].fence == fence -> task[was].args = me; task[was].fence++
#ifdef REPLACES_WHAT_RUNS
		:: task[was].state == running -> task[was].args = me
#endif
		:: else /* the task is said to exist */
		fi
	}
stored:	skip;
#ifdef KEYS_WITHOUT_TOKENS
	one_holds()
#endif
}

/* A run of any task that waits */
active proctype Worker() {
	byte t;
end:	do
	:: atomic {
		if :: task[0].state == waiting -> t = 0 :: task[1].state == waiting -> t = 1 :: task[2].state == waiting -> t = 2 :: task[3].state == waiting -> t = 3 fi;
		task[t].state = running; task[t].fence++; task[t].run_args = task[t].args
	}
	atomic {
		/* Promise 10: a run has the arguments that replaced others. */
		assert(task[t].run_args == task[t].args);
		task[t].state = ended; t = 0
	}
	od
}

/* Retry takes the key back: Store.takeBack */
active proctype Client() {
	byte t, seen, retries;
end:	do
	:: atomic {
		retries < RETRIES ->
		if :: task[0].state == ended -> t = 0 :: task[1].state == ended -> t = 1 :: task[2].state == ended -> t = 2 fi;
		retries++; seen = token
	}
	atomic {
		if
		:: !HOLDS && token == seen -> task[t].state = waiting; task[t].fence++; take(t); one_holds()
		:: else /* refused */
		fi;
		t = 0; seen = 0
	}
	od
}

/* DropKeys: reads a page of keys, and deletes the keys without a holder, by their tokens */
active proctype Cleaner() {
	byte seen;
end:	do
	:: atomic { holder != NONE && !HOLDS -> seen = token }
	atomic {
		if
#ifndef KEYS_ARE_DROPPED_WITHOUT_TOKENS
		:: token == seen && holder != NONE -> holder = NONE; token = 0
#else
		:: holder != NONE -> holder = NONE; token = 0
#endif
		:: else
		fi;
		seen = 0
	}
	od
}

init {
	atomic {
		task[0].state = waiting; take(0);
		run Enqueuer(1); run Enqueuer(2); run Enqueuer(3)
	}
}
