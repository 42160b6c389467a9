package statements

import (
	"database/sql"
	"slices"

	"github.com/falldue/falldue/dialect"
)

// Definition has the tasks that a schedule enqueues, and their times, as code defines them.
type Definition struct {
	Name        string
	Spec        string
	Zone        string
	Missed      int // the tasks of missed ticks: -1 is none, 0 is one task, n is up to n tasks
	Alone       int // 1: no task while the last one is not finished
	PerTick     int // 1: the program makes the task of each tick; of the task's fields, only Queue and Kind are set
	Queue       string
	Kind        string
	Priority    int
	Key         string
	MaxAttempts int
	Payload     string
	Metadata    sql.Null[string] // JSON
	Hash        string           // of all of the above
	DefinedBy   string
	Defined     int64 // when
	Started     int64 // from where intervals count
	Next        int64 // the next tick
}

// SchedulePause describes whether a schedule is paused. Only paused schedules use the fields after Paused.
type SchedulePause struct {
	Paused    int   // 1 if it is
	PausedAt  int64 // since when
	PausedBy  string
	PausedWhy string
}

// Schedule is a schedule as [ReadSchedules] returns it.
type Schedule struct {
	Definition
	SchedulePause
	Last       int64 // when a task was last enqueued; 0 is never
	LastTask   int64
	Asked      int64 // since when a process with another definition asks which process has this one; 0 if none asks
	Unfinished int   // 1 if the last task is not finished
	Now        int64 // by the database's clock
}

// DefinitionColumns are the columns of a definition, and the parameters of [PutSchedule]
// and [ChangeSchedule].
var DefinitionColumns = Columns[Definition]{
	col("name", Text, func(d *Definition) any { return &d.Name }),
	col("spec", Text, func(d *Definition) any { return &d.Spec }),
	col("zone", Text, func(d *Definition) any { return &d.Zone }),
	col("missed", Int, func(d *Definition) any { return &d.Missed }),
	col("alone", Int, func(d *Definition) any { return &d.Alone }),
	col("per_tick", Int, func(d *Definition) any { return &d.PerTick }),
	col("queue", Text, func(d *Definition) any { return &d.Queue }),
	col("kind", Text, func(d *Definition) any { return &d.Kind }),
	col("priority", Int, func(d *Definition) any { return &d.Priority }),
	col("task_key", Text, func(d *Definition) any { return &d.Key }),
	col("max_attempts", Int, func(d *Definition) any { return &d.MaxAttempts }),
	col("payload", JSON, func(d *Definition) any { return &d.Payload }),
	col("metadata", JSON, func(d *Definition) any { return &d.Metadata }),
	col("hash", Text, func(d *Definition) any { return &d.Hash }),
	col("defined_by", Text, func(d *Definition) any { return &d.DefinedBy }),
	col("defined_at", Moment, func(d *Definition) any { return &d.Defined }),
	col("started_at", Moment, func(d *Definition) any { return &d.Started }),
	col("next_at", Moment, func(d *Definition) any { return &d.Next }),
}

// SchedulePauseColumns are the columns of a pause, and parameters of [PutSchedule].
var SchedulePauseColumns = Columns[SchedulePause]{
	col("paused", Int, func(p *SchedulePause) any { return &p.Paused }),
	col("paused_at", Moment, func(p *SchedulePause) any { return &p.PausedAt }),
	col("paused_by", Text, func(p *SchedulePause) any { return &p.PausedBy }),
	col("paused_why", Text, func(p *SchedulePause) any { return &p.PausedWhy }),
}

// ScheduleColumns are the columns of a result of [ReadSchedules].
var ScheduleColumns = join(
	within(DefinitionColumns, func(s *Schedule) *Definition { return &s.Definition }),
	within(SchedulePauseColumns, func(s *Schedule) *SchedulePause { return &s.SchedulePause }),
	Columns[Schedule]{
		col("last_at", Moment, func(s *Schedule) any { return &s.Last }),
		col("last_task", Int, func(s *Schedule) any { return &s.LastTask }),
		col("asked_at", Moment, func(s *Schedule) any { return &s.Asked }),
		col("unfinished", Int, func(s *Schedule) any { return &s.Unfinished }),
		col("clock", Moment, func(s *Schedule) any { return &s.Now }),
	})

// NameColumns are the columns of a batch of names of schedules.
var NameColumns = Columns[string]{col("name", Text, func(name *string) any { return name })}

// DueSchedule is a schedule as [LockDue] returns it. A tick is taken only if these fields are as they
// were read.
type DueSchedule struct {
	Name, Hash     string
	Next, LastTask int64
}

// DueScheduleColumns are the columns of a result of [LockDue].
var DueScheduleColumns = Columns[DueSchedule]{
	col("name", Text, func(d *DueSchedule) any { return &d.Name }),
	col("hash", Text, func(d *DueSchedule) any { return &d.Hash }),
	col("next_at", Moment, func(d *DueSchedule) any { return &d.Next }),
	col("last_task", Int, func(d *DueSchedule) any { return &d.LastTask }),
}

// MovedSchedule is a schedule as it was read, and its next tick.
type MovedSchedule struct {
	DueSchedule
	To int64
}

// MovedScheduleColumns are the columns of the batch of [MoveSchedules].
var MovedScheduleColumns = Columns[MovedSchedule]{
	col("name", Text, func(m *MovedSchedule) any { return &m.Name }),
	col("next_tick", Int, func(m *MovedSchedule) any { return &m.To }),
	col("hash", Text, func(m *MovedSchedule) any { return &m.Hash }),
	col("last_task", Int, func(m *MovedSchedule) any { return &m.LastTask }),
	col("was", Int, func(m *MovedSchedule) any { return &m.Next }),
}

// ScheduledTask is the task that a schedule has enqueued.
type ScheduledTask struct {
	Name string
	Task int64
}

// ScheduledTaskColumns are the columns of the batch of [NoteScheduled].
var ScheduledTaskColumns = Columns[ScheduledTask]{
	col("name", Text, func(s *ScheduledTask) any { return &s.Name }),
	col("task", Int, func(s *ScheduledTask) any { return &s.Task }),
}

// ReadSchedules selects all schedules as [ScheduleColumns], ordered by name.
func ReadSchedules(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.setSchedule()
	return b.stmt(`
select {schedule} from {schedules} t left join {tasks} k on k.id = t.last_task
order by t.name`)
}

// SchedulesByName selects schedules as [ScheduleColumns]. The batch has [NameColumns].
func SchedulesByName(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setSchedule()
	b.setNames(NameColumns.columns(), size)
	return b.stmt(`
select {schedule} from {schedules} t left join {tasks} k on k.id = t.last_task
where {of names}`)
}

// setSchedule sets the fragment {schedule}, the columns of a schedule t whose last task is k.
func (b *builder) setSchedule() {
	b.set("schedule", ScheduleColumns.list("t.", map[string]string{
		"unfinished": "case when " + isUnfinished + " then 1 else 0 end", "clock": "{now}",
	}))
}

// setNames sets the fragments for a batch whose first column is the name of a schedule: {of
// names} is true for the schedules t of the batch, {second} is the value of its second column
// for t, and {wide batch} is the batch with texts of any length.
func (b *builder) setNames(columns []column, size int) {
	source := b.withBatch(columns, size)
	b.setKeys(source, "name")
	wide := func(columns []column) string {
		if u, ok := source.(unions); ok {
			return u.wide(b, "s", columns)
		}
		return source.from(b, "s", columns)
	}
	b.set("of names", func() string {
		if source.byKey() {
			return b.expand("{keys}")
		}
		return "t.name = any(array(select s.name from " + source.from(b, "s", columns[:1]) + "))"
	})
	b.set("second", func() string {
		return "(select s." + columns[1].Name + " from " + wide(columns[:2]) + " where s.name = t.name)"
	})
	b.set("wide batch", func() string { return wide(columns) })
}

// definitionBuilder returns a builder that knows {columns} and {value} of a definition.
func definitionBuilder(s dialect.Server, tables dialect.Tables) *builder {
	b := newBuilder(s, tables)
	b.set("value", func(name string) string {
		switch name {
		case "defined_at", "started_at", "next_at", "paused_at":
			return b.expand("{moment {int :" + name + "}}")
		case "payload", "metadata":
			return b.expand("{json {text :" + name + "}}")
		}
		return b.param(name)
	})
	return b
}

// PutSchedule stores a schedule, unless it is there. Its parameters have the names of
// [DefinitionColumns] and [SchedulePauseColumns].
func PutSchedule(s dialect.Server, tables dialect.Tables) Stmt {
	b := definitionBuilder(s, tables)
	switch s.Caps.Upsert {
	case dialect.OnConflict:
		b.set("unless there", "on conflict do nothing")
	case dialect.OnDuplicateKey:
		b.set("unless there", "on duplicate key update last_task = last_task")
	}
	columns := slices.Concat(DefinitionColumns.columns(), SchedulePauseColumns.columns())
	b.set("columns", list(columns, ", ", func(c column) string { return c.Name }))
	b.set("values", list(columns, ", ", func(c column) string { return "{value " + c.Name + "}" }))
	return b.stmt(`
insert into {schedules} ({columns}) values ({values}) {unless there}`)
}

// ChangeSchedule replaces the definition of a schedule if the schedule still has the hash :was, the
// next tick :was_next and the time of asking :was_asked. Its other parameters have the names of
// [DefinitionColumns].
func ChangeSchedule(s dialect.Server, tables dialect.Tables) Stmt {
	b := definitionBuilder(s, tables)
	b.set("set", list(DefinitionColumns.columns()[1:], ", ", func(c column) string { return c.Name + " = {value " + c.Name + "}" }))
	return b.stmt(`
update {schedules} set {set}, asked_at = {moment 0}
where name = :name and hash = :was and next_at = {moment {int :was_next}} and asked_at = {moment {int :was_asked}}`)
}

// LockDue selects those schedules of a batch that are due and not paused, as
// [DueScheduleColumns], and locks their rows. With wait, it waits for rows that other transactions
// have locked. Otherwise it leaves these rows out, where the engine can. The batch has [NameColumns].
func LockDue(s dialect.Server, tables dialect.Tables, size int, wait bool) Stmt {
	b := newBuilder(s, tables)
	b.setNames(NameColumns.columns(), size)
	b.set("due", DueScheduleColumns.list("t.", nil))
	if wait && s.Caps.LockRows {
		b.set("for update", " for update")
	}
	return b.stmt(`
select {due} from {schedules} t
where {of names} and t.paused = 0 and t.next_at <= {now}{for update}`)
}

// MoveSchedules moves the next ticks of schedules that are due. It is a compare-and-set, even
// where [LockDue] locks nothing: of all processes that try to move one tick, one does. The batch has
// [MovedScheduleColumns].
func MoveSchedules(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setNames(MovedScheduleColumns.columns(), size)
	return b.stmt(`
update {schedules} as t set next_at = {moment {second}}
where {of names} and t.paused = 0 and t.next_at <= {now} and exists (
	select 1 from {wide batch} where s.name = t.name and s.hash = t.hash and s.last_task = t.last_task and {moment s.was} = t.next_at)`)
}

// SetSchedule sets whether a schedule is paused from now on, by whom and why, and moves its next tick to
// :next, if the schedule still has :was_paused and :was_next. Parameters: name, was_paused, paused,
// paused_by, paused_why, was_next, next.
func SetSchedule(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {schedules} set paused = :paused, paused_at = {now}, paused_by = :paused_by, paused_why = :paused_why,
	next_at = {moment {int :next}}
where name = :name and paused = :was_paused and next_at = {moment {int :was_next}}`)
}

// AskSchedules notes that a process with another definition asks which process has the schedules' definitions.
// The batch has [NameColumns].
func AskSchedules(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setNames(NameColumns.columns(), size)
	return b.stmt(`
update {schedules} as t set asked_at = {now} where {of names} and t.asked_at = {moment 0}`)
}

// AnswerSchedules notes that a process has the definitions of schedules. The batch has
// [NameColumns].
func AnswerSchedules(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setNames(NameColumns.columns(), size)
	return b.stmt(`
update {schedules} as t set asked_at = {moment 0} where {of names}`)
}

// NoteScheduled notes the tasks that schedules have enqueued. The batch has
// [ScheduledTaskColumns].
func NoteScheduled(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	b.setNames(ScheduledTaskColumns.columns(), size)
	return b.stmt(`
update {schedules} as t set last_task = {second}, last_at = {now} where {of names}`)
}

// DropSchedule deletes a schedule. Parameters: name.
func DropSchedule(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
delete from {schedules} where name = :name`)
}
