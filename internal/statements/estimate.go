package statements

import (
	"slices"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// These statements estimate the number of tasks without reading all of them: on PostgreSQL
// through a sample of the table's pages, and on engines with InnoDB through the number of index
// entries that the optimizer expects in the range of a lane.

// NoJIT turns the compilation of statements off until the transaction ends. It is for servers
// whose catalog is PgCatalog.
const NoJIT = "set local jit = off"

// QueueLane is a lane and its queue.
type QueueLane struct {
	Queue string
	Lane
}

// QueueLaneColumns are the columns of a result of [AllLanes].
var QueueLaneColumns = join(
	Columns[QueueLane]{col("queue", Text, func(l *QueueLane) any { return &l.Queue })},
	within(laneColumns, func(l *QueueLane) *Lane { return &l.Lane }))

// TablePages selects how many pages the table of tasks has, and how many tasks, which is -1
// if the server has not counted them. It is for servers whose catalog is PgCatalog.
// Parameters: table, as for [Facts].
func TablePages(s dialect.Server) Stmt {
	return newBuilder(s, dialect.Tables{}).stmt(`
select pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint, c.reltuples::bigint from pg_catalog.pg_class c
where c.oid = pg_catalog.to_regclass({text :table})::oid`)
}

// SamplePages counts the tasks in each :step-th page of the table from page :first to :last
// as [CountColumns]. It reads the first :slots places for rows of a page. It is for servers
// whose catalog is PgCatalog. TABLESAMPLE would take random pages. Tasks that were enqueued
// together are neighbors, and TABLESAMPLE would find many or few of them by chance.
func SamplePages(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("counted", CountColumns.list("", map[string]string{"tasks": "count(*)"}))
	return b.stmt(`
select {counted} from {tasks}
where ctid = any (array(select ('(' || p::text || ',' || i::text || ')')::tid
	from pg_catalog.generate_series({int :first}, {int :last}, {int :step}) p, pg_catalog.generate_series(1::bigint, {int :slots}) i))
group by queue, kind, state`)
}

// AllLanes selects the first :limit lanes of all queues and states as [QueueLaneColumns]. It
// jumps from lane to lane in the index. It is for servers with Caps.LaneExpression and
// Caps.Lateral.
func AllLanes(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("found", QueueLaneColumns.list("", nil))
	return b.stmt(`
with recursive found as ((select {lane text} as lane, {found} from {tasks}
order by {lane text}, updated_at limit 1)
union all
select next.* from found cross join lateral (select {lane text} as lane, {found} from {tasks}
where {lane text} > found.lane
order by {lane text}, updated_at limit 1) next)
select {found} from found limit :limit`)
}

// CountLanes counts the tasks of each lane of a batch, up to :limit, as [CountColumns]. The
// batch has [QueueLaneColumns]. It is for servers with Caps.LaneExpression and Caps.Lateral.
func CountLanes(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("lanes", func() string { return arrays{}.from(b, "l", QueueLaneColumns.columns()) })
	b.set("in lane", "{lane text} = "+laneText("l.queue", func(c column) string { return "l." + c.Name }))
	b.set("counted", CountColumns.list("l.", map[string]string{"tasks": "t.n"}))
	return b.stmt(`
select {counted} from {lanes}
cross join lateral (select count(*) as n from (select 1 from {tasks} where {in lane} limit :limit) c) t`)
}

// LaneRange is the part of a lane from an anchor on and before another one.
type LaneRange struct {
	QueueLane
	Since, Until int64
}

// LaneRangeColumns are the columns of the batch of [LaneRanges].
var LaneRangeColumns = join(
	within(QueueLaneColumns, func(r *LaneRange) *QueueLane { return &r.QueueLane }),
	Columns[LaneRange]{
		col("since", Int, func(r *LaneRange) any { return &r.Since }),
		col("until", Int, func(r *LaneRange) any { return &r.Until }),
	})

// LaneRanges selects from each range of a batch. It is not run: its plan has the number of
// tasks that the server expects in each range, in their order. The batch has
// [LaneRangeColumns]. It is for servers with Caps.Rows Unions.
func LaneRanges(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.batch, b.size = LaneRangeColumns.columns(), size
	ranges := make([]string, size)
	for i := range ranges {
		cell := func(name string) string {
			return b.cell(i, slices.IndexFunc(b.batch, func(c column) bool { return c.Name == name }))
		}
		conditions := list(QueueLaneColumns.columns(), " and ", func(c column) string { return c.Name + " = " + cell(c.Name) })
		ranges[i] = b.expand("select 1 from {tasks} where " + conditions + " and updated_at >= {moment " + cell("since") + "} and updated_at < {moment " + cell("until") + "}")
	}
	return b.stmt(strings.Join(ranges, "\nunion all "))
}

// LaneEnds selects the first :limit lanes of all queues and states, from the first anchor
// of each to the last, as [LaneRangeColumns]. It is for servers with Caps.LooseScan: it jumps
// from one end of a lane to the other in the index, once the engine's statistics include the lanes.
func LaneEnds(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("ends", LaneRangeColumns.list("", map[string]string{"since": "{micros min(updated_at)}", "until": "{micros max(updated_at)} + 1"}))
	b.set("lane", QueueLaneColumns.list("", nil))
	return b.stmt(`
select {ends} from {tasks}
group by {lane} limit :limit`)
}

// CountRange counts the tasks of a range, up to :limit.
// Parameters: queue, the lane (see [SetLane]), since, until, limit.
func CountRange(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setInLane(laneParam)
	return b.stmt(`
select count(*) from (select 1 from {tasks}
where {in lane} and updated_at >= {moment {int :since}} and updated_at < {moment {int :until}} limit :limit) t`)
}

// IDRange is the IDs from Since on and before Until.
type IDRange struct{ Since, Until int64 }

// IDRangeColumns are the columns of the batch of [IDSpans] and [SampleIDs].
var IDRangeColumns = Columns[IDRange]{
	col("since", Int, func(r *IDRange) any { return &r.Since }),
	col("until", Int, func(r *IDRange) any { return &r.Until }),
}

// IDSpans selects the first ID of a task in each range of a batch of size ranges, and the one after the last, or 0
// and 0, and the range's place in the batch. The batch has [IDRangeColumns].
func IDSpans(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("in range", "id >= {of since} and id < {of until}")
	return b.united(IDRangeColumns.columns(), size, `select coalesce((select min(id) from {tasks} where {in range}), 0), coalesce((select max(id) from {tasks} where {in range}), -1) + 1, {place}`)
}

// CountFirst counts the tasks, up to :limit.
func CountFirst(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select count(*) from (select 1 from {tasks} limit :limit) t`)
}

// Sampled is the number of tasks of a group in a sample, with the first and the last of their IDs.
type Sampled struct {
	Count
	First, Last int64
}

// SampledColumns are the columns of a result of [SampleIDs].
var SampledColumns = join(
	within(CountColumns, func(s *Sampled) *Count { return &s.Count }),
	Columns[Sampled]{
		col("first", Int, func(s *Sampled) any { return &s.First }),
		col("last", Int, func(s *Sampled) any { return &s.Last }),
	})

// SampleIDs counts the first :limit tasks in each range of a batch of size ranges, as [SampledColumns] and the range's
// place in the batch. The batch has [IDRangeColumns].
func SampleIDs(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.set("counted", SampledColumns.list("", map[string]string{"tasks": "count(*)", "first": "min(id)", "last": "max(id)"}))
	return b.united(IDRangeColumns.columns(), size, `select {counted}, {place} from (select id, queue, kind, state from {tasks}
where id >= {of since} and id < {of until} order by id limit :limit) t
group by queue, kind, state`)
}
