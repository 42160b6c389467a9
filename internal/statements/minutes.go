package statements

import (
	"database/sql"
	"strconv"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// Step is the length of the spans of time for which sums are kept, in seconds.
type Step int64

// The steps. Each has rows of its own, so that long times are read as fast as short ones.
const (
	Minute     Step = 60
	TenMinutes Step = 600
	Hour       Step = 3600
)

// Steps lists all steps.
var Steps = []Step{Minute, TenMinutes, Hour}

// Buckets is the number of buckets of a [Distribution].
const Buckets = 8

// Distribution counts durations by their length, in microseconds.
type Distribution struct {
	Sum, Max int64
	// In has the counts: up to 10 ms, 100 ms, 1 s, 10 s, 1 min, 10 min, 1 h, and more.
	In [Buckets]int64
}

// Sums is what happened to the tasks of a queue and a kind in a span of time.
type Sums struct {
	Queue, Kind                                                    string
	Started, Done, Failed, Dead, Snoozed, Cancelled, Lost, Expired int64
	Run, Lag                                                       Distribution
	// Waiting, DeadNow and OldestDue were measured in the span. They are null without a measurement.
	Waiting, DeadNow, OldestDue sql.Null[int64]
}

// SpanSums are the sums of a span.
type SpanSums struct {
	Span int64 // one of Steps
	At   int64 // when it begins, in a result
	Sums
}

// These columns merge the minutes of several workers: added by the sum, greatest by the greatest value, and measured
// by the last value, except oldest_due_us, which keeps the greatest.
var (
	added = join(
		Columns[Sums]{
			col("started", Int, func(s *Sums) any { return &s.Started }),
			col("done", Int, func(s *Sums) any { return &s.Done }),
			col("failed", Int, func(s *Sums) any { return &s.Failed }),
			col("dead", Int, func(s *Sums) any { return &s.Dead }),
			col("snoozed", Int, func(s *Sums) any { return &s.Snoozed }),
			col("cancelled", Int, func(s *Sums) any { return &s.Cancelled }),
			col("lost", Int, func(s *Sums) any { return &s.Lost }),
			col("expired", Int, func(s *Sums) any { return &s.Expired }),
			col("run_us", Int, func(s *Sums) any { return &s.Run.Sum }),
			col("lag_us", Int, func(s *Sums) any { return &s.Lag.Sum }),
		},
		bucketColumns("run", func(s *Sums) *Distribution { return &s.Run }),
		bucketColumns("lag", func(s *Sums) *Distribution { return &s.Lag }))
	greatest = Columns[Sums]{
		col("run_max_us", Int, func(s *Sums) any { return &s.Run.Max }),
		col("lag_max_us", Int, func(s *Sums) any { return &s.Lag.Max }),
	}
	measured = Columns[Sums]{
		col("waiting", Int, func(s *Sums) any { return &s.Waiting }),
		col("dead_now", Int, func(s *Sums) any { return &s.DeadNow }),
		col("oldest_due_us", Int, func(s *Sums) any { return &s.OldestDue }),
	}
)

func bucketColumns(name string, of func(*Sums) *Distribution) (list Columns[Sums]) {
	for i := range Buckets {
		list = append(list, col(name+"_"+strconv.Itoa(i), Int, func(s *Sums) any { return &of(s).In[i] }))
	}
	return list
}

// MinuteColumns are the columns of the batch of [AddMinutes].
var MinuteColumns = join(
	Columns[SpanSums]{
		col("span", Int, func(s *SpanSums) any { return &s.Span }),
		col("queue", Text, func(s *SpanSums) any { return &s.Queue }),
		col("kind", Text, func(s *SpanSums) any { return &s.Kind }),
	},
	within(join(added, greatest, measured), func(s *SpanSums) *Sums { return &s.Sums }))

// AddMinutes adds sums to the spans that include the time :back microseconds ago. The
// batch has [MinuteColumns], on engines without arrays exactly size rows.
func AddMinutes(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	columns := MinuteColumns.columns()
	source := b.withBatch(columns, size)
	b.set("then", "{micros {shift {now}, -({int :back})}}")
	// Whole spans since 1970. MariaDB's Oracle mode has no operator %.
	begin := func(span string) string { return b.expand("{moment {then} - mod({then}, " + span + " * 1000000)}") }
	old, stored := "t.", func(column string) string { return "excluded." + column }
	b.set("or add", " on conflict (span, at, queue, kind) do update\n\tset {sets}")
	b.set("alias", " as t")
	if s.Caps.Upsert == dialect.OnDuplicateKey {
		old, stored = "", func(column string) string { return "values(" + column + ")" }
		b.set("or add", " on duplicate key update {sets}")
		b.set("alias", "")
	}
	var sets []string
	for _, c := range added.columns() {
		sets = append(sets, c.Name+" = "+old+c.Name+" + "+stored(c.Name))
	}
	for _, c := range greatest.columns() {
		sets = append(sets, c.Name+" = {greatest "+old+c.Name+", "+stored(c.Name)+"}")
	}
	for _, c := range measured.columns() {
		last := "coalesce(" + stored(c.Name) + ", " + old + c.Name + ")"
		if c.Name == "oldest_due_us" {
			last = "{greatest " + last + ", coalesce(" + old + c.Name + ", " + stored(c.Name) + ")}"
		}
		sets = append(sets, c.Name+" = "+last)
	}
	b.set("sets", strings.Join(sets, ", "))
	b.set("columns", "at, "+list(columns, ", ", func(c column) string { return c.Name }))
	if source.inValues() {
		b.set("rows", func() string {
			return b.values(columns, func(cells []string) string { return commas(append([]string{begin(cells[0])}, cells...)) })
		})
		return b.stmt(`
insert into {minutes}{alias} ({columns})
values {rows}{or add}`)
	}
	b.set("begin", func() string { return begin("s.span") })
	return b.stmt(`
insert into {minutes}{alias} ({columns}) select {begin}, s.* from {batch}
where true{or add}`)
}

// MinuteParams decide how [ReadMinutes] groups sums: by span, and then by queue or by queue and kind.
type MinuteParams struct{ ByQueue, ByKind bool }

// ReadMinutes selects the sums of a span from one time to another, in microseconds since 1970, as
// [SpanSumsColumns], in the order of time. Parameters: span, since, upto, queue, kind,
// and all_queues = 1 and all_kinds = 1 for the sums of all. See [MarkEdges] for why they are not compared with "".
func ReadMinutes(s dialect.Server, tables dialect.Tables, p MinuteParams) Stmt {
	b := newBuilder(s, tables)
	whole := func(expr string) string { return s.Cast(expr, dialect.Int) } // sums are decimals
	exprs := map[string]string{"span": whole("min(t.span)"), "queue": "''", "kind": "''"}
	group := "t.at"
	if p.ByQueue || p.ByKind {
		exprs["queue"], group = "t.queue", group+", t.queue"
	}
	if p.ByKind {
		exprs["kind"], group = "t.kind", group+", t.kind"
	}
	for _, c := range added.columns() {
		exprs[c.Name] = whole("sum(t." + c.Name + ")")
	}
	for _, c := range greatest.columns() {
		exprs[c.Name] = "max(t." + c.Name + ")"
	}
	for _, c := range measured.columns() {
		exprs[c.Name] = whole("sum(t." + c.Name + ")")
	}
	exprs["oldest_due_us"] = "max(t.oldest_due_us)"
	b.set("sums", SpanSumsColumns.list("t.", exprs))
	b.set("group", group)
	return b.stmt(`
select {sums} from {minutes} t
where t.span = {int :span} and t.at >= {moment {int :since}} and t.at < {moment {int :upto}}
and ({int :all_queues} = 1 or t.queue = {text :queue}) and ({int :all_kinds} = 1 or t.kind = {text :kind})
group by {group} order by {group}`)
}

// SpanSumsColumns are the columns of a result of [ReadMinutes].
var SpanSumsColumns = join(Columns[SpanSums]{col("at", Moment, func(s *SpanSums) any { return &s.At })}, MinuteColumns)

// OldMinutes selects the beginning of one of the rows of sums that are older than :keep microseconds: the row after
// the first :skip ones, if there are more. Parameters: span, keep, skip.
func OldMinutes(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select {micros at} from {minutes}
where span = {int :span} and at < {shift {now}, -({int :keep})} order by at limit 1 offset :skip`)
}

// DropMinutes deletes the sums of spans that began at :upto, or before, and are older than :keep
// microseconds. Parameters: span, upto, keep.
func DropMinutes(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
delete from {minutes} where span = {int :span} and at <= {moment {int :upto}} and at < {shift {now}, -({int :keep})}`)
}
