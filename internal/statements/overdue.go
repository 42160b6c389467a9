package statements

import "github.com/falldue/falldue/dialect"

// Queues selects the first queues after :queue that have tasks, up to :limit, in any order. It jumps from queue to queue
// in the index. On servers with Caps.LooseScan it selects one: MySQL would read the index between two jumps.
func Queues(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	if s.Caps.LooseScan {
		return b.stmt(`
select queue from {tasks}
where queue > :queue
order by queue limit 1`)
	}
	b.set("next", func(last string) string {
		b.set("last", verbatim(last))
		if s.Caps.LaneExpression {
			return b.expand("(select queue from {tasks} where {lane text} > {last} || '!' order by {lane text} limit 1)")
		}
		return b.expand("(select min(queue) from {tasks} where queue > {last})")
	})
	return b.stmt(`
with recursive found (queue, place) as (select {next {text :queue}}, 1
union all
select {next f.queue}, f.place + 1 from found f where f.queue is not null and f.place < {int :limit})
select queue from found where queue is not null`)
}

// LaneSince is a lane whose tasks are counted: those with anchors that are Wait microseconds old or older, up to Most.
type LaneSince struct {
	QueueLane
	Wait int64
	Most int
}

// LaneSinceColumns are the columns of the batch of [CountSince].
var LaneSinceColumns = join(
	within(QueueLaneColumns, func(l *LaneSince) *QueueLane { return &l.QueueLane }),
	Columns[LaneSince]{
		col("wait", Int, func(l *LaneSince) any { return &l.Wait }),
		col("most", Int, func(l *LaneSince) any { return &l.Most }),
	})

// CountSince counts the tasks of each lane of a batch of size lanes. It returns the number and the lane's place in the
// batch. The batch has [LaneSinceColumns].
func CountSince(s dialect.Server, tables dialect.Tables, size int) Stmt {
	return newBuilder(s, tables).united(LaneSinceColumns.columns(), size, `select count(*), {place} from (select 1 from {tasks}
where {in its lane} and updated_at <= {shift {now}, -({of wait})} limit {of most}) t`)
}

// CountAhead counts the tasks of a lane that come before the task :id with the anchor :since,
// up to :limit. Parameters: queue, the lane (see [SetLane]), id, since, limit.
func CountAhead(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setInLane(laneParam)
	b.set("anchor", "{moment {int :since}}")
	return b.stmt(`
select count(*) from (select 1 from {tasks}
where {in lane} and updated_at <= {anchor} and (updated_at < {anchor} or id < :id) limit :limit) t`)
}
