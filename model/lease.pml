/*
 * Leases: claim, extension, settle and DoneTx of one task, with lost answers, crashes, and a client.
 * README.md has the promises, how to read a model, and the parts that are left out.
 *
 * The task is under AtMost(1), so that its permit shows which of its runs count. A client cancels
 * and retries the task.
 */

#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef ACTIONS
#define ACTIONS 2  /* of the client */
#endif
#ifndef FENCES
#define FENCES 5   /* a task with this fence is not claimed any more, which bounds the model */
#endif

#define WORKERS 2
#define LEASE 2    /* ticks */

/* --- Tables. A time is the number of ticks until then, and 0 in the past. ------------------ */

mtype = { open, done, dead, cancelled };

mtype state = open;
byte fence;
byte owner;            /* claimed_by: the worker + 1 */
byte left;             /* updated_at: the end of the lease, or when the task falls due */

byte permit_fence;     /* the claim with the permit */
byte kept;             /* taken_until */
bool read[WORKERS];    /* the permit's token is the one that the worker has read */

byte written;          /* the user's table: the writes of handlers that DoneTx has committed */

#define LIVE (permit_fence == fence && owner > 0 && left > 0)

/* --- What a worker knows ------------------------------------------------------------------- */

typedef Run {
	bool on;           /* the handler runs */
	byte fence;
	byte until;        /* the end of the lease by the worker's clock */
	byte sent;         /* the end of the lease that the statement under way asks for */
	bool called;       /* the handler has called DoneTx */
	bool committed;    /* and its transaction has committed */
}
Run runs[WORKERS];

/* A run counts until its lease ends, or until its DoneTx commits, though its handler goes on. */
#define COUNTS(w) (runs[w].on && runs[w].until > 0 && !runs[w].committed)

/* Promise 9: no more tasks run than a limit allows. Promise 3: no two workers own one claim. */
#define ONE_RUNS assert(COUNTS(0) + COUNTS(1) <= 1)

inline forget(w) {
	runs[w].on = false; runs[w].fence = 0; runs[w].until = 0; runs[w].sent = 0;
	runs[w].called = false; runs[w].committed = false;
	read[w] = false; seen = 0; lapsed = false; made = false
}

/* The commit of a statement that was sent some ticks ago */
inline leased(w) { if :: left = LEASE :: left = runs[w].sent fi }

#define OWNS(w) (fence == runs[w].fence && owner == w + 1)

bool crashes; /* worker 0 dies; both workers are alike */

proctype Worker(bit w) {
	byte seen;         /* the fence that was read */
	bool lapsed;       /* the task has a claim whose lease has ended */
	bool made;
end:	do
	:: atomic {
		/* store.ClaimLimited: the worker counts the lease from here. Reads lock nothing. */
		!runs[w].on && state == open && left == 0 && fence < FENCES && !LIVE && kept == 0 ->
		runs[w].sent = LEASE; seen = fence; lapsed = owner > 0; read[w] = true
	}
	/* TakePermits and Take, which lock their rows to the commit */
	atomic {
		made = (read[w] && fence == seen
#ifndef LAPSED_CLAIMS_BY_FENCE
			&& (!lapsed || owner > 0 && left == 0)
#endif
			);
		if
		:: made ->
			/* Promise 11: a cancelled task stays cancelled. */
			assert(state == open);
			fence++; owner = w + 1; leased(w);
			permit_fence = fence; kept = 0; read[0] = false; read[1] = false
		:: else
		fi
	}
	atomic {
		if
		:: made && runs[w].sent > 0 ->
			runs[w].on = true; runs[w].fence = seen + 1; runs[w].until = runs[w].sent; runs[w].sent = 0;
			read[w] = false; seen = 0; lapsed = false; made = false;
			ONE_RUNS
		:: forget(w) /* it lost, or its answer was lost */
		fi
	}

	/* leases.extend: ExtendLive */
	:: atomic { COUNTS(w) && !runs[w].called -> runs[w].sent = LEASE }
	atomic {
		made = (OWNS(w) && left > 0);
		if :: made -> leased(w) :: else fi
	}
	atomic {
		if
		:: made && runs[w].sent > 0 && runs[w].until > 0 -> runs[w].until = runs[w].sent
		:: skip /* its answer was lost, or came too late */
		fi;
		runs[w].sent = 0; made = false;
		ONE_RUNS
	}

	/* The handler calls DoneTx, which settles the claim in the handler's transaction, and then
	 * commits, rolls back, or loses the answer to its commit. */
	:: atomic { COUNTS(w) && !runs[w].called -> runs[w].called = true }
	atomic {
		if
		:: OWNS(w) -> state = done; owner = 0; left = 0; written++; runs[w].committed = true;
			/* Promise 5: the writes are there once. */
			assert(written == 1)
		:: skip
		fi
	}

	/* The handler returns nil or an error. Settle comes at any time after it, and more than once
	 * if its answer was lost: then it finds another fence or owner. */
	:: runs[w].on && runs[w].until > 0 -> runs[w].on = false;
		atomic {
			if
			:: OWNS(w) ->
				owner = 0; left = 0;
				if
#ifdef UNCOMMITTED_IS_DONE
				:: state = done
#else
				:: !runs[w].called -> state = done; written = 1 /* its writes need no transaction */
#endif
				:: state = dead
				:: left = 1 /* it failed */
				fi
			:: else
			fi;
			/* Promise 5: a task that is done has its writes. */
			assert(state != done || written == 1);
			forget(w)
		}

	/* The lease has ended, or the worker has read that a client has ended its claim: FreePermit */
	:: atomic {
		runs[w].on && (runs[w].until == 0 || fence != runs[w].fence) ->
		if :: permit_fence == runs[w].fence -> kept = 0 :: else fi;
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

active proctype Client() {
	byte n;
	do
	:: n == ACTIONS -> break
	:: atomic { n < ACTIONS && state == open ->
		/* Cancel keeps the permit while the lease lasts, and ends the claim. */
#ifndef CANCEL_FREES_PERMITS
		if :: LIVE -> kept = left; read[0] = false; read[1] = false :: else fi;
#endif
		state = cancelled; owner = 0; left = 0; fence++; n++
	}
	:: atomic { n < ACTIONS && state != open ->
		/* Retry. The writes of a done task are there, and its next run makes others. */
		if :: state == done -> fence++; written = 0 :: else fi;
		state = open; left = 0; n++
	}
	od
}

active proctype Clock() {
end:	do
	:: atomic {
		left = (left > 0 -> left - 1 : 0);
		kept = (kept > 0 -> kept - 1 : 0);
		runs[0].until = (runs[0].until > 0 -> runs[0].until - 1 : 0);
		runs[1].until = (runs[1].until > 0 -> runs[1].until - 1 : 0);
		runs[0].sent = (runs[0].sent > 0 -> runs[0].sent - 1 : 0);
		runs[1].sent = (runs[1].sent > 0 -> runs[1].sent - 1 : 0)
	}
	od
}

init { atomic { run Worker(0); run Worker(1) } }
