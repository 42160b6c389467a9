package statements

import (
	"fmt"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// Sweep finds the lanes of a queue that hold waiting tasks and returns them as
// [HeadColumns]. It jumps from lane to lane in the index, so that it costs more
// the more lanes there are, and not the more tasks. Parameters: queue.
func Sweep(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	if s.Caps.LooseScan {
		b.set("heads", HeadColumns.list("", map[string]string{"anchor": "min(updated_at)", "now": "{now}"}))
		return b.stmt(`
select {heads}
from {tasks}
where queue = :queue and state in ('open', 'snoozed')
group by queue, {lane columns}`)
	}
	b.set("first state", "state >= 'open'")
	b.set("before first", "{text :queue} || ' open'")
	b.set("end", "{text :queue} || '!'")
	b.set("states", "state in ('open', 'snoozed')")
	return b.jumps("", laneColumns)
}

// jumps makes the statement that jumps from lane to lane. {before first} and {end} are
// texts around those of the lanes. Where the index has columns, {first state} finds the
// first lane, and the next one is greater than the last in some columns and within some
// condition. {states} is the condition for what to return.
func (b *builder) jumps(within string, greater Columns[Lane]) Stmt {
	b.set("heads", HeadColumns.list("", map[string]string{"anchor": "updated_at", "now": "{now}"}))
	if b.server.Caps.LaneExpression && b.server.Caps.Lateral {
		// Queues with a space in their names, which only a user who edits rows can
		// make, may lie between the lanes. The condition at the end drops them.
		b.set("after", func(lane string) string {
			b.set("last", verbatim(lane))
			return b.expand(`(select {lane text} as lane, queue, {lane columns}, updated_at from {tasks}
where {lane text} > {last} and {lane text} < {end}
order by {lane text}, updated_at limit 1)`)
		})
		return b.stmt(`
with recursive found as ({after {before first}}
union all
select next.* from found cross join lateral {after found.lane} next)
select {heads}
from found where queue = {text :queue} and {states}`)
	}
	b.set("row", laneColumns.list("t.", nil)+", t.updated_at")
	// SQLite compares two columns with each other in a way that no index
	// serves. A plus makes a column a value.
	value := ""
	if b.server.Caps.DynamicTypes {
		value = "+"
	}
	b.set("value", value)
	b.set("within", within)
	b.set("columns", greater.list("", nil))
	b.set("last", greater.list(value+"f.", nil))
	// SQLite begins a range of several columns where they are equal, and would read the rest
	// of the lane. So the range begins after the last anchor that a lane can have, of the year
	// 9892, and a condition that no index serves sees to it that the next lane is another one.
	return b.stmt(`
with recursive found as (select {row} from {tasks} t where t.id = (select id from {tasks}
where queue = :queue and {first state}
order by {lane columns}, updated_at limit 1)
union all
select {row} from found f join {tasks} t on t.id = (select id from {tasks}
where queue = :queue and {within}({columns}, updated_at) > ({last}, {moment 250000000000000000}) and ({value}{columns}) > ({last})
order by {lane columns}, updated_at limit 1)) select {heads}
from found where {states}`)
}

// Heads returns the lanes of a batch that hold a task from their since on, as
// [HeadColumns]. It reads one entry of the index for each, however many tasks were
// before it. It is for servers where [ClaimsAtOnce]. The batch has [SinceColumns].
// Parameters: queue.
func Heads(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("lanes", func() string { return arrays{}.from(b, "l", SinceColumns.columns()) })
	b.setInLane(func(c column) string { return "l." + c.Name })
	b.set("heads", HeadColumns.list("l.", map[string]string{"anchor": "t.updated_at", "now": "{now}"}))
	return b.stmt(`
select {heads} from {lanes}
cross join lateral (select updated_at from {tasks}
where {in lane} and updated_at >= {moment l.since}
order by updated_at limit 1) t`)
}

// LaneHead is [Heads] for a single lane, on the other servers. Parameters: queue, those of
// [SetLane], since.
func LaneHead(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setInLane(laneParam)
	b.set("heads", HeadColumns.list("", map[string]string{"anchor": "updated_at", "now": "{now}"}))
	return b.stmt(`
select {heads} from {tasks}
where {in lane} and updated_at >= {moment {int :since}}
order by updated_at limit 1`)
}

// NextLane finds what [Sweep] finds, one lane in each run: the first lane after
// the one that the parameters name that holds waiting tasks. It costs the same
// whatever statistics the engine has. It is for servers with Caps.LooseScan.
// Parameters: queue, those of [SetLane].
//
// The next lane has its first so many columns in common with the last one, as
// many as possible, and a greater value in the next column. Each of these cases
// is a range of the index that begins where it ends.
func NextLane(s dialect.Server, tables dialect.Tables) Stmt { return newBuilder(s, tables).nextLane(0) }

// nextLane makes the statement that finds the next lane, which has at least so many
// columns in common with the last one.
func (b *builder) nextLane(least int) Stmt {
	columns := laneColumns.columns()
	name := func(c column) string { return c.Name }
	var cases []string
	for same := len(columns) - 1; same >= least; same-- {
		equal := list(columns[:same], "", func(c column) string { return " and " + c.Name + " = :" + c.Name })
		greater := fmt.Sprintf(" and %s > :%[1]s", columns[same].Name)
		if same == 0 {
			greater += " and state in ('open', 'snoozed')"
		}
		cases = append(cases, fmt.Sprintf(`(select %d as same, {lane columns}, {micros updated_at} as anchor, {micros {now}} as now from {tasks} where queue = :queue%s%s
order by %s, updated_at limit 1)`, same, equal, greater, list(columns[same:], ", ", name)))
	}
	b.set("cases", strings.Join(cases, "\nunion all "))
	b.set("heads", list(HeadColumns.columns(), ", ", name))
	return b.stmt(`
select {heads} from ({cases}) n
order by same desc limit 1`)
}

// RefreshStatistics makes a server with Caps.CachesStatistics read its statistics
// of the index of tasks again.
func RefreshStatistics(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
show index from {tasks}`)
}
