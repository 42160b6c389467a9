package upkeep

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// head returns the head of a lane whose first task has an anchor that long ago.
func head(kind string, attempts int, ago time.Duration) store.Head {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	lane := store.Lane{State: statements.StateOpen, Kind: kind, Attempts: attempts}
	return store.Head{Head: statements.Head{Lane: lane, Anchor: now - ago.Microseconds(), Now: now}}
}

// fakeCleanTable is a cleanTable.
type fakeCleanTable struct {
	firstToKeep func(store.Lane) int64
	lanes       func(ctx context.Context, queues []string, state string) ([]store.Found, error)
	clean       func(context.Context, store.CleanParams) (n int, last int64, err error)
}

func (f fakeCleanTable) FinishedLanesOf(ctx context.Context, queues []string, state string) ([]store.Found, error) {
	return f.lanes(ctx, queues, state)
}

func (f fakeCleanTable) Clean(ctx context.Context, p store.CleanParams) (n int, last int64, err error) {
	return f.clean(ctx, p)
}

func (f fakeCleanTable) FirstToKeep(_ context.Context, _ string, at store.Lane, _ int) (int64, error) {
	if f.firstToKeep == nil {
		return 0, nil
	}
	return f.firstToKeep(at), nil
}

func (fakeCleanTable) Classify(error) dialect.Class { return dialect.Other }

// lockedLog is a log that one goroutine writes while another one reads it.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// take returns and removes the lines.
func (l *lockedLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}
