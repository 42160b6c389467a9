package falldue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
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
	longest := strings.Repeat("~", 64)
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
