package statements

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// Sweep finds up to :page lanes with waiting tasks in queues, and returns them as [FoundColumns]:
// queue by queue, and within a queue in the order of the index. It jumps from lane to lane, so that
// its cost grows with the number of lanes, and not of tasks. On servers with Caps.LooseScan Sweep
// begins at the first lanes, and finds the lanes of several queues in any order. The batch has
// [PlaceColumns]. Parameters: page.
func Sweep(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	if !s.Caps.LooseScan {
		return b.jumps(PlaceColumns(s).columns(), size, "", laneColumns, "state in ('open', 'snoozed')")
	}
	b.set("found", FoundColumns.list("", map[string]string{"anchor": "min(updated_at)", "clock": "{now}"}))
	b.withBatch(PlaceColumns(s).columns(), size)
	b.set("queues", func() string { return b.values(b.batch, commas) })
	if size == 1 {
		return b.stmt(`
select {found} from {tasks}
where queue in ({queues}) and state in ('open', 'snoozed')
group by queue, {lane columns} order by queue, {lane columns} limit :page`)
	}
	// With an order, or a limit of its own, MySQL might read the whole index.
	b.set("found", "queue, {lane columns}, {micros min(updated_at)} as anchor, {micros {now}} as clock")
	return b.stmt(`
select * from (select {found} from {tasks}
where queue in ({queues}) and state in ('open', 'snoozed')
group by queue, {lane columns}) n limit :page`)
}

// jumps makes the statement that jumps from lane to lane behind the places of a batch. It returns the
// lanes that meet the condition states. Where the index has columns, the next lane meets the condition
// within, and is greater than the last one in the columns greater.
func (b *builder) jumps(places []column, size int, within string, greater Columns[Lane], states string) Stmt {
	b.withBatch(places, size)
	b.set("states", states)
	if b.server.Caps.LaneExpression && b.server.Caps.Lateral {
		b.set("found", FoundColumns.list("f.", map[string]string{"anchor": "f.updated_at", "clock": "{now}"}))
		// Queues with a space in their names, which only a user who edits rows can
		// make, may lie between the lanes. The condition at the end drops them.
		b.set("after", func(lane string) string {
			b.set("last", verbatim(lane))
			return b.expand(`(select {lane text} as lane, queue, {lane columns}, updated_at from {tasks}
where {lane text} > {last} and {lane text} < s.ending
order by {lane text}, updated_at limit 1)`)
		})
		return b.stmt(`
select {found} from {batch} cross join lateral (
with recursive found as ({after s.after}
union all
select next.* from found cross join lateral {after found.lane} next)
select * from found where queue = s.queue and {states}) f
limit {int :page}`)
	}
	b.set("found", FoundColumns.list("", map[string]string{"anchor": "updated_at", "clock": "{now}"}))
	b.set("row", "t.queue, "+laneColumns.list("t.", nil)+", t.updated_at")
	// SQLite compares two columns with each other in a way that no index
	// serves. A plus makes a column a value.
	value := ""
	if b.server.Caps.DynamicTypes {
		value = "+"
	}
	b.set("value", value)
	b.set("within", within)
	b.set("columns", greater.list("", nil))
	// SQLite begins a range of several columns where they are equal, and would read the rest
	// of the lane. So the range begins after the last anchor that a lane can have, of the year
	// 9892, and a condition that no index serves ensures that the next lane is another one.
	b.set("next", func(last string) string {
		b.set("queue of last", value+last+".queue")
		b.set("last", greater.list(value+last+".", nil))
		return b.expand(`{tasks} t on t.id = (select id from {tasks}
where queue = {queue of last} and {within}({columns}, updated_at) > ({last}, {moment 250000000000000000}) and ({value}{columns}) > ({last})
order by {lane columns}, updated_at limit 1)`)
	})
	// On SQLite, an order of the recursion makes it jump through one queue after the other until the limit. No other
	// engine has such an order, so that the statement finds all lanes before it sorts them.
	b.set("jumps in order", "")
	b.set("sorted", "order by queue, {lane columns} ")
	if b.server.Caps.DynamicTypes {
		b.set("jumps in order", "\norder by 1, 2, 3, 4, 5, 6, 7")
		b.set("sorted", "")
	}
	return b.stmt(`
with recursive found as (select {row} from {batch} join {next s}
union all
select {row} from found f join {next f}{jumps in order}) select {found}
from found where {states} {sorted}limit :page`)
}

// FirstPlace is the place before the waiting lanes of a queue.
func FirstPlace(queue string) Place {
	return Place{Queue: queue, Lane: FirstFinished(StateOpen), Ending: queue + "!"}
}

// Place is where [Sweep] and [FinishedLanes] continue in a queue: behind a lane.
type Place struct {
	Queue string
	Lane
	// Ending is a text behind the texts of the wanted lanes.
	Ending string
}

// After returns the text of the place: its lane's text, or a text before all lanes of a state.
func (p *Place) After() string {
	if p.Lane == FirstFinished(p.State) {
		return p.Queue + " " + p.State + " "
	}
	return fmt.Sprint(p.Queue, " ", p.State, " ", p.Key, " ", strconv.Itoa(p.Priority), " ", p.Kind, " ", p.Policy, " ", strconv.Itoa(p.Attempts))
}

// PlaceColumns returns the columns of the batch of [Sweep] and [FinishedLanes].
func PlaceColumns(s dialect.Server) Columns[Place] {
	queue := Columns[Place]{col("queue", Text, func(p *Place) any { return &p.Queue })}
	switch {
	case s.Caps.LooseScan:
		return queue
	case s.Caps.LaneExpression && s.Caps.Lateral:
		return join(queue, Columns[Place]{
			col("after", Text, func(p *Place) any { return p.After() }),
			col("ending", Text, func(p *Place) any { return &p.Ending }),
		})
	}
	return join(queue, within(laneColumns, func(p *Place) *Lane { return &p.Lane }))
}

// Occupied selects those queues of a batch that have tasks in a state, or waiting tasks. Its cost does not depend
// on the engine's statistics. It is for servers with Caps.LooseScan. The batch has [PlaceColumns]. Parameters: state.
func Occupied(s dialect.Server, tables dialect.Tables, waiting bool, size int) Stmt {
	b := newBuilder(s, tables)
	b.withBatch(PlaceColumns(s).columns(), size)
	states := []string{":state"}
	if waiting {
		states = []string{"'open'", "'snoozed'"}
	}
	for i, state := range states {
		states[i] = "exists (select 1 from {tasks} t where t.queue = s.queue and t.state = " + state + ")"
	}
	b.set("occupied", strings.Join(states, " or "))
	b.set("queues", func() string {
		selects := make([]string, size)
		for i := range selects {
			selects[i] = "select cast(" + b.cell(i, 0) + " as char character set ascii) collate ascii_bin"
		}
		selects[0] += " as queue"
		return strings.Join(selects, " union all ")
	})
	return b.stmt(`
select s.queue from ({queues}) s
where {occupied}`)
}

// Heads finds the first task of each lane of a batch from the lane's since on. It returns the tasks as [AnchorColumns]
// and the lane's place in the batch, from 0. It reads one entry of the index for each lane, however many tasks were
// before that. The batch has [SinceColumns], and size rows except where [ClaimsAtOnce]. Parameters: queue.
func Heads(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("head", AnchorColumns.list("t.", map[string]string{"clock": "{now}"}))
	b.set("first", `(select updated_at as anchor from {tasks}
where {in lane} and updated_at >= {moment {since}} order by updated_at limit 1)`)
	if ClaimsAtOnce(s) {
		b.set("lanes", func() string { return arrays{}.numbered(b, SinceColumns.columns()) })
		b.setInLane(func(c column) string { return "l." + c.Name })
		b.set("since", "l.since")
		return b.stmt(`
select {head}, l.place - 1 from {lanes}
cross join lateral {first} t`)
	}
	b.setInLane(func(c column) string { return "{of " + c.Name + "}" })
	b.set("since", "{of since}")
	// A derived table for each lane would take MariaDB four times as long as a subquery that is a value.
	b.unite(SinceColumns.columns(), size, `select {place} as place, {first} as anchor`)
	return b.stmt(`
select {head}, t.place from ({parts}) t
where t.anchor is not null`)
}

// NextLane finds the lanes that [Sweep] finds, one lane in each run: the first lane with
// waiting tasks after the lane that the parameters name. Its cost does not depend on the
// engine's statistics. It is for servers with Caps.LooseScan.
// Parameters: queue, the lane (see [SetLane]).
//
// The next lane shares as many first columns as possible with the last lane, and has a
// greater value in the column after these. Each number of shared columns is a case, and
// each case is a range of the index. The statement reads one entry of each range.
func NextLane(s dialect.Server, tables dialect.Tables) Stmt { return newBuilder(s, tables).nextLane(0) }

// NextLanes finds the next :page lanes of a queue, as [NextLane] finds one, and returns them in
// order. It groups as [Sweep] does, so that statistics may make it slow.
func NextLanes(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("anchor", "min(updated_at)")
	b.set("first", func(columns string) string {
		return b.expand("group by queue, {lane columns} order by " + columns + " limit :page")
	})
	return b.nextLanes(0, ":page", ", "+laneColumns.list("", nil))
}

// nextLane makes the statement that finds the next lane. At least the first least columns
// are the same as in the last lane.
func (b *builder) nextLane(least int) Stmt {
	b.set("anchor", "updated_at")
	b.set("first", func(columns string) string {
		return b.expand("order by " + columns + ", updated_at limit 1")
	})
	return b.nextLanes(least, "1", "")
}

// nextLanes makes the statement of the next lanes. {first columns} ends each case.
func (b *builder) nextLanes(least int, most, order string) Stmt {
	columns := laneColumns.columns()
	name := func(c column) string { return c.Name }
	var cases []string
	for same := len(columns) - 1; same >= least; same-- {
		equal := list(columns[:same], "", func(c column) string { return " and " + c.Name + " = :" + c.Name })
		greater := fmt.Sprintf(" and %s > :%[1]s", columns[same].Name)
		if same == 0 {
			greater += " and state in ('open', 'snoozed')"
		}
		cases = append(cases, fmt.Sprintf(`(select %d as same, {lane columns}, {micros {anchor}} as anchor, {micros {now}} as clock from {tasks} where queue = :queue%s%s
{first %s})`, same, equal, greater, list(columns[same:], ", ", name)))
	}
	b.set("cases", strings.Join(cases, "\nunion all "))
	b.set("heads", list(HeadColumns.columns(), ", ", name))
	b.set("order", order)
	return b.stmt(`
select {heads} from ({cases}) n
order by same desc{order} limit ` + most)
}

// RefreshStatistics makes a server with Caps.CachesStatistics read its statistics
// of the index of tasks again.
func RefreshStatistics(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
show index from {tasks}`)
}
