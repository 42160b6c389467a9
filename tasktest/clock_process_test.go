package tasktest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// clockProcess names the engine of a process of TestAnotherProcessSeesTheMovedClock, and
// clockDatabase has its database.
const clockProcess, clockDatabase = "FALLDUE_TEST_CLOCK_ENGINE", "FALLDUE_TEST_CLOCK_DSN"

// remindKind is the kind of the tasks that the process runs.
func remindKind() falldue.Kind[string] {
	return falldue.NewKind[string]("remind", falldue.KindConfig{})
}

// TestClockProcess is the other process of TestAnotherProcessSeesTheMovedClock, without which it
// does nothing. It runs tasks until its standard input ends, and says when each ran, in
// microseconds of the clock. It moves the clock by a day for each line that it reads.
func TestClockProcess(t *testing.T) {
	engine := os.Getenv(clockProcess)
	if engine == "" {
		return
	}
	db := open(t, engine, os.Getenv(clockDatabase))
	clock := tasktest.NewClock(t, db)
	q := newQueue(t, db, falldue.Config{PollInterval: 10 * time.Millisecond})
	falldue.Handle(q, remindKind(), func(ctx context.Context, task falldue.Task[string]) error {
		info, err := q.Task(ctx, task.ID)
		fmt.Printf("\nran %d\n", info.AttemptedAt.UnixMicro())
		return err
	})
	run(t, q)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		clock.Jump(t, 24*time.Hour)
		fmt.Printf("\njumped %d\n", clock.Now(t).UnixMicro())
	}
}

// TestAnotherProcessSeesTheMovedClock: a worker of another process runs a task as soon as the clock
// has been moved by a day, which takes seconds. When that process moves the clock, this one sees it.
func TestAnotherProcessSeesTheMovedClock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		mine := open(t, engine, dsn)
		clock := tasktest.NewClock(t, mine)
		q := newQueue(t, mine, falldue.Config{})
		in, said := startClockProcess(t, engine, dsn)
		next := func(verb string) time.Time {
			t.Helper()
			select {
			case line := <-said:
				var micros int64
				if _, err := fmt.Sscanf(line, verb+" %d", &micros); err != nil {
					t.Fatalf("the other process says %q, want %q", line, verb)
				}
				return time.UnixMicro(micros)
			case <-time.After(testdb.Patience):
				t.Fatalf("the other process has not said %q for %v", verb, testdb.Patience)
			}
			panic("unreachable")
		}

		settled := func(id int64) { // before a jump would end its lease
			t.Helper()
			for err := error(nil); !errors.Is(err, falldue.ErrNotFound); _, err = q.Task(t.Context(), id) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}

		first := enqueue(t, q, remindKind(), "now")
		next("ran") // and so it works
		settled(first)
		later := enqueue(t, q, remindKind(), "later", falldue.EnqueueOptions{Delay: 24 * time.Hour})
		begin, due := time.Now(), clock.Now(t).Add(24*time.Hour)
		clock.Advance(t, q, 24*time.Hour)
		at, took := next("ran"), time.Since(begin)
		if at.Before(due.Add(-time.Minute)) || at.After(due.Add(took+time.Minute)) {
			t.Errorf("the task ran at %v, and was due at %v", at, due)
		}
		settled(later)
		t.Logf("%s: the other process ran a task of a day later after %v", engine, took)
		if _, err := io.WriteString(in, "jump\n"); err != nil {
			t.Fatal(err)
		}
		theirs := next("jumped")
		if mine := clock.Now(t); mine.Before(theirs) || mine.After(theirs.Add(time.Since(begin)+time.Minute)) {
			t.Errorf("the clock says %v in the other process and %v here", theirs, mine)
		}
		if real := time.Now(); theirs.Before(real.Add(47 * time.Hour)) {
			t.Errorf("after two days the clock says %v at %v", theirs, real)
		}
	})
}

// startClockProcess starts the other process, which ends with the test, and returns its input and
// the lines that it says.
func startClockProcess(t *testing.T, engine, dsn string) (io.Writer, <-chan string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run", "^TestClockProcess$")
	child.Env = append(os.Environ(), clockProcess+"="+engine, clockDatabase+"="+dsn)
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
	said := make(chan string, 100)
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if line := lines.Text(); strings.HasPrefix(line, "ran ") || strings.HasPrefix(line, "jumped ") {
				said <- line
			}
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		for line := range said { // what it says until it has ended
			t.Errorf("the other process also says %q", line)
		}
		if err := child.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	})
	return in, said
}
