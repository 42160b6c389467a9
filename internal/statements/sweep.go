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
	b.set("heads", HeadColumns.list("", map[string]string{"anchor": "updated_at", "now": "{now}"}))
	switch {
	case s.Caps.LooseScan:
		b.set("heads", HeadColumns.list("", map[string]string{"anchor": "min(updated_at)", "now": "{now}"}))
		return b.stmt(`
select {heads}
from {tasks}
where queue = :queue and state in ('open', 'snoozed')
group by queue, {lane columns}`)
	case s.Caps.LaneExpression && s.Caps.Lateral:
		// Queues with a space in their names, which only a user who edits rows can
		// make, may lie between the lanes. The condition at the end drops them.
		b.set("after", func(lane string) string {
			b.set("last", verbatim(lane))
			return b.expand(`(select {lane text} as lane, queue, {lane columns}, updated_at from {tasks}
where {lane text} > {last} and {lane text} < {text :queue} || '!'
order by {lane text}, updated_at limit 1)`)
		})
		return b.stmt(`
with recursive found as ({after {text :queue} || ' open'}
union all
select next.* from found cross join lateral {after found.lane} next)
select {heads}
from found where queue = {text :queue} and state in ('open', 'snoozed')`)
	default:
		b.set("row", laneColumns.list("t.", nil)+", t.updated_at")
		// SQLite compares two columns with each other in a way that no index
		// serves. A plus makes a column a value.
		value := "f."
		if s.Caps.DynamicTypes {
			value = "+f."
		}
		b.set("last", laneColumns.list(value, nil))
		return b.stmt(`
with recursive found as (select {row} from {tasks} t where t.id = (select id from {tasks}
where queue = :queue and state >= 'open'
order by {lane columns}, updated_at limit 1)
union all
select {row} from found f join {tasks} t on t.id = (select id from {tasks}
where queue = :queue and ({lane columns}) > ({last})
order by {lane columns}, updated_at limit 1)) select {heads}
from found where state in ('open', 'snoozed')`)
	}
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
func NextLane(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	columns := laneColumns.columns()
	name := func(c column) string { return c.Name }
	var cases []string
	for same := len(columns) - 1; same >= 0; same-- {
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
