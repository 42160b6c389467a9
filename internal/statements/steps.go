package statements

import (
	"database/sql"

	"github.com/falldue/falldue/dialect"
)

// StepRow is a step of a task: done if it has a result, and begun otherwise.
type StepRow struct {
	Key            // the claim that wrote last
	N       int    // from 1
	Name    string // of the step
	Crashes int    // runs that were lost while the step ran
	Cursor  sql.Null[string]
	Result  sql.Null[string]
	Begins  int // 1 if it begins now; no column of a result
}

// stepColumns are the columns of a step.
var stepColumns = join(
	within(FenceColumns, func(s *StepRow) *Key { return &s.Key }),
	Columns[StepRow]{
		col("n", Int, func(s *StepRow) any { return &s.N }),
		col("name", Text, func(s *StepRow) any { return &s.Name }),
		col("crashes", Int, func(s *StepRow) any { return &s.Crashes }),
		col("step_cursor", JSON, func(s *StepRow) any { return &s.Cursor }),
		col("result", JSON, func(s *StepRow) any { return &s.Result }),
	})

// SetStep sets the parameters of [PutStep].
func SetStep(values Values, s *StepRow) {
	stepColumns.Set(values, s)
	values["begins"] = int64(s.Begins)
}

// StoredStep is a step as [ReadSteps] returns it.
type StoredStep struct {
	StepRow
	Started, Updated int64
}

// StoredStepColumns are the columns of a result of [ReadSteps].
var StoredStepColumns = join(
	within(stepColumns, func(s *StoredStep) *StepRow { return &s.StepRow }),
	Columns[StoredStep]{
		col("started_at", Moment, func(s *StoredStep) any { return &s.Started }),
		col("updated_at", Moment, func(s *StoredStep) any { return &s.Updated }),
	})

// HoldClaim selects the ID of the task of a claim that :worker holds, and locks its row until the
// transaction ends, where the engine can. It waits for a row that another transaction has locked.
// Parameters: task_id, task_fence, worker.
func HoldClaim(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("hold", "")
	if s.Caps.LockRows {
		b.set("hold", " for update")
	}
	return b.stmt(`
select id from {tasks} where id = :task_id and fence = :task_fence and claimed_by = :worker{hold}`)
}

// PutStep stores a step, over an earlier state of the step. Parameters: see [SetStep].
func PutStep(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	switch s.Caps.Upsert {
	case dialect.OnConflict:
		b.set("or replace", `on conflict (task_id, n) do update set name = excluded.name, fence = excluded.fence, crashes = excluded.crashes,
	step_cursor = excluded.step_cursor, result = excluded.result, updated_at = excluded.updated_at,
	started_at = case when {int :begins} = 1 then excluded.started_at else t.started_at end`)
		b.set("t", " as t")
	case dialect.OnDuplicateKey:
		b.set("or replace", `on duplicate key update name = values(name), fence = values(fence), crashes = values(crashes),
	step_cursor = values(step_cursor), result = values(result), updated_at = values(updated_at),
	started_at = case when :begins = 1 then values(started_at) else started_at end`)
		b.set("t", "")
	}
	return b.stmt(`
insert into {steps}{t} (task_id, fence, n, name, crashes, step_cursor, result, started_at, updated_at)
values (:task_id, :task_fence, :n, :name, :crashes, {json {text :step_cursor}}, {json {text :result}}, {now}, {now})
{or replace}`)
}

// ReadSteps selects the steps of a task as [StoredStepColumns], in their order. Parameters: id.
func ReadSteps(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("stored", StoredStepColumns.list("", map[string]string{"task_fence": "fence"}))
	return b.stmt(`
select {stored} from {steps} where task_id = :id order by n`)
}

// LostSteps selects the steps that claims have begun and not finished: the task's ID and the step's name, in the order
// of a task's steps. The batch has [FenceColumns].
func LostSteps(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(FenceColumns.columns(), size)
	b.setKeys(source, "task_id", "fence")
	if source.byKey() {
		return b.stmt(`
select t.task_id, t.name from {steps} t where {keys} and t.result is null order by t.task_id, t.n`)
	}
	return b.stmt(`
select t.task_id, t.name from {batch} join {steps} t on {same key} and t.result is null order by t.task_id, t.n`)
}

// CountCrashes counts lost runs in the steps of [LostSteps]. The batch has [FenceColumns].
func CountCrashes(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(FenceColumns.columns(), size)
	b.setKeys(source, "task_id", "fence")
	if source.byKey() {
		return b.stmt(`
update {steps} as t set crashes = t.crashes + 1 where {keys} and t.result is null`)
	}
	return b.stmt(`
update {steps} as t set crashes = t.crashes + 1 from {batch} where {same key} and t.result is null`)
}

// DropSteps drops the steps of tasks. The batch has [IDColumns].
func DropSteps(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "task_id")
	b.set("table", "{steps}")
	return b.stmt(source.delete())
}

// StepOwners selects the IDs of up to :limit tasks with steps behind :after, in their order, and
// whether each task is gone (1) or not (0).
func StepOwners(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select p.task_id, case when exists (select 1 from {tasks} t where t.id = p.task_id) then 0 else 1 end
from (select distinct task_id from {steps} where task_id > :after order by task_id limit :limit) p
order by p.task_id`)
}
