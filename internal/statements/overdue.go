package statements

import "github.com/falldue/falldue/dialect"

// NextQueue selects the first queue after :queue, in the order of the index.
func NextQueue(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	if s.Caps.LaneExpression {
		return b.stmt(`
select queue from {tasks}
where {lane text} > {text :queue} || '!'
order by {lane text} limit 1`)
	}
	return b.stmt(`
select queue from {tasks}
where queue > :queue
order by queue limit 1`)
}

// CountSince counts the tasks of a lane whose anchors are :wait microseconds old or
// older, up to :limit. Parameters: queue, the lane (see [SetLane]), wait, limit.
func CountSince(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setInLane(laneParam)
	return b.stmt(`
select count(*) from (select 1 from {tasks}
where {in lane} and updated_at <= {shift {now}, -({int :wait})} limit :limit) t`)
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
