package statements

import (
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/sqlgen"
)

// If the database refuses a claim because of one of its tasks, the worker claims
// with these statements: [Candidates] finds the tasks, and [Pick] and [Take] claim
// some of them by their keys.

// Candidate is a due task that a worker might claim.
type Candidate struct {
	Key
	Anchor int64
}

// CandidateColumns are the columns of a result of [Candidates].
var CandidateColumns = join(
	within(FenceColumns, func(c *Candidate) *Key { return &c.Key }),
	Columns[Candidate]{col("anchor", Moment, func(c *Candidate) any { return &c.Anchor })})

// Candidates selects up to :limit due tasks of one lane as [CandidateColumns], in
// the order of their anchors and IDs, beginning after the task :after, whose
// anchor is :since. It locks nothing and reads no payload. Parameters: queue, the
// lane (see [SetLane]), since, after, limit. f is nil for a lane without a delay.
func Candidates(s dialect.Server, tables dialect.Tables, f *sqlgen.Formula) Stmt {
	b := newBuilder(s, tables)
	b.setDueInLane(f)
	b.set("keys", CandidateColumns.list("", map[string]string{"task_id": "id", "task_fence": "fence", "anchor": "updated_at"}))
	return b.stmt(`
select {keys} from {tasks}
where {due in lane} and (updated_at > {moment {int :since}} or id > {int :after})
order by updated_at, id limit :limit`)
}

// Pick selects waiting tasks by id and fence, locked where the engine can, and returns
// them as [ClaimedColumns] with the place 1. [Take] claims them in the same
// transaction. The batch has [FenceColumns].
//
// Pick checks the state because a session that reads uncommitted rows may have found the tasks
// of a flow before their own transaction blocked them. That changes neither fence nor anchor.
func Pick(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(FenceColumns.columns(), size)
	b.setKeys(source, "id", "fence")
	b.set("found", b.foundColumns("t."))
	if source.byKey() {
		return b.stmt(`
select {found} from {tasks} t where {keys} and t.state in ('open', 'snoozed'){for update}`)
	}
	return b.stmt(`
select {found} from {batch} join {tasks} t on {same key} and t.state in ('open', 'snoozed'){for update}`)
}

// foundColumns returns [ClaimedColumns] of tasks that will be claimed, with the
// place 1.
func (b *builder) foundColumns(prefix string) string {
	return ClaimedColumns.list(prefix, foundExprs(prefix))
}

// foundExprs are the expressions of foundColumns that are not columns of tasks.
func foundExprs(prefix string) map[string]string {
	return map[string]string{
		"place": "1", "anchor": prefix + "updated_at", "clock": "{now}",
		"previous": "nullif(rtrim(" + prefix + "claimed_by), '')", // MariaDB: PAD_CHAR_TO_FULL_LENGTH pads it
		"first":    "case when " + prefix + "attempts <> 0 then {micros " + prefix + "first_attempted_at} end",
		"created":  "case when " + prefix + "created_at <> " + prefix + "updated_at then {micros " + prefix + "created_at} end",
	}
}
