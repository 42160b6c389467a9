package systemtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// processVariable names the queue on which a process of TestFourProcessesObey works, and
// processDatabase has its database.
const processVariable, processDatabase = "FALLDUE_TEST_PROCESS_QUEUE", "FALLDUE_TEST_PROCESS_DSN"

// failingKind is the kind of the tasks of TestFourProcessesObey, which all fail.
func failingKind() falldue.Kind[int] {
	return falldue.NewKind[int]("fails", falldue.KindConfig{Policy: backoff.ParseDeferred("1h")})
}

// TestPolicyProcess is a process of TestFourProcessesObey, without which it does nothing. It works on a queue until its
// standard input ends.
func TestPolicyProcess(t *testing.T) {
	queue := os.Getenv(processVariable)
	if queue == "" {
		return
	}
	db, err := testdb.OpenDSN(testdb.Drivers(os.Getenv("FALLDUE_TEST_PROCESS_ENGINE"))[0], os.Getenv(processDatabase))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	q, err := falldue.New(db, falldue.Config{Queues: map[string]falldue.QueueConfig{queue: {}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	falldue.Handle(q, failingKind(), func(_ context.Context, task falldue.Task[int]) error {
		fmt.Printf("\nran %d\n", task.Attempt)
		return errors.New("it fails")
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := q.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestFourProcessesObey: a policy that is set holds in four processes within seconds, for
// tasks that wait, and so does its end.
func TestFourProcessesObey(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		db, err := testdb.OpenDSN(testdb.Drivers(engine)[0], dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		q := migrated(t, db)
		const processes = 4
		var ran [processes]chan string
		for i := range processes {
			queue := fmt.Sprint("q", i)
			ran[i] = make(chan string, 100)
			child := exec.Command(os.Args[0], "-test.run", "^TestPolicyProcess$")
			child.Env = append(os.Environ(), processVariable+"="+queue, processDatabase+"="+dsn, "FALLDUE_TEST_PROCESS_ENGINE="+engine)
			child.Stderr = os.Stderr
			in, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = in.Close()
				for range ran[i] { // its last lines
				}
				if err := child.Wait(); err != nil {
					t.Errorf("process %d: %v", i, err)
				}
			})
			go func() {
				defer close(ran[i])
				for lines := bufio.NewScanner(out); lines.Scan(); {
					if n := 0; len(lines.Text()) > 0 && scans(lines.Text(), &n) {
						ran[i] <- lines.Text()
					}
				}
			}()
			if _, err := failingKind().Enqueue(t.Context(), q, i, falldue.EnqueueOptions{Queue: queue}); err != nil {
				t.Fatal(err)
			}
		}
		next := func(i int, want string) {
			t.Helper()
			select {
			case got := <-ran[i]:
				if got != want {
					t.Fatalf("process %d says %q, want %q", i, got, want)
				}
			case <-time.After(testdb.Patience):
				t.Fatalf("process %d has not said %q for %v", i, want, testdb.Patience)
			}
		}
		for i := range processes {
			next(i, "ran 1")
		}
		for _, info := range tasks(t, q) { // whose failure is settled
			for info.ClaimedBy != "" {
				if info, err = q.Task(t.Context(), info.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		sooner, err := backoff.ParseOverride("if(n < 2, 1ms, own)")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := ops.New(q).SetPolicy(t.Context(), falldue.Subject{Kind: "fails"}, sooner); err != nil {
			t.Fatal(err)
		}
		for i := range processes {
			next(i, "ran 2")
		}
		t.Logf("%s: the last of %d processes obeyed after %v", engine, processes, time.Since(start))
	})
}

// scans reports whether a line says that a task ran.
func scans(line string, attempt *int) bool {
	_, err := fmt.Sscanf(line, "ran %d", attempt)
	return err == nil
}
