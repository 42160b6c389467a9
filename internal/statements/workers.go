package statements

import (
	"database/sql"

	"github.com/falldue/falldue/dialect"
)

// Worker is a process that runs tasks, as it announces itself.
type Worker struct {
	ID      string
	Running int              // handlers
	Done    int64            // tasks that succeeded since it started
	Failed  int64            // attempts that failed since it started
	Recent  sql.Null[string] // the numbers that change often, as JSON
	Info    string           // as JSON
}

// StoredWorker is a worker as [ReadWorkers] returns it.
type StoredWorker struct {
	Worker
	Started int64
	Seen    int64
	Now     int64 // by the database's clock
}

// WorkerColumns are the columns of a worker, and the parameters of [Announce] and
// [SeeWorker].
var WorkerColumns = Columns[Worker]{
	col("id", Text, func(w *Worker) any { return &w.ID }),
	col("running", Int, func(w *Worker) any { return &w.Running }),
	col("done", Int, func(w *Worker) any { return &w.Done }),
	col("failed", Int, func(w *Worker) any { return &w.Failed }),
	col("recent", Text, func(w *Worker) any { return &w.Recent }),
	col("info", Text, func(w *Worker) any { return &w.Info }),
}

// StoredWorkerColumns are the columns of a result of [ReadWorkers].
var StoredWorkerColumns = join(
	within(WorkerColumns, func(w *StoredWorker) *Worker { return &w.Worker }),
	Columns[StoredWorker]{
		col("started_at", Moment, func(w *StoredWorker) any { return &w.Started }),
		col("seen_at", Moment, func(w *StoredWorker) any { return &w.Seen }),
		col("clock", Moment, func(w *StoredWorker) any { return &w.Now }),
	})

// Announce stores a worker, or replaces its row. Its parameters have the names of
// [WorkerColumns].
func Announce(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	switch s.Caps.Upsert {
	case dialect.OnConflict:
		b.set("or replace", ` on conflict (id) do update
	set seen_at = excluded.seen_at, running = excluded.running, done = excluded.done, failed = excluded.failed, recent = excluded.recent, info = excluded.info`)
	case dialect.OnDuplicateKey:
		b.set("or replace", ` on duplicate key update
	seen_at = values(seen_at), running = values(running), done = values(done), failed = values(failed), recent = values(recent), info = values(info)`)
	}
	return b.stmt(`
insert into {workers} (id, started_at, seen_at, running, done, failed, recent, info)
values (:id, {now}, {now}, :running, :done, :failed, {json :recent}, {json :info}){or replace}`)
}

// SeeWorker notes that a worker is still there, with its new numbers. Parameters: id,
// running, done, failed, recent.
func SeeWorker(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {workers} set seen_at = {now}, running = {int :running}, done = {int :done}, failed = {int :failed}, recent = {json :recent} where id = :id`)
}

// ReadWorkers selects all workers as [StoredWorkerColumns], in the order in which they started.
func ReadWorkers(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("worker", StoredWorkerColumns.list("", map[string]string{"clock": "{now}"}))
	return b.stmt(`
select {worker} from {workers}
order by started_at, id`)
}

// DropWorker deletes a worker. Parameters: id.
func DropWorker(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
delete from {workers} where id = :id`)
}

// LostWorkers selects the IDs of the workers that have not been seen for :age microseconds.
func LostWorkers(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
select id from {workers} where seen_at <= {shift {now}, -({int :age})}`)
}
