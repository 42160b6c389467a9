package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestReparents: Vitess makes another server of a keyspace its primary, as planned and after the primary was
// killed, while tasks are enqueued and run. No task is lost, and none has its effect twice. It needs a cluster
// of internal/testdb/vitess, and kills a server of it.
func TestReparents(t *testing.T) {
	control, pids := strings.Fields(os.Getenv(testdb.ControlVariable)), strings.Split(os.Getenv("FALLDUE_TEST_MYSQLDS"), ",")
	if len(control) == 0 {
		t.Skip("make vitess runs it")
	}
	ctx, stop := context.WithTimeout(t.Context(), testdb.Patience)
	defer stop()
	reparent := func(args ...string) {
		start := time.Now()
		text, err := exec.CommandContext(ctx, control[0], append(control[1:], args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", args, err, text)
		}
		t.Logf("%s took %s", args[0], time.Since(start).Round(time.Millisecond))
	}
	dsn, err := testdb.Server(testdb.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	db, err := testdb.OpenDSN("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	testdb.KeepIdle(db, 20)
	q, err := falldue.New(db, falldue.Config{Concurrency: 8, Lease: 5 * time.Second, DoneRetention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	db.MustExecContext(ctx, "create table effects (id bigint not null auto_increment primary key, task bigint not null)")
	kind := falldue.NewKind[int]("k", falldue.KindConfig{Policy: backoff.Constant(100 * time.Millisecond)})
	var ran atomic.Int64
	falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "insert into effects (task) values (?)", task.ID); err != nil {
			return err
		}
		if err := task.DoneTx(ctx, tx); err != nil {
			return err
		}
		err = tx.Commit()
		if err == nil {
			ran.Add(1)
		}
		return err
	})
	stopRun := runUntil(t, q)

	var mu sync.Mutex
	var enqueued []int64
	var failures []error
	var enqueuers sync.WaitGroup
	ended := make(chan struct{})
	for range 3 {
		enqueuers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				r, err := kind.Enqueue(ctx, q, n)
				mu.Lock()
				if err == nil {
					enqueued = append(enqueued, r.ID)
				} else {
					failures = append(failures, err)
				}
				mu.Unlock()
			}
		})
	}
	// more waits until another n tasks have run.
	more := func(n int64) {
		goal := ran.Load() + n
		waitFor(t, "more tasks to run", func() bool { return ran.Load() >= goal })
	}
	more(100)
	reparent("PlannedReparentShard", "--new-primary=zone1-102", "main/0")
	more(100)
	reparent("PlannedReparentShard", "--new-primary=zone1-101", "main/0")
	more(100)
	pid, err := strconv.Atoi(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	reparent("EmergencyReparentShard", "--wait-replicas-timeout=5s", "main/0")
	more(100)
	close(ended)
	enqueuers.Wait()
	waitFor(t, "all tasks to end", func() bool {
		waiting := -1
		_ = db.GetContext(ctx, &waiting, "select count(*) from falldue_tasks where state = 'open'") // fails during a reparent
		return waiting == 0
	})
	stopRun()

	t.Logf("%d tasks enqueued, %d enqueues failed", len(enqueued), len(failures))
	kinds := map[string]int{}
	for _, err := range failures {
		kinds[fmt.Sprintf("%.300s", err)]++
	}
	for text, n := range kinds {
		t.Logf("%d × %s", n, text)
	}
	var stored, others, twice int
	err = errors.Join(
		db.GetContext(ctx, &stored, "select count(*) from falldue_tasks"),
		db.GetContext(ctx, &others, "select count(*) from falldue_tasks where state <> 'done'"),
		db.GetContext(ctx, &twice, "select count(*) from (select task from effects group by task having count(*) > 1) d"))
	if err != nil {
		t.Fatal(err)
	}
	if others > 0 || twice > 0 || stored < len(enqueued) || stored > len(enqueued)+len(failures) {
		t.Errorf("of %d tasks %d are not done, and %d took effect more than once", stored, others, twice)
	}
	for _, id := range enqueued {
		var effects int
		if err := db.GetContext(ctx, &effects, "select count(*) from effects where task = ?", id); err != nil {
			t.Fatal(err)
		}
		if effects != 1 {
			t.Errorf("task %d took effect %d times", id, effects)
		}
	}
}
