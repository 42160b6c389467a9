/*
 * Limits: claims that take permits, settles, and changes by a client. lease.pml has extensions.
 * README.md has the promises, how to read a model, and the parts that are left out.
 *
 * Tasks 0 and 1 have the key a and run in order. Task 2 has no key. All three are under
 * AtMost(1) of their kind. A client cancels, retries or replaces task 0.
 */

#ifndef HALTS
#define HALTS 0      /* 1 for InOrder().HaltOnDeath() */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef ACTIONS
#define ACTIONS 1    /* of the client */
#endif
#ifndef FENCES
#define FENCES 2     /* the claims of a task, which bounds the model */
#endif

#define WORKERS 2
#define TASKS 3
#define LEASE 1      /* ticks */
#define NONE 3

/* --- Tables. A time is the number of ticks until then, and 0 in the past. ------------------ */

mtype = { open, snoozed, done, dead, cancelled };

typedef Task {
	mtype state = open;
	byte fence;
	byte owner;  /* claimed_by: the worker + 1 */
	bit left;    /* updated_at: the end of the lease, or when the task falls due */
	bool tried;  /* attempts > 0 */
	bit key;     /* 0 is a, 1 is b */
	bool place;  /* not in the table: the task owns its sequence */
}
Task task[TASKS];

/* Permit 0 is of the kind's limit, 1 of the sequence of a, and 2 of the sequence of b. */
#define PERMITS 3
#define ORDER(t) (1 + task[t].key)

typedef Permit {
	byte task = NONE; /* the claim with the permit: its task and fence */
	byte fence;
	bit kept;         /* taken_until */
	bool read[WORKERS]; /* the token is the one that the worker has read */
}
Permit permit[PERMITS];

#define LAST(p)  (permit[p].task != NONE && task[permit[p].task].fence == permit[p].fence)
#define LIVE(p)  (LAST(p) && task[permit[p].task].owner > 0 && task[permit[p].task].left > 0)
#define FREE(p)  (!LIVE(p) && !permit[p].kept)
#define STATE(p) task[permit[p].task].state
#define HALTED(p) (HALTS && LAST(p) && STATE(p) == dead)
/* The task that holds its place in the sequence while it waits */
#define HOLDS(p) (LAST(p) && (STATE(p) == snoozed || STATE(p) == open && (HALTS || task[permit[p].task].tried)))

/* --- What a worker knows ------------------------------------------------------------------- */

typedef Run {
	bool on;    /* the handler runs */
	byte task = NONE;
	byte fence;
	bit until;  /* the end of the lease by the worker's clock */
	bit sent;   /* the end of the lease that the statement under way asks for */
}
Run runs[WORKERS];

hidden byte i;

#define COUNTS(w) (runs[w].on && runs[w].until > 0)

/* Promise 9: no more tasks run than a limit allows. */
#define LIMIT_HOLDS assert(COUNTS(0) + COUNTS(1) <= 1)

/* A permit of an earlier claim is free for good. This makes states equal that differ in nothing else. */
inline tidy() {
	for (i : 0 .. PERMITS - 1) {
		if
		:: permit[i].task != NONE && !LAST(i) && !permit[i].kept -> permit[i].task = NONE; permit[i].fence = 0
		:: else
		fi
	}
}

inline written(p) { permit[p].read[0] = false; permit[p].read[1] = false }

inline forget(w) {
	runs[w].on = false; runs[w].task = NONE; runs[w].fence = 0; runs[w].until = 0; runs[w].sent = 0;
	for (i : 0 .. PERMITS - 1) { permit[i].read[w] = false }
	t = NONE; fence = 0; lapsed = false; made = false
}

#define DUE(t) ((task[t].state == open || task[t].state == snoozed) && task[t].left == 0 && task[t].fence < FENCES)
/* statements.FindDue: the sequence of t is free, and t has its place or is its first task */
#define MAY(t) (DUE(t) && FREE(ORDER(t)) && !HALTED(ORDER(t)) && (!HOLDS(ORDER(t)) || permit[ORDER(t)].task == t))

bool crashes; /* worker 0 dies; both workers are alike */

proctype Worker(bit w) {
	byte t = NONE, fence;
	bool lapsed; /* the task has a claim whose lease has ended */
	bool made;
end:	do
	:: atomic {
		/* store.ClaimLimited. The worker counts the lease from here. Its statements Permits and
		 * FindDue lock nothing. */
		FREE(0) && (DUE(2) || MAY(0) || MAY(1)) ->
		runs[w].sent = LEASE;
		for (i : 0 .. PERMITS - 1) {
			permit[i].read[w] = true;
			/* Promise 9: what never ran, and what has ended, owns no sequence. */
			assert(i == 0 || !FREE(i) || HALTED(i) || !HOLDS(i) || task[permit[i].task].place)
		}
		if
		:: DUE(2) -> t = 2
		:: MAY(0) -> t = 0
		:: MAY(1) && (!MAY(0) || task[0].key != task[1].key) -> t = 1
		fi;
		fence = task[t].fence; lapsed = task[t].owner > 0
	}
	/* TakePermits locks the permits that are as they were read, and Take the task. Rows stay
	 * locked to the commit, so that these three statements are one step. */
	atomic {
		made = (permit[0].read[w] && (t == 2 || permit[ORDER(t)].read[w]) && task[t].fence == fence
#ifndef LAPSED_CLAIMS_BY_FENCE
			&& (!lapsed || task[t].owner > 0 && task[t].left == 0)
#endif
			);
#ifdef VAIN_CLAIMS_OWN
		if /* a claim that takes one permit of two leaves it behind */
		:: !made && t != 2 && permit[ORDER(t)].read[w] -> permit[ORDER(t)].task = t; permit[ORDER(t)].fence = task[t].fence; written(ORDER(t))
		:: else
		fi;
#endif
		if
		:: made ->
			/* Promise 9: the tasks of a sequence run one after the other, in their order. */
			assert(t == 2 || task[1 - t].key != task[t].key || !task[1 - t].place);
			assert(t != 1 || task[0].fence > 0);
			/* Promise 11: a task that is cancelled stays cancelled. */
			assert(task[t].state == open || task[t].state == snoozed);
			task[t].fence++; task[t].owner = w + 1; task[t].tried = true; task[t].state = open;
			task[t].place = (t != 2);
			/* The statement began after it was sent, and its commit comes later. */
			if :: task[t].left = LEASE :: task[t].left = runs[w].sent fi;
			permit[0].task = t; permit[0].fence = task[t].fence; permit[0].kept = 0; written(0);
			if
			:: t != 2 -> permit[ORDER(t)].task = t; permit[ORDER(t)].fence = task[t].fence; permit[ORDER(t)].kept = 0; written(ORDER(t))
			:: else
			fi;
			tidy()
		:: else
		fi
	}
	atomic {
		if
		:: made && runs[w].sent > 0 ->
			fence++; i = t; made = false;
			runs[w].on = true; runs[w].task = i; runs[w].fence = fence; runs[w].until = runs[w].sent; runs[w].sent = 0;
			t = NONE; fence = 0; lapsed = false;
			for (i : 0 .. PERMITS - 1) { permit[i].read[w] = false }
			LIMIT_HOLDS
		:: forget(w) /* it lost, or its answer was lost */
		fi
	}

	/* The handler returns within its lease; statements.Settle comes at any time after it. */
	:: COUNTS(w) -> runs[w].on = false;
		atomic {
			t = runs[w].task;
			if
			:: task[t].fence == runs[w].fence && task[t].owner == w + 1 ->
				task[t].owner = 0; task[t].left = 0;
				if
				:: t != 2 -> task[t].state = done; task[t].place = false
				:: t == 0 -> task[t].state = dead; task[t].place = HALTS
				:: t == 0 -> task[t].state = snoozed; task[t].left = 1
				:: task[t].left = 1 /* it failed */
				fi
			:: else
			fi;
			forget(w)
		}

	/* Its lease has ended, or a client has ended its claim: statements.FreePermit */
	:: atomic {
		runs[w].on && (runs[w].until == 0 || task[runs[w].task].fence != runs[w].fence) ->
		for (i : 0 .. PERMITS - 1) {
			if
			:: permit[i].task == runs[w].task && permit[i].fence == runs[w].fence -> permit[i].kept = 0
			:: else
			fi
		}
		tidy();
		forget(w)
	}
	od unless { atomic { w == 0 && crashes -> crashes = false; forget(w); goto end } }
}

active proctype Crash() {
	byte n;
	do
	:: n < CRASHES -> crashes = true; n++
	:: n == CRASHES -> break
	od
}

/* --- A client ------------------------------------------------------------------------------ */

active proctype Client() {
	byte n, fence;
	do
	:: n == ACTIONS -> break
	:: atomic { n < ACTIONS && (task[0].state == open || task[0].state == snoozed) ->
		/* Cancel locks the row, keeps its permits while the lease lasts, and ends the claim. */
		for (i : 0 .. PERMITS - 1) {
			if
			:: task[0].owner > 0 && task[0].left && permit[i].task == 0 && permit[i].fence == task[0].fence -> permit[i].kept = task[0].left; written(i)
			:: else
			fi
		}
		task[0].state = cancelled; task[0].owner = 0; task[0].left = 0; task[0].place = false; task[0].fence++;
		tidy(); n++
	}
	:: atomic { n < ACTIONS && (task[0].state == done || task[0].state == dead || task[0].state == cancelled) ->
		/* Retry */
		if :: task[0].state == done -> task[0].fence++ :: else fi;
		if :: task[0].left = 0 :: task[0].left = 1 fi;
		task[0].state = open; task[0].tried = false;
		tidy(); n++
	}
	/* An enqueue with ConflictReplace reads the holder of the unique key, and locks nothing ... */
	:: atomic { n < ACTIONS && task[0].owner == 0 && (task[0].state == open || task[0].state == snoozed) -> fence = task[0].fence }
		/* ... so ReplaceWaiting compares the fence. */
		atomic {
			if
			:: task[0].fence == fence && task[0].owner == 0 && (task[0].state == open || task[0].state == snoozed) ->
				if :: task[0].key = 0 :: task[0].key = 1 fi;
				if :: task[0].left = 0 :: task[0].left = 1 fi;
				if :: task[0].tried -> task[0].state = snoozed :: else fi;
				task[0].fence++; task[0].place = false
			:: else
			fi;
			tidy(); fence = 0; n++
		}
	od
}

active proctype Clock() {
end:	do
	:: atomic {
		for (i : 0 .. TASKS - 1) { task[i].left = 0 }
		for (i : 0 .. PERMITS - 1) { permit[i].kept = 0 }
		for (i : 0 .. WORKERS - 1) { runs[i].until = 0; runs[i].sent = 0 };
		tidy()
	}
	od
}

init { atomic { run Worker(0); run Worker(1) } }
