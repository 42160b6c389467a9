/*
 * Flows: a task that runs after two others is opened when both are done, and never before.
 * README.md has the promises, how to read a model, and the parts that are left out.
 *
 * Two workers settle one member each, judge the task after them, and may die between the two. A
 * client retries members. A look in pages judges the task again. The task after a dead member stays
 * blocked, which is the default.
 */

#ifndef RETRIES
#define RETRIES 2
#endif

mtype = { pending, done, dead, blocked, open };

mtype member[2] = pending;  /* their rows of tasks, and of edges, which one transaction writes */
mtype waiter = blocked;
bool judged;                /* the look has judged the task since a row has changed */

#define READY (member[0] == done && member[1] == done)

/* endWaiting: the transaction that opens the task asks once more, and locks its edges. */
inline end_waiting() {
	atomic {
		if
#ifdef VERDICTS_ARE_NOT_ASKED_AGAIN
		:: waiter == blocked && ready ->
#else
		:: waiter == blocked && READY ->
#endif
			/* Promise 13: it is opened when all before it have ended, and never before. */
			assert(READY);
			waiter = open
		:: else
		fi;
		ready = false
	}
}

proctype Worker(bit m) {
	bool ready;
end:	do
	/* Store.Settle with its participant flowLog: the member's end and its edge */
	:: member[m] == pending ->
#ifdef JUDGED_IN_THE_SETTLE
		/* The transaction does not see a settle of another that has not committed. */
		ready = (member[1 - m] == done);
		atomic { member[m] = done; judged = true; if :: ready && waiter == blocked -> waiter = open :: else fi; ready = false }
#else
		atomic { if :: member[m] = done :: member[m] = dead fi; judged = false }
		if
		:: ready = READY; /* Store.Judge */
			end_waiting()
		:: skip /* the worker has died */
		fi
#endif
	od
}

/* JudgePage, each 15 seconds */
active proctype Look() {
	bool ready;
end:	do
#ifndef NO_LOOK
	:: waiter == blocked && !judged ->
		atomic { judged = true; ready = READY }
		end_waiting()
#else
	:: false
#endif
	od
}

active proctype Client() {
	byte retries;
end:	do
	/* Retry makes the edge of a task that is blocked pending again. A task that runs already
	 * does not wait for a second run. */
	:: atomic { retries < RETRIES && waiter == blocked && (member[0] == dead || member[0] == done) -> member[0] = pending; judged = false; retries++ }
	od
}

/* Nothing can happen any more. */
active proctype Rest() {
	timeout -> assert(!READY || waiter == open) /* promise 13: the task is opened */
}

init { atomic { run Worker(0); run Worker(1) } }
