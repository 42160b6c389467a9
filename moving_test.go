package falldue_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// otherQueue is a queue whose waiting jobs a page of docs/moving moves by SQL. Its
// tables, with jobs in all their states, are in testdata/moving.
type otherQueue struct {
	name string // of the page
	kind string
	// fixtures are the files with the tables, by engine.
	fixtures map[string]string
	// left counts the rows that must stay; there are stay of them.
	left string
	stay int
	// take is what a worker of the other queue does when it takes the first job.
	take []string
	// The other queue knows these: the priority, the limit of attempts, the last
	// error, the creation time of a job that was retried.
	hasPriority, hasLimit, hasError bool
	// isArray is whether the payload is an array of arguments.
	isArray bool
}

var otherQueues = []otherQueue{
	{
		name: "river", kind: "invoice.send", fixtures: map[string]string{testdb.Postgres: "postgres"},
		left: "select count(*) from river_job", stay: 5,
		take:        []string{"update river_job set state = 'running', attempt = 1 where id = 1"},
		hasPriority: true, hasLimit: true, hasError: true,
	},
	{
		name: "oban", kind: "Shop.InvoiceWorker", fixtures: map[string]string{testdb.Postgres: "postgres", testdb.MySQL: "mysql"},
		left: "select count(*) from oban_jobs", stay: 5,
		take:        []string{"update oban_jobs set state = 'executing', attempt = 1 where id = 1"},
		hasPriority: true, hasLimit: true, hasError: true,
	},
	{
		name: "solid-queue", kind: "Shop::InvoiceJob", fixtures: map[string]string{testdb.Postgres: "postgres", testdb.MySQL: "mysql", testdb.MariaDB: "mysql"},
		left: "select count(*) from solid_queue_jobs", stay: 5,
		take: []string{
			"select id from solid_queue_ready_executions where job_id = 1 for update",
			"insert into solid_queue_claimed_executions (job_id, process_id, created_at) values (1, 7, '2026-01-02')",
			"delete from solid_queue_ready_executions where job_id = 1",
		},
		hasPriority: true, isArray: true,
	},
	{
		name: "tasks-table", kind: "invoice.send",
		fixtures: map[string]string{testdb.Postgres: "postgres", testdb.MySQL: "mysql", testdb.MariaDB: "mysql", testdb.TiDB: "mysql", testdb.SQLite: "sqlite"},
		left:     "select count(*) from tasks", stay: 4,
		take:     []string{"update tasks set status = 'running', attempts = 1 where id = 1"},
		hasLimit: true, hasError: true,
	},
}

// engineNames are the engines as the pages call them.
var engineNames = map[string]string{testdb.Postgres: "PostgreSQL", testdb.MySQL: "MySQL", testdb.MariaDB: "MariaDB", testdb.TiDB: "TiDB", testdb.SQLite: "SQLite"}

// TestWaitingJobsMove runs the statements of the pages twice. All jobs that wait are then
// tasks, once, and fall due when the other queue would have run them.
func TestWaitingJobsMove(t *testing.T) {
	t.Parallel()
	eachOtherQueue(t, func(t *testing.T, other otherQueue, engine string) {
		db, q := openOther(t, other, engine)
		move := sqlBlock(t, "docs/moving/"+other.name+".md", engine)
		for range 2 {
			runScript(t, db, move)
			checkMoved(t, q, other, engine)
			checkLeft(t, db, other, other.stay)
		}
		workOff(t, q, other)
	})
}

// TestJobsTakenMeanwhileStay: a worker of the other queue has taken a job, and commits
// while the statement waits for it.
func TestJobsTakenMeanwhileStay(t *testing.T) {
	t.Parallel()
	eachOtherQueue(t, func(t *testing.T, other otherQueue, engine string) {
		waiting := map[string]string{
			testdb.Postgres: "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
			testdb.MySQL:    "select count(*) from information_schema.innodb_trx join information_schema.processlist p on p.id = trx_mysql_thread_id where trx_state = 'LOCK WAIT' and p.db = database()",
		}
		waiting[testdb.MariaDB] = waiting[testdb.MySQL]
		if waiting[engine] == "" {
			t.Skip("writers wait for each other, or its waits cannot be seen")
		}
		db, q := openOther(t, other, engine)
		worker := db.MustBegin()
		defer func() { _ = worker.Rollback() }()
		for _, stmt := range other.take {
			worker.MustExec(stmt)
		}
		moved := make(chan error, 1)
		go func() { moved <- execScript(t.Context(), db, sqlBlock(t, "docs/moving/"+other.name+".md", engine)) }()
		waitFor(t, "the statement to wait", func() bool {
			var n int
			return db.Get(&n, waiting[engine]) == nil && n > 0
		})
		if err := worker.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		checkLeft(t, db, other, other.stay+1)
		if list := tasks(t, q); len(list) != 3 {
			t.Errorf("%d tasks were moved, want 3", len(list))
		}
	})
}

// TestOtherLanguagesEnqueue runs the INSERT of docs/moving.md.
func TestOtherLanguagesEnqueue(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q := migrated(t, db)
		runScript(t, db, sqlBlock(t, "docs/moving.md", engine))
		list := tasks(t, q)
		if len(list) != 1 || list[0].State != falldue.Open || list[0].Attempts != 0 || list[0].UpdatedAt.After(list[0].Now) ||
			list[0].Now.Sub(list[0].UpdatedAt) > time.Minute || !list[0].CreatedAt.Equal(list[0].UpdatedAt) {
			t.Fatalf("got %+v, want one open task that is due since now", list)
		}
		kind := falldue.NewKind[InvoiceArgs]("invoice.send", falldue.KindConfig{})
		ran := make(chan InvoiceArgs, 1)
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[InvoiceArgs]) error {
			ran <- task.Args
			return nil
		})
		stop := runUntil(t, q)
		if args := <-ran; args.Order != 42 {
			t.Errorf("the handler got %+v, want order 42", args)
		}
		stop()
	})
}

func eachOtherQueue(t *testing.T, f func(t *testing.T, other otherQueue, engine string)) {
	for _, other := range otherQueues {
		t.Run(other.name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, engine string) {
				if other.fixtures[engine] == "" {
					t.Skip("the page is not for this engine")
				}
				f(t, other, engine)
			})
		})
	}
}

func migrated(t *testing.T, db *sqlx.DB) *falldue.Queue {
	t.Helper()
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

// openOther opens a database that has the other queue's tables and falldue's.
func openOther(t *testing.T, other otherQueue, engine string) (*sqlx.DB, *falldue.Queue) {
	t.Helper()
	db := testdb.Open(t, engine)
	runScript(t, db, readFile(t, "testdata/moving/"+other.name+"."+other.fixtures[engine]+".sql"))
	return db, migrated(t, db)
}

func runScript(t *testing.T, db *sqlx.DB, script string) {
	t.Helper()
	if err := execScript(t.Context(), db, script); err != nil {
		t.Fatal(err)
	}
}

// execScript runs the statements of a script one after the other on one connection.
func execScript(ctx context.Context, db *sqlx.DB, script string) error {
	conn, err := db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for stmt := range strings.SplitSeq(strings.TrimSpace(script), ";\n") {
		if _, err := conn.ExecContext(ctx, strings.TrimSuffix(stmt, ";")); err != nil {
			return errors.Join(errors.New(stmt), err)
		}
	}
	return nil
}

// blocks returns the blocks of a document that are in a language.
func blocks(t *testing.T, file, language string) (list []string) {
	t.Helper()
	for _, text := range strings.Split(readFile(t, file), "\n```"+language+"\n")[1:] {
		text, _, _ = strings.Cut(text, "\n```\n")
		list = append(list, text+"\n")
	}
	return list
}

// sqlBlock returns the SQL that a page shows for an engine: the block whose first line
// names it.
func sqlBlock(t *testing.T, file, engine string) string {
	t.Helper()
	for _, block := range blocks(t, file, "sql") {
		first, rest, _ := strings.Cut(block, "\n")
		if slices.Contains(strings.Split(strings.TrimPrefix(first, "-- "), ", "), engineNames[engine]) {
			return rest
		}
	}
	t.Fatalf("%s has no block of SQL for %s", file, engineNames[engine])
	return ""
}

func tasks(t *testing.T, q *falldue.Queue) []falldue.TaskInfo {
	t.Helper()
	list, err := q.Tasks(t.Context(), falldue.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func checkLeft(t *testing.T, db *sqlx.DB, other otherQueue, want int) {
	t.Helper()
	var left int
	if err := db.Get(&left, other.left); err != nil || left != want {
		t.Errorf("%d rows are left in the other queue (error %v), want %d", left, err, want)
	}
}

// moved is what must hold of a task that was a job.
type moved struct {
	Queue, Kind, Payload, LastError        string
	State                                  falldue.State
	Priority, Attempts, MaxAttempts, Fence int
	Created, Due                           time.Time
	HasFirst                               bool // whether it has a first attempt, after its creation
}

func checkMoved(t *testing.T, q *falldue.Queue, other otherQueue, engine string) {
	t.Helper()
	precision := time.Microsecond
	if engine == testdb.SQLite {
		precision = time.Millisecond
	}
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment.Truncate(precision)
	}
	want := []moved{ // in the order in which they fall due
		{Payload: `{"order":1,"note":"é 😀 \"q\" \\ \n","nested":[null,{"":[]}],"big":9007199254740993}`, State: falldue.Open, Due: at("2026-01-02T03:04:05.123456Z")},
		{Payload: `{"order":4}`, State: falldue.Snoozed, Attempts: 2, Due: at("2026-01-03T03:04:05.123456Z")},
		{Payload: `{"order":2}`, State: falldue.Open, Due: at("2037-01-02T03:04:05.123456Z")},
		{Payload: `{"order":3}`, State: falldue.Snoozed, Attempts: 3, Due: at("2037-01-03T03:04:05.123456Z")},
	}
	for i := range want {
		w := &want[i]
		w.Queue, w.Kind, w.Created = falldue.DefaultQueue, other.kind, at("2026-01-02T03:04:05.123456Z")
		w.Fence, w.HasFirst = w.Attempts, w.Attempts > 0
		if other.isArray {
			w.Payload = "[" + w.Payload + "]"
		}
		w.Payload = canonical(t, w.Payload)
		if other.hasPriority && i == 0 {
			w.Priority = 2
		}
		if other.hasLimit {
			w.MaxAttempts = 20
		}
		if other.hasError && w.Attempts > 0 {
			w.LastError = "boom: é 😀 'quoted'"
		}
	}
	var got []moved
	for _, task := range tasks(t, q) {
		got = append(got, moved{
			Queue: task.Queue, Kind: task.Kind, Payload: canonical(t, string(task.Payload)), LastError: task.LastError, State: task.State,
			Priority: task.Priority, Attempts: task.Attempts, MaxAttempts: task.MaxAttempts, Fence: int(task.Fence),
			Created: task.CreatedAt.UTC(), Due: task.Due(backoff.Constant(time.Hour)).UTC(),
			HasFirst: !task.FirstAttemptedAt.Before(task.CreatedAt) && !task.AttemptedAt.Before(task.FirstAttemptedAt),
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tasks (-want +got):\n%s", diff)
	}
}

// canonical returns JSON with its keys sorted and without spaces.
func canonical(t *testing.T, text string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// workOff runs the moved tasks: the two that are due run, and one of them fails again.
// The other two still wait.
func workOff(t *testing.T, q *falldue.Queue, other otherQueue) {
	t.Helper()
	policy := backoff.ParseDeferred("delay 1h * n; elapsed 36500d")
	kind := falldue.NewKind[json.RawMessage](other.kind, falldue.KindConfig{Policy: policy})
	attempts := make(chan int, 10)
	falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[json.RawMessage]) error {
		attempts <- task.Attempt
		if task.Attempt == 3 {
			return errors.New("again")
		}
		return nil
	})
	stop := runUntil(t, q)
	if ran := []int{<-attempts, <-attempts}; !slices.Equal(slices.Sorted(slices.Values(ran)), []int{1, 3}) {
		t.Errorf("the attempts %v ran, want 1 and 3", ran)
	}
	waitFor(t, "both to be settled", func() bool {
		list := tasks(t, q)
		return len(list) == 3 && list[0].LastError == "again"
	})
	stop()
	list := tasks(t, q)
	if len(list) != 3 || len(attempts) > 0 {
		t.Fatalf("%d tasks are left, and %d more ran; want 3 and none", len(list), len(attempts))
	}
	failed := list[0]
	if failed.State != falldue.Open || failed.Attempts != 3 || failed.Due(policy).Sub(failed.UpdatedAt) != 3*time.Hour {
		t.Errorf("the task that failed again is %+v, want it to wait for its policy's third delay", failed)
	}
}
