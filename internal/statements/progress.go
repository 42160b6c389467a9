package statements

import "github.com/falldue/falldue/dialect"

// Progress is how far a run has come, in a row of its own for each task: a row of tasks
// that grew would make InnoDB split its page.
type Progress struct {
	Key
	Millionths int // of the work
	Message    string
}

// ProgressColumns are the columns of the batch of [PutProgress].
var ProgressColumns = join(
	within(FenceColumns, func(p *Progress) *Key { return &p.Key }),
	Columns[Progress]{
		col("millionths", Int, func(p *Progress) any { return &p.Millionths }),
		col("message", Text, func(p *Progress) any { return &p.Message }),
	})

// Reported is the progress of a task as [ReadProgress] returns it.
type Reported struct {
	Progress
	Updated int64
}

// ReportedColumns are the columns of a result of [ReadProgress].
var ReportedColumns = join(
	within(ProgressColumns, func(r *Reported) *Progress { return &r.Progress }),
	Columns[Reported]{col("updated_at", Moment, func(r *Reported) any { return &r.Updated })})

// PutProgress stores the progress of tasks, and replaces their earlier progress. The batch
// has [ProgressColumns], on engines without arrays exactly size rows.
func PutProgress(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	columns := ProgressColumns.columns()
	source := b.withBatch(columns, size)
	switch s.Caps.Upsert {
	case dialect.OnConflict:
		b.set("or replace", ` on conflict (task_id) do update
	set fence = excluded.fence, millionths = excluded.millionths, message = excluded.message, updated_at = excluded.updated_at`)
	case dialect.OnDuplicateKey:
		b.set("or replace", ` on duplicate key update
	fence = values(fence), millionths = values(millionths), message = values(message), updated_at = values(updated_at)`)
	}
	b.set("columns", "task_id, fence, millionths, message, updated_at")
	if source.inValues() {
		b.set("rows", func() string {
			return b.values(columns, func(cells []string) string { return commas(append(cells, b.hole("now"))) })
		})
		return b.stmt(`
insert into {progress} ({columns})
values {rows}{or replace}`)
	}
	return b.stmt(`
insert into {progress} ({columns}) select s.*, {now} from {batch}
where true{or replace}`)
}

// ReadProgress selects the progress of a task as [ReportedColumns]. Parameters: id.
func ReadProgress(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("reported", ReportedColumns.list("", map[string]string{"task_fence": "fence"}))
	return b.stmt(`
select {reported} from {progress} where task_id = :id`)
}

// OrphanedProgress selects the IDs of up to :limit tasks that are gone, but have progress stored.
func OrphanedProgress(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select p.task_id from {progress} p
where not exists (select 1 from {tasks} t where t.id = p.task_id) limit :limit`)
}

// DropProgress drops the progress of tasks. The batch has [IDColumns].
func DropProgress(s dialect.Server, tables dialect.Tables, size int) Stmt {
	b := newBuilder(s, tables)
	source := b.withBatch(IDColumns.columns(), size)
	b.setKeys(source, "task_id")
	b.set("table", "{progress}")
	return b.stmt(source.delete())
}
