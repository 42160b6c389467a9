package systemtest

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

// TestWaitingJobsMove runs the statements of the pages twice. All jobs that wait are then
// tasks, once, and fall due when the other queue would have run them.
func TestWaitingJobsMove(t *testing.T) {
	t.Parallel()
	eachOtherQueue(t, func(t *testing.T, other otherQueue, engine string) {
		db, q := openOther(t, other, engine)
		move := sqlBlock(t, other.page(), engine)
		for range 2 {
			runScript(t, db, move)
			checkMoved(t, q, other, engine)
			checkLeft(t, db, other, other.stay)
		}
		if t.Failed() { // tasks that are missing would never run
			return
		}
		workOff(t, q, other)
	})
}

// lockWaits counts the statements that wait for a lock, where that can be seen. On MySQL and
// MariaDB it counts those of all databases: a table of the server's that names them is
// not updated while tests read it often. A test that goes on too early only sees less.
var lockWaits = map[string]string{
	testdb.Postgres: "select '', count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
	testdb.MySQL:    "show global status like 'Innodb_row_lock_current_waits'",
	testdb.MariaDB:  "show global status like 'Innodb_row_lock_current_waits'",
}

func waitsForLock(db *sqlx.DB, engine string) bool {
	var name string
	var n int
	return db.QueryRow(lockWaits[engine]).Scan(&name, &n) == nil && n > 0
}

// TestJobsTakenMeanwhileStay: a worker of the other queue has taken a job, and commits
// while the statement waits for it.
func TestJobsTakenMeanwhileStay(t *testing.T) {
	t.Parallel()
	eachOtherQueue(t, func(t *testing.T, other otherQueue, engine string) {
		if lockWaits[engine] == "" {
			t.Skip("it has one writer at a time, or its waits cannot be seen")
		}
		db, q := openOther(t, other, engine)
		worker := db.MustBegin()
		defer func() { _ = worker.Rollback() }()
		for _, stmt := range other.take {
			worker.MustExec(stmt)
		}
		moved := make(chan error, 1)
		go func() { moved <- execScript(t.Context(), db, sqlBlock(t, other.page(), engine)) }()
		waitFor(t, "the statement to wait", func() bool { return waitsForLock(db, engine) })
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

// TestJobsAddedMeanwhileStay: where the jobs are not deleted by the statement that inserts
// the tasks, another job is added between the two. It is not deleted.
func TestJobsAddedMeanwhileStay(t *testing.T) {
	t.Parallel()
	eachOtherQueue(t, func(t *testing.T, other otherQueue, engine string) {
		if lockWaits[engine] == "" || engine == testdb.Postgres {
			t.Skip("it has one writer at a time, or one statement, or its waits cannot be seen")
		}
		db, _ := openOther(t, other, engine)
		script := sqlBlock(t, other.page(), engine)
		at := strings.Index(script, "\ndelete ") + 1
		mover, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer mover.Close()
		if err := execOn(t.Context(), mover, script[:at]); err != nil {
			t.Fatal(err)
		}
		added := make(chan error, 1)
		go func() { added <- execScript(t.Context(), db, strings.Join(other.add, ";\n")) }()
		waitFor(t, "the job to be added, or to wait for the transaction", func() bool {
			return len(added) > 0 || waitsForLock(db, engine)
		})
		if err := execOn(t.Context(), mover, script[at:]); err != nil {
			t.Fatal(err)
		}
		if err := <-added; err != nil {
			t.Fatal(err)
		}
		checkLeft(t, db, other, other.stay+1)
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
		if len(list) != 1 || list[0].State != falldue.StateOpen || list[0].Attempts != 0 || list[0].UpdatedAt.After(list[0].Now) ||
			list[0].Now.Sub(list[0].UpdatedAt) > time.Minute || !list[0].CreatedAt.Equal(list[0].UpdatedAt) {
			t.Fatalf("got %+v, want one open task that is due since now", list)
		}
		kind := falldue.NewKind[invoiceArgs]("invoice.send", falldue.KindConfig{})
		ran := make(chan invoiceArgs, 1)
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[invoiceArgs]) error {
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

func checkLeft(t *testing.T, db *sqlx.DB, other otherQueue, want int) {
	t.Helper()
	var left int
	if err := db.Get(&left, other.left); err != nil || left != want {
		t.Errorf("%d rows are left in the other queue (error %v), want %d", left, err, want)
	}
}

// moved is what must hold of a task that was a job.
type moved struct {
	Queue, Kind, Key, Payload, LastError   string
	State                                  falldue.State
	Priority, Attempts, MaxAttempts, Fence int
	Created, Due                           time.Time
	First, Last                            time.Time // when attempts began, if there were any
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
		{Payload: `{"order":1,"note":"é 😀 \"q\" \\ \n","nested":[null,{"":[]}],"big":9007199254740993}`, State: falldue.StateOpen, Due: at("2026-01-02T03:04:05.123456Z")},
		{Payload: `{"order":4}`, State: falldue.StateSnoozed, Attempts: 2, Due: at("2026-01-03T03:04:05.123456Z")},
		{Payload: `{"order":2}`, State: falldue.StateOpen, Due: at("2037-01-02T03:04:05.123456Z")},
		{Payload: `{"order":3}`, State: falldue.StateSnoozed, Attempts: 3, Due: at("2037-01-03T03:04:05.123456Z")},
	}
	for i := range want {
		w := &want[i]
		w.Queue, w.Kind, w.Created = falldue.DefaultQueue, other.kind, at("2026-01-02T03:04:05.123456Z")
		w.Key, w.Priority, w.Fence = other.keys[i], other.priorities[i], w.Attempts
		if w.Attempts > 0 {
			w.First, w.Last = at(other.first), at(other.last)
		}
		if other.isArray {
			w.Payload = "[" + w.Payload + "]"
		}
		w.Payload = canonical(t, w.Payload)
		if other.hasLimit {
			w.MaxAttempts = 20
		}
		if other.hasError && w.Attempts > 0 {
			w.LastError = "boom: é 😀 'quoted'"
		}
	}
	var got []moved
	for _, task := range tasks(t, q) {
		m := moved{
			Queue: task.Queue, Kind: task.Kind, Key: task.Key, Payload: canonical(t, string(task.Payload)), LastError: task.LastError, State: task.State,
			Priority: task.Priority, Attempts: task.Attempts, MaxAttempts: task.MaxAttempts, Fence: int(task.Fence),
			Created: task.CreatedAt.UTC(), Due: task.Due(backoff.Constant(time.Hour)).UTC(),
		}
		if m.Attempts > 0 {
			m.First, m.Last = task.FirstAttemptedAt.UTC(), task.AttemptedAt.UTC()
		}
		got = append(got, m)
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
	if failed.State != falldue.StateOpen || failed.Attempts != 3 || failed.Due(policy).Sub(failed.UpdatedAt) != 3*time.Hour {
		t.Errorf("the task that failed again is %+v, want it to wait for its policy's third delay", failed)
	}
}
