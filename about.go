package falldue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// aboutCounts remembers counts.
type aboutCounts struct {
	mu     sync.Mutex
	counts []Count
	until  time.Time
}

// aboutShare limits the time in which a process counts to a tenth.
const aboutShare = 10

func (a *aboutCounts) get(ctx context.Context, read func(context.Context) ([]store.Count, error)) ([]Count, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.until) {
		return slices.Clone(a.counts), nil
	}
	start := time.Now()
	rows, err := read(ctx)
	if err != nil {
		return nil, err
	}
	a.counts, a.until = countsOf(rows), time.Now().Add(aboutShare*time.Since(start))
	return slices.Clone(a.counts), nil
}

func countsOf(rows []store.Count) []Count {
	list := make([]Count, len(rows))
	for i, c := range rows {
		list[i] = Count{Queue: c.Queue, Kind: c.Kind, State: State(c.State), Tasks: c.Tasks, About: c.About}
	}
	return list
}
