package statements

import "github.com/falldue/falldue/dialect"

// SequenceLane is a lane of a sequence.
type SequenceLane struct {
	Lane
	Formula int64 // the index of the lane's delay in ClaimParams.Formulas, -1 for none
	Begun   int64 // the task that has begun, which the others of the sequence wait for, or 0
}

// SequenceColumns are the columns of the batch of [NextTasks].
var SequenceColumns = join(
	within(laneColumns, func(l *SequenceLane) *Lane { return &l.Lane }),
	Columns[SequenceLane]{
		col("formula", Int, func(l *SequenceLane) any { return &l.Formula }),
		col("begun", Int, func(l *SequenceLane) any { return &l.Begun }),
	})

// NextTasks finds the next tasks of sequences in a batch of lanes, if they are due: in a lane the task that has begun,
// or else the first task. It returns them as [CandidateColumns] and the lane's place in the batch, from 0. It locks
// nothing, so that it does not pass over a task whose row another transaction has locked. [Pick] locks the tasks.
// The batch has [SequenceColumns], and size rows except where [ClaimsAtOnce]. Parameters: queue.
//
// The search for the first task has no bound of its time, since a lane that has no due task would be read to its end.
func NextTasks(s dialect.Server, p ClaimParams, size int) Stmt {
	b, of := newBuilder(s, p.Tables), "t." // where the delay's columns are
	b.set("found", CandidateColumns.list("t.", map[string]string{"task_id": "t.id", "task_fence": "t.fence", "anchor": "t.updated_at"}))
	b.set("due", func() string { return b.expand("t.updated_at <= {shift {now}, -(" + b.delays(of, p.Formulas) + ")}") })
	b.setReadable()
	b.set("next in lane", `id = case {begun} when 0 then (select id from {tasks}
where {in lane}{readable} {first}) else {begun} end and {in lane}{readable}`)
	b.set("first", "order by updated_at, id limit 1")
	if !SortsTies(s) { // sorts no more than the tasks with the first anchor
		b.set("first", `and updated_at = (select updated_at from {tasks}
where {in lane} order by updated_at limit 1) order by id limit 1`)
	}
	if ClaimsAtOnce(s) {
		of = "l."
		b.set("lanes", func() string { return arrays{}.numbered(b, SequenceColumns.columns()) })
		b.setInLane(func(c column) string { return "l." + c.Name })
		b.set("begun", "l.begun")
		// OFFSET keeps the planner from joining whole tables.
		return b.stmt(`
select {found}, l.place - 1 from {lanes}
cross join lateral (select id, fence, updated_at from {tasks} where {next in lane} offset 0) t
where {due}`)
	}
	b.setInLane(func(c column) string { return "{of " + c.Name + "}" })
	b.set("begun", "{of begun}")
	b.set("formula", "")
	if len(p.Formulas) > 0 {
		b.set("formula", s.Cast("{of formula}", dialect.Int)+" as formula, ")
	}
	b.unite(SequenceColumns.columns(), size, `select {place} as place, {formula}id, fence, updated_at, attempts from {tasks} where {next in lane}`)
	return b.stmt(`
select {found}, t.place from ({parts}) t
where {due}`)
}
