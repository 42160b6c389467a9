package statements

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// States of a task, as the state column spells them.
const (
	StateBlocked   = "blocked"   // runs after others, which have not ended; sweeps never meet it
	StateOpen      = "open"      // due when its policy's delay has passed
	StateSnoozed   = "snoozed"   // due at updated_at, without a delay on top
	StateDone      = "done"      // its handler succeeded
	StateDead      = "dead"      // its handler failed for the last time
	StateCancelled = "cancelled" // called off
)

// MaxBatch is the greatest number of rows of one statement. Many rows share a round
// trip and a commit, and locks are still held for milliseconds only.
const MaxBatch = 500

// ClaimParams are the parameters of a claim's statements.
type ClaimParams struct {
	Tables dialect.Tables
	// Formulas are the delays of the lanes that will be passed in.
	Formulas []sqlgen.Formula
	// InSlot makes the claim take a claim slot, on servers with them: see
	// [HasClaimSlots].
	InSlot bool
}

// ClaimsAtOnce reports whether a server claims with one statement, [Claim]. On the
// others a claim is one [ClaimLane] for each lane, and [Take].
func ClaimsAtOnce(s dialect.Server) bool {
	c := s.Caps
	return c.Lateral && c.WritableCTE && c.UpdateReturning && c.Rows == dialect.Arrays
}

// The two forms of Claim: by itself, and in a claim slot.
const (
	claim = `
with {due}
{claim}`

	claimInSlot = `
with slot as materialized (select pg_try_advisory_xact_lock({int :slot}) or pg_try_advisory_xact_lock({int :slot} + 1) as taken),
{due},
claimed as ({claim})
select * from claimed union all select {no slot} from slot where not taken`

	claimDue = `due as materialized (select l.place, l.running, l.most, t.* from {lanes}
cross join lateral (select * from (select {address} as version, fence, updated_at as anchor, claimed_by as previous from {tasks}
where {in lane} and {since l.since} and updated_at <= {shift {now}, -({delay})}
order by updated_at limit {max batch}{for update}) d limit l.room) t{if slot}
limit (select {int :limit}))`

	claimUpdate = `update {tasks} t set {set claim}
from due where t.{address} = due.version and t.fence = due.fence
returning {claimed}`
)

// Claim takes up to :limit due tasks out of lanes for :worker, in one statement,
// and returns them as [ClaimedColumns]. It is for servers where [ClaimsAtOnce].
// The batch has [LaneColumns], in the order in which to claim from the lanes.
// Parameters: queue, limit, lease (microseconds), worker, and slot where the
// claim takes one. Where others hold both slots, the claim returns one row with
// the place 0.
//
// Rows are locked one by one as the outer limit asks for them, so that a claim
// of 100 locks 100. Each lane is scanned from its since on. Otherwise every
// claim would read the index entries of deleted rows again, which stay for as long
// as an open snapshot may see them.
//
// The limit of [MaxBatch] is for the planner. Without it, the planner would expect to
// read a tenth of the lane, since it does not know the room. The limit of all lanes is
// a subquery, whose value the planner does not know either. So PostgreSQL keeps one plan.
//
// The statement finds a locked row again by its address. The address costs less than
// the key, and is safe, since no other transaction can move a locked row. A row that
// has changed since the statement began is left to the next claim.
func Claim(s dialect.Server, p ClaimParams) Stmt {
	b := newBuilder(s, p.Tables)
	b.set("due", claimDue)
	b.setSince()
	b.set("claim", claimUpdate)
	b.set("lanes", func() string { return arrays{}.numbered(b, LaneColumns.columns()) })
	b.setInLane(func(c column) string { return "l." + c.Name })
	b.set("delay", func() string { return b.delays("l.", p.Formulas) })
	b.set("max batch", strconv.Itoa(MaxBatch))
	b.set("address", cmp.Or(s.Caps.RowAddress, "id"))
	b.setClaim("due.running", "case when t.max_attempts > 0 then t.max_attempts else due.most end")
	b.set("claimed", ClaimedColumns.list("t.", map[string]string{
		"place": "due.place", "anchor": "due.anchor", "clock": "{now}", "previous": "nullif(due.previous, '')",
		"first":   "case when t.first_attempted_at <> t.attempted_at then {micros t.first_attempted_at} end",
		"created": "case when t.created_at <> due.anchor then {micros t.created_at} end",
	}))
	if !p.InSlot {
		b.set("if slot", "")
		return b.stmt(claim)
	}
	b.set("if slot", "\nwhere (select taken from slot)")
	b.set("no slot", list(ClaimedColumns.columns(), ", ", func(c column) string {
		return map[ColumnType]string{Int: "0", Moment: "0", Text: "''", JSON: "null"}[c.Type]
	}))
	return b.stmt(claimInSlot)
}

// delays returns the delay of a lane, in microseconds. of is the prefix of the lane's formula and attempts.
func (b *builder) delays(of string, formulas []sqlgen.Formula) string {
	if len(formulas) == 0 {
		return "0"
	}
	text := "case " + of + "formula"
	for i, f := range formulas {
		text += " when " + strconv.Itoa(i) + " then " + f.MicrosSQL(b.server, of+"attempts")
	}
	return text + " else 0 end"
}

// ClaimLane selects up to :limit due tasks of one lane, locked where the engine
// can, and returns them as [ClaimedColumns] with the place 1. [Take] claims them
// in the same transaction. Parameters: queue, the lane (see [SetLane]), since, limit.
// f is nil for a lane without a delay.
func ClaimLane(s dialect.Server, tables dialect.Tables, f *sqlgen.Formula) Stmt {
	b := newBuilder(s, tables)
	b.set("found", b.foundColumns(""))
	b.setDueInLane(f)
	return b.stmt(`
select {found} from {tasks}
where {due in lane}
order by updated_at limit :limit{for update}`)
}

// setDueInLane sets the fragment {due in lane}, the condition that a task is in a
// lane and due. Parameters: queue, the lane (see [SetLane]), since. f is nil for a
// lane without a delay.
func (b *builder) setDueInLane(f *sqlgen.Formula) {
	b.set("due in lane", "{in lane} and {since {int :since}} and updated_at <= {due until}{readable}")
	b.setSince()
	b.setInLane(laneParam)
	b.set("due until", "{now}")
	if f != nil {
		b.set("delay", func() string { return f.MicrosSQL(b.server, b.typed(b.param("attempts"), Int)) })
		b.set("due until", "{shift {now}, -({delay})}")
	}
	b.setReadable()
}

// setReadable sets the fragment {readable}, a condition that leaves out rows with text instead of a number.
// No worker could claim such a row, and it would stay the first of its lane indefinitely.
func (b *builder) setReadable() {
	b.set("readable", "")
	if b.server.Caps.DynamicTypes {
		b.set("readable", " and typeof(fence) = 'integer' and typeof(max_attempts) = 'integer'")
	}
}

// Take claims tasks by ID and fence. It is a compare-and-set, and thereby
// exclusive even where the rows could not be locked. If it matches fewer rows
// than the batch has, [Owned] selects those that the worker has taken. Owned does
// not distinguish two claims of one worker: without row locks a worker must make
// one claim at a time. The batch has [FenceColumns], with the fence before the
// claim. Parameters: lease, worker, running (the state while the tasks run), most
// (attempts, as for [Claim]).
func Take(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setClaim("{text :running}", "{int :most}")
	return b.updateRows(FenceColumns.columns(), size, "{set claim}", anyClaim)
}

// setClaim sets the fragment {set claim}, the values that a claim writes into a
// task t. running is the state of the task while it runs, and most its limit of
// attempts. A claim of a task without an attempt left counts none, so that a worker
// that dies before it settles the task leaves the row as it was.
//
// One row that a user has edited must not make the whole claim fail. So adding to
// attempts and fence must not overflow, and a date of zeros must not be written again,
// which MySQL refuses. MySQL and MariaDB assign from left to right and see earlier
// assignments.
func (b *builder) setClaim(running, most string) {
	b.set("running", running)
	b.set("most", most)
	b.set("set claim", strings.TrimSpace(`
	first_attempted_at = case when t.attempts = 0 then {now} else {greatest t.first_attempted_at, {moment 0}} end,
	attempted_at = {now},
	attempts = case when t.attempts < {most} then t.attempts + 1 else t.attempts end,
	fence = {next fence},
	state = {running},
	updated_at = {shift {now}, {int :lease}},
	claimed_by = :worker`))
}

// NextFence returns the fence of a task after [Take].
func NextFence(fence int64) int64 { return min(fence, math.MaxInt64-1) + 1 }
