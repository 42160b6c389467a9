package statements

import (
	"database/sql"
	"slices"

	"github.com/falldue/falldue/dialect"
)

// Definition is what a schedule enqueues and when, as code defines it.
type Definition struct {
	Name        string
	Spec        string
	Zone        string
	Missed      int // what becomes of missed ticks: -1 nothing, 0 one task, n up to n tasks
	Alone       int // 1: no task while the last one is not finished
	PerTick     int // 1: the program makes the task of each tick; of what follows, only Queue and Kind are set
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

// SchedulePause is whether a schedule is paused. What follows Paused is of one that is.
type SchedulePause struct {
	Paused    int   // 1: it is
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
		col("unfinished", Int, func(s *Schedule) any { return &s.Unfinished }),
		col("now", Moment, func(s *Schedule) any { return &s.Now }),
	})

// ReadSchedules selects all schedules as [ScheduleColumns], ordered by name.
func ReadSchedules(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("schedule", ScheduleColumns.list("t.", map[string]string{
		"unfinished": "case when " + isUnfinished + " then 1 else 0 end", "now": "{now}",
	}))
	return b.stmt(`
select {schedule} from {schedules} t left join {tasks} k on k.id = t.last_task
order by t.name`)
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

// ChangeSchedule replaces the definition of a schedule that has the hash :was and whose next
// tick is :was_next. Its other parameters have the names of [DefinitionColumns].
func ChangeSchedule(s dialect.Server, tables dialect.Tables) Stmt {
	b := definitionBuilder(s, tables)
	b.set("set", list(DefinitionColumns.columns()[1:], ", ", func(c column) string { return c.Name + " = {value " + c.Name + "}" }))
	return b.stmt(`
update {schedules} set {set}
where name = :name and hash = :was and next_at = {moment {int :was_next}}`)
}

// MoveSchedule moves the next tick of a schedule from :was_next, which must be due, to :next.
// It is a compare-and-set: of all that move one tick, one does. Parameters: name, hash,
// last_task, was_next, next.
func MoveSchedule(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {schedules} set next_at = {moment {int :next}}
where name = :name and hash = :hash and last_task = :last_task and paused = 0
	and next_at = {moment {int :was_next}} and next_at <= {now}`)
}

// SetSchedule sets whether a schedule is paused from now on, which it was as :was_paused says, by
// whom and why, and moves its next tick from :was_next to :next. Parameters: name, was_paused,
// paused, paused_by, paused_why, was_next, next.
func SetSchedule(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {schedules} set paused = :paused, paused_at = {now}, paused_by = :paused_by, paused_why = :paused_why,
	next_at = {moment {int :next}}
where name = :name and paused = :was_paused and next_at = {moment {int :was_next}}`)
}

// NoteScheduled says which task a schedule has enqueued. Parameters: name, task.
func NoteScheduled(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {schedules} set last_task = :task, last_at = {now} where name = :name`)
}

// DropSchedule deletes a schedule. Parameters: name.
func DropSchedule(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
delete from {schedules} where name = :name`)
}
