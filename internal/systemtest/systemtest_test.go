// Package systemtest tests falldue from outside, as applications and operators meet it: on all
// engines, through poolers and proxies, on replicas, with few rights, in several processes, after
// others have edited rows or killed sessions, and beside the queues from which users move.
package systemtest

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// migrated returns a queue on a database in which it has made its tables.
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

// runUntil runs q until stop is called. Stop returns when Run has returned.
func runUntil(t *testing.T, q *falldue.Queue) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// info returns a task.
func info(t *testing.T, q *falldue.Queue, id int64) falldue.TaskInfo {
	t.Helper()
	i, err := q.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// waitFor waits until ok reports true.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(testdb.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", testdb.Patience, what)
		}
		<-tick.C
	}
}

// lockedBuilder is a writer for the logger of several goroutines.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tasks returns all tasks of a queue.
func tasks(t *testing.T, q *falldue.Queue) []falldue.TaskInfo {
	t.Helper()
	page, err := ops.New(q).Tasks(t.Context(), ops.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return page.Tasks
}

// readFile returns the text of a file, whose name counts from the folder of the repository.
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// byID orders receipts by their tasks' ids: those of a call may be in another order on TiDB.
func byID(a, b falldue.Receipt) int { return cmp.Compare(a.ID, b.ID) }
