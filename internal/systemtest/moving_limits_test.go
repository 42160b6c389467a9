package systemtest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
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
	"github.com/falldue/falldue/ops"
)

// eachSolidQueue calls f with a database that has Solid Queue's jobs, and the statements of
// its page.
func eachSolidQueue(t *testing.T, f func(t *testing.T, other otherQueue, engine string)) {
	t.Parallel()
	eachOtherQueue(t, func(t *testing.T, other otherQueue, engine string) {
		if other.name != "solid-queue" {
			t.Skip("it has no semaphores")
		}
		f(t, other, engine)
	})
}

// checkSemaphores compares the keys of Solid Queue's semaphores.
func checkSemaphores(t *testing.T, db *sqlx.DB, want ...string) {
	t.Helper()
	var got []string
	if err := db.Select(&got, "select solid_queue_semaphores.key from solid_queue_semaphores"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the semaphores that are left (-want +got):\n%s", diff)
	}
}

// TestSemaphoresAreReleased: what blocked a job moves with the job that held it, and stays as
// long as a job that stays holds it: one that runs, or one that cannot move.
func TestSemaphoresAreReleased(t *testing.T) {
	eachSolidQueue(t, func(t *testing.T, other otherQueue, engine string) {
		db, _ := openOther(t, other, engine)
		move := sqlBlock(t, other.page(), engine)
		runScript(t, db, move)
		checkSemaphores(t, db, "Shop::InvoiceJob/91", "no name/95")
		db.MustExec("delete from solid_queue_claimed_executions where job_id = 91")
		runScript(t, db, move)
		checkSemaphores(t, db, "no name/95")
	})
}

// TestSemaphoresTakenMeanwhileStay: a worker of Solid Queue has taken a job whose semaphore it
// holds, and another job has taken a free one. Both commit while the statement waits.
func TestSemaphoresTakenMeanwhileStay(t *testing.T) {
	eachSolidQueue(t, func(t *testing.T, other otherQueue, engine string) {
		if lockWaits[engine] == "" {
			t.Skip("it has one writer at a time, or its waits cannot be seen")
		}
		db, _ := openOther(t, other, engine)
		worker := db.MustBegin()
		defer func() { _ = worker.Rollback() }()
		for _, stmt := range slices.Concat(other.take, other.add) {
			worker.MustExec(stmt)
		}
		worker.MustExec("update solid_queue_jobs set concurrency_key = 'Shop::InvoiceJob/93' where id = 5")
		worker.MustExec("update solid_queue_semaphores set value = 0, expires_at = '2100-01-01' where solid_queue_semaphores.key = 'Shop::InvoiceJob/93'")
		moved := make(chan error, 1)
		go func() { moved <- execScript(t.Context(), db, sqlBlock(t, other.page(), engine)) }()
		waitFor(t, "the statement to wait", func() bool { return waitsForLock(db, engine) })
		if err := worker.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-moved; err != nil {
			t.Fatal(err)
		}
		want := []string{"Shop::InvoiceJob/1", "Shop::InvoiceJob/91", "no name/95"}
		var left int
		if err := db.Get(&left, "select count(*) from solid_queue_ready_executions where job_id = 5"); err != nil {
			t.Fatal(err)
		}
		if left == 1 { // the statement has not seen the other job
			want = []string{"Shop::InvoiceJob/1", "Shop::InvoiceJob/91", "Shop::InvoiceJob/93", "no name/95"}
		}
		checkSemaphores(t, db, want...)
	})
}

// TestKeysThatAreLeftOut: a job moves without a key that falldue does not store as it is.
func TestKeysThatAreLeftOut(t *testing.T) {
	longest := strings.Repeat("~", 128)
	eachSolidQueue(t, func(t *testing.T, other otherQueue, engine string) {
		for key, want := range map[string]string{longest: longest, "!#Aa": "!#Aa", longest + "~": "", "#hash": "", "a\n": "", "a b": "", "\u212a": ""} {
			db, q := openOther(t, other, engine)
			db.MustExec(db.Rebind("update solid_queue_jobs set concurrency_key = ? where id = 1"), key)
			runScript(t, db, sqlBlock(t, other.page(), engine))
			if list := tasks(t, q); len(list) != 4 || list[0].Key != want {
				t.Errorf("of the key %q the tasks are %+v, want the first to have the key %q", key, list, want)
			}
		}
	})
}

// insertWithKey runs the INSERT of docs/moving.md with a key.
func insertWithKey(t *testing.T, db *sqlx.DB, engine, key, order string) {
	t.Helper()
	stmt := sqlBlock(t, "docs/moving.md", engine)
	runScript(t, db, strings.NewReplacer("(queue, kind,", "(queue, kind, task_key,", "'invoice.send',", "'invoice.send', '"+key+"',", "42", order).Replace(stmt))
}

// TestInsertsWithAKeyRunInOrder: three tasks of a customer are inserted by SQL. The first one is
// retried, and the others wait for it.
func TestInsertsWithAKeyRunInOrder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q := migrated(t, db)
		for _, order := range []string{"1", "2", "3"} {
			insertWithKey(t, db, engine, "customer:1", order)
		}
		kind := falldue.NewKind[invoiceArgs]("invoice.send", falldue.KindConfig{
			Policy: backoff.Constant(time.Millisecond), Limits: []falldue.Limit{falldue.InOrder()},
		})
		ran := make(chan int, 10)
		falldue.Handle(q, kind, func(_ context.Context, task falldue.Task[invoiceArgs]) error {
			ran <- task.Args.Order
			if task.Args.Order == 1 && task.Attempt == 1 {
				return errors.New("again")
			}
			return nil
		})
		stop := runUntil(t, q)
		if got := []int{<-ran, <-ran, <-ran, <-ran}; !slices.Equal(got, []int{1, 1, 2, 3}) {
			t.Errorf("the orders ran as %v, want 1, 1, 2, 3", got)
		}
		stop()
	})
}

// TestInsertedKeysAreThoseOfEnqueue: other texts than short ASCII ones are stored as their hash,
// as the page says.
func TestInsertedKeysAreThoseOfEnqueue(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q := migrated(t, db)
		hash := sha256.Sum256([]byte("Zoë"))
		insertWithKey(t, db, engine, "#"+base64.RawURLEncoding.EncodeToString(hash[:]), "1")
		insertWithKey(t, db, engine, "!~", "2")
		for _, key := range []string{"Zoë", "!~"} {
			if page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Key: key}); err != nil || len(page.Tasks) != 1 {
				t.Errorf("%d tasks have the key %q (error %v), want 1", len(page.Tasks), key, err)
			}
		}
	})
}
