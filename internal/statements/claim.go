package statements

import (
	"math"
	"strconv"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// States of a task, as the state column spells them.
const (
	StateOpen      = "open"      // due when its policy's delay has passed
	StateSnoozed   = "snoozed"   // due at updated_at, without a delay on top
	StateDone      = "done"      // its handler succeeded
	StateDead      = "dead"      // its handler failed for the last time
	StateCancelled = "cancelled" // called off
)

// LaneColumns are the columns of the batch that [Claim] takes on engines with
// Lateral: the lanes to claim from, in the order in which to empty them. since
// is a moment before which the lane is known to hold nothing, in microseconds
// since 1970; formula counts into ClaimParams.Formulas, -1 is no delay.
var LaneColumns = []Column{
	{"state", Text}, {"priority", Int}, {"kind", Text}, {"policy", Text}, {"attempts", Int}, {"since", Int}, {"formula", Int},
}

// ClaimParams says what a claim is for.
type ClaimParams struct {
	Tables dialect.Tables
	// Formulas are the delays of the lanes that will be passed in.
	Formulas []sqlgen.Formula
	// InTurn makes the claim take a turn: see [Turn].
	InTurn bool
}

// A claim returns of each task: the place of its lane in the batch, from 1, id;
// the fence, after Claim and before Take; max_attempts; then in microseconds since 1970 the
// anchor before the claim, the start of the first attempt, the creation, and
// the database's now; the worker that held an expired lease, or ""; payload.

// Claim takes up to :limit due rows out of lanes for :worker, in one
// statement, and returns them. For engines with Caps.Lateral and
// Caps.UpdateReturning. Parameters: queue, limit, lease (microseconds), worker,
// and turn where the claim is to take one; the batch has [LaneColumns].
//
// Where others have both turns, the claim returns a single row, with the place 0,
// in which nothing else counts.
//
// A row that is locked is found again by its ctid, which costs less than its key:
// nobody moves a row that is locked. One that somebody else has changed since the
// statement began is left to the next claim.
//
// The lanes are scanned in the order of the batch, each from its oldest row,
// and rows are locked one by one as the outer limit asks for them, so that a
// claim of 100 locks 100. A scan begins at since: entries of the index whose
// rows are gone stay in it for as long as somebody's snapshot may see them, and
// each claim would walk them all again.
func Claim(s dialect.Server, p ClaimParams) Stmt {
	b, tasks, clock := newBuilder(s), p.Tables.Name(s, "tasks"), s.Clock()
	delay := "0"
	if len(p.Formulas) > 0 {
		delay = "case l.formula"
		for i, f := range p.Formulas {
			delay += " when " + strconv.Itoa(i) + " then " + b.wait(f, "l.attempts")
		}
		delay += " else 0 end"
	}
	turn, taken := "", ""
	if p.InTurn {
		n := b.int("turn")
		turn = "turn as materialized (select pg_try_advisory_xact_lock(" + n + ") or pg_try_advisory_xact_lock(" + n + " + 1) as taken),\n"
		taken = "\nwhere (select taken from turn)"
	}
	b.add("with ", turn, "due as materialized (select l.place, t.* from ", b.numberedRows("l", LaneColumns...),
		"\ncross join lateral (select ctid as version, fence, updated_at as anchor, claimed_by as previous from ", tasks,
		"\nwhere ", laneText("queue", ""), " = ", laneText(b.typed(Column{"queue", Text}), "l."),
		" and updated_at >= ", clock.Moment("l.since"), " and updated_at <= ", clock.Shift(clock.Now, "-("+delay+")"),
		"\norder by updated_at limit ", b.arg("limit"), " for update", skipLocked(s), ") t", taken, "\nlimit ", b.arg("limit"), ")")
	claimed := "update " + tasks + " t set " + claimSet(b) + "\nfrom due where t.ctid = due.version and t.fence = due.fence" +
		"\nreturning due.place, t.id, t.fence, t.max_attempts, " + clock.Micros("due.anchor") + ", " + clock.Micros("t.first_attempted_at") + ", " +
		clock.Micros("t.created_at") + ", " + clock.Micros(clock.Now) + ", due.previous, t.payload"
	if p.InTurn {
		b.add(",\nclaimed as (", claimed, ")\nselect * from claimed union all select 0, 0, 0, 0, 0, 0, 0, 0, '', null from turn where not taken")
	} else {
		b.add("\n", claimed)
	}
	return b.stmt()
}

// ClaimLane selects up to :limit due rows of one lane, locked where the engine
// can, and returns what a claim returns, with the place 1. [Take] claims them in
// the same transaction. Parameters: queue, state, priority, kind, policy,
// attempts, since, limit. f is nil for a lane without a delay.
func ClaimLane(s dialect.Server, tables dialect.Tables, f *sqlgen.Formula) Stmt {
	b, clock := newBuilder(s), s.Clock()
	b.add("select 1, id, fence, max_attempts, ", clock.Micros("updated_at"), ", ", clock.Micros("case when attempts = 0 then "+clock.Now+" else first_attempted_at end"), ", ",
		clock.Micros("created_at"), ", ", clock.Micros(clock.Now), ", claimed_by, payload from ", tables.Name(s, "tasks"),
		"\nwhere queue = ", b.arg("queue"), " and state = ", b.arg("state"), " and priority = ", b.arg("priority"),
		" and kind = ", b.arg("kind"), " and policy = ", b.arg("policy"), " and attempts = ", b.arg("attempts"),
		" and updated_at >= ", clock.Moment(b.int("since")))
	if f == nil {
		b.add(" and updated_at <= ", clock.Now)
	} else {
		b.add(" and updated_at <= ", clock.Shift(clock.Now, "-("+b.wait(*f, ":attempts")+")"))
	}
	if s.Name() == dialect.SQLite {
		// It lets text stand where a number belongs. Nobody could claim such a row,
		// and it would stand in front of its lane for ever.
		b.add(" and typeof(fence) = 'integer' and typeof(max_attempts) = 'integer'")
	}
	b.add("\norder by updated_at limit ", b.arg("limit"))
	if s.Caps.LockRows {
		b.add(" for update", skipLocked(s))
	}
	return b.stmt()
}

// Take claims rows by id and fence: a compare-and-set, so that it is exclusive
// even where the rows could not be locked. The batch has [FenceColumns], with
// the fence before the claim. Parameters: lease, worker.
func Take(s dialect.Server, tables dialect.Tables, room int) Stmt {
	return updateRows(s, tables, room, FenceColumns, claimSet, nil)
}

// FenceColumns are the columns of a batch that names claims: the task and its
// fence.
var FenceColumns = []Column{{"task_id", Int}, {"task_fence", Int}}

// moreAttempts and nextFence add one without ever overflowing the column: an
// error there, in a row that somebody edited, would fail the whole claim.
func moreAttempts(s dialect.Server, attempts string) string {
	return s.Func("least") + "(" + attempts + ", 2147483646) + 1"
}

func nextFence(s dialect.Server, fence string) string {
	return s.Func("least") + "(" + fence + ", 9223372036854775806) + 1"
}

// NextFence is the fence of a task after [Take].
func NextFence(fence int64) int64 { return min(fence, math.MaxInt64-1) + 1 }

// claimSet is what a claim writes into a row.
func claimSet(b *builder) string {
	clock := b.server.Clock()
	now := clock.Now
	// A date of zeros, in a row that somebody edited, MySQL would not write again.
	first := b.server.Func("greatest") + "(t.first_attempted_at, " + clock.Moment("0") + ")"
	// Left to right: MySQL and MariaDB may see what was assigned before.
	return "first_attempted_at = case when t.attempts = 0 then " + now + " else " + first + " end, attempted_at = " + now +
		", attempts = " + moreAttempts(b.server, "t.attempts") + ", fence = " + nextFence(b.server, "t.fence") + ", state = 'open'" +
		", updated_at = " + clock.Shift(now, b.int("lease")) + ", claimed_by = " + b.arg("worker")
}

func skipLocked(s dialect.Server) string {
	if s.Caps.SkipLocked {
		return " skip locked"
	}
	return ""
}
