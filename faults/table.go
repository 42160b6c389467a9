package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/ops"
)

// Row is what the database holds of a task at the end of a run.
type Row struct {
	ID    int64
	Key   string
	Kind  string
	State string
	// Attempts and Fence are the columns of the task.
	Attempts int
	Fence    int64
	// Result is the fence that the handler gave as its task's result; 0 where
	// there is none.
	Result int64
	// Transactional reports whether its handler ends it by DoneTx, in one
	// transaction with an effect.
	Transactional bool
	// Expired reports whether it had expired before its enqueue, and Dated whether its ExpireAt made it expire.
	Expired, Dated bool
	// Version counts the changes of its arguments while it waited.
	Version int
	// Unique is the same of tasks of which one alone may be unfinished, or "".
	Unique string
	// CreatedAt is when the task was stored, EndedAt when it ended. FirstAttemptedAt is when
	// its first attempt began that counts, or zero.
	CreatedAt, EndedAt, FirstAttemptedAt time.Time
	// AttemptedAt is when its last claim was made, or zero.
	AttemptedAt time.Time
	// Rated is the key of a task whose starts have a rate, or "".
	Rated string
	// After are the keys of the tasks after which the task runs, and OnDeath is what it does
	// if one of them dies.
	After   []string
	OnDeath onDeath
	// Sequence is the key of the sequence that the task is part of, or "".
	Sequence string
	// Reports says that each run of the task reports progress, and Report is what the database
	// has of it.
	Reports bool
	Report  Report
	// Effects are the fences under which effects were committed.
	Effects []int64
	// Parts are the effects of a task with steps.
	Parts []Part
	// Records are the recorded attempts.
	Records []Record
}

// Record is the record of an attempt that failed or was lost.
type Record struct {
	Fence   int64
	Attempt int
	Outcome string // retried, dead, lost
	Worker  string
}

// createEffects creates the table that transactional jobs write to.
const createEffects = "create table effects (task_id bigint not null, fence bigint not null, part int not null)"

func insertEffect(engine dialect.Name) string {
	if engine == dialect.Postgres {
		return "insert into effects (task_id, fence, part) values ($1, $2, $3)"
	}
	return "insert into effects (task_id, fence, part) values (?, ?, ?)"
}

// ReadTable reads all tasks with their recorded attempts and their effects.
func ReadTable(ctx context.Context, db *sqlx.DB, q *falldue.Queue) ([]Row, error) {
	rows, err := readTasks(ctx, q)
	if err != nil {
		return nil, err
	}
	index := make(map[int64]int, len(rows))
	for i, r := range rows {
		index[r.ID] = i
	}
	var records []struct {
		Task    int64  `db:"task_id"`
		Fence   int64  `db:"fence"`
		Attempt int    `db:"attempt"`
		Outcome string `db:"outcome"`
		Worker  string `db:"worker"`
	}
	if err := db.SelectContext(ctx, &records, "select task_id, fence, attempt, outcome, worker from falldue_attempts order by task_id, fence"); err != nil {
		return nil, err
	}
	for _, r := range records {
		i, ok := index[r.Task]
		if !ok {
			return nil, fmt.Errorf("an attempt of task %d is recorded, which is not in the table", r.Task)
		}
		rows[i].Records = append(rows[i].Records, Record{r.Fence, r.Attempt, r.Outcome, r.Worker})
	}
	var effects []struct {
		Task  int64 `db:"task_id"`
		Fence int64 `db:"fence"`
		Part  int   `db:"part"`
	}
	if err := db.SelectContext(ctx, &effects, "select task_id, fence, part from effects order by part, fence"); err != nil {
		return nil, err
	}
	for _, e := range effects {
		i, ok := index[e.Task]
		if !ok {
			return nil, fmt.Errorf("there is an effect of task %d, which is not in the table", e.Task)
		}
		if rows[i].Kind == steppedName {
			rows[i].Parts = append(rows[i].Parts, Part{e.Part, e.Fence})
		} else {
			rows[i].Effects = append(rows[i].Effects, e.Fence)
		}
	}
	reports, err := readReports(ctx, db)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].Report = reports[rows[i].ID]
	}
	return rows, nil
}

// readTasks reads all tasks without their recorded attempts and their effects.
func readTasks(ctx context.Context, q *falldue.Queue) (rows []Row, err error) {
	for after := int64(0); ; {
		page, err := ops.New(q).Tasks(ctx, ops.Filter{}, ops.ListOptions{After: after, Limit: 10_000})
		if err != nil || len(page.Tasks) == 0 {
			return rows, err
		}
		for _, t := range page.Tasks {
			row, err := rowOf(t)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
			after = t.ID
		}
	}
}

func rowOf(t falldue.TaskInfo) (Row, error) {
	var job Job
	if err := json.Unmarshal(t.Payload, &job); err != nil {
		return Row{}, fmt.Errorf("payload of task %d: %w", t.ID, err)
	}
	row := Row{
		ID: t.ID, Key: job.Key, Kind: t.Kind, Expired: job.Expired, Dated: job.Dated, Version: job.Version, State: string(t.State), Attempts: t.Attempts, Fence: t.Fence,
		Transactional: t.Kind == transactionalName || t.Kind == stubbornName, Unique: job.Unique, CreatedAt: t.CreatedAt, EndedAt: t.UpdatedAt,
		FirstAttemptedAt: t.FirstAttemptedAt, AttemptedAt: t.AttemptedAt, After: job.members(), OnDeath: job.OnDeath,
	}
	switch t.Kind {
	case plainName, changedName, orderedName, amendedName, haltingName, expiringName:
		row.Reports = job.reports()
	}
	switch t.Kind {
	case orderedName, haltingName:
		row.Sequence = t.Kind + "/" + t.Key
	case ratedName:
		row.Rated = t.Key
	}
	if len(t.Result) > 0 {
		fence, err := strconv.ParseInt(string(t.Result), 10, 64)
		if err != nil {
			return Row{}, fmt.Errorf("result of task %d: %w", t.ID, err)
		}
		row.Result = fence
	}
	return row, nil
}
