package systemtest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestWorkersSayWhatTheyDo: a worker logs that it has started and stopped, and once a minute for
// each kind that payloads cannot be decoded, as after a deploy with other arguments.
func TestWorkersSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	migrated(t, db)
	var log syncBuffer
	q, err := falldue.New(db, falldue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	policy := falldue.KindConfig{Policy: backoff.Constant(time.Hour)}
	was, is := falldue.NewKind[string]("k", policy), falldue.NewKind[int]("k", policy)
	falldue.Handle(q, is, func(context.Context, falldue.Task[int]) error { return nil })
	for range 3 {
		if _, err := was.Enqueue(t.Context(), q, "no number"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := is.Enqueue(t.Context(), q, 7); err != nil {
		t.Fatal(err)
	}
	events := q.Subscribe()
	defer events.Close()
	stop := runUntil(t, q)
	for ended := 0; ended < 4; {
		select {
		case e := <-events.Events():
			if e.Outcome != "" {
				ended++
			}
		case <-time.After(testdb.Patience):
			t.Fatal("the tasks have not ended")
		}
	}
	stop()
	text := log.String()
	for _, want := range []string{
		`level=INFO msg="falldue: the worker has started" worker=`, " queues=[default] kinds=[k] count=1 release=",
		`level=WARN msg="falldue: the payload of a task cannot be decoded; its attempt has failed" task=`, " kind=k queue=default attempt=1 ",
		`level=INFO msg="falldue: the worker has stopped" worker=`, " done=1 failed=3\n",
	} {
		if n := strings.Count(text, want); n != 1 {
			t.Errorf("the log has %q %d times, want once:\n%s", want, n, text)
		}
	}
}
