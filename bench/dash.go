package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/dash"
)

const (
	// dashKeys is how many task keys the tasks have in the measure dashboard_ms. Each has a lane.
	dashKeys = 100_000
	// dashViewers is how many viewers look at the page, each dashViews times.
	dashViewers, dashViews = 100, 10
)

// dashboard measures the first page of package dash while config.backlog tasks with 100,000 keys wait after
// failures: the first view of a process, and the views of 100 viewers after that.
func dashboard(ctx context.Context, c *config, db database, s subject) (values, error) {
	f, ok := s.(*falldueSubject)
	if !ok || !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	insert := insertSeries(ctx, f.pools[0], f.engine, c.backlog, fmt.Sprintf(`insert into falldue_tasks (queue, kind, task_key, attempts, fence, updated_at, created_at, first_attempted_at, attempted_at, last_error, payload)
		select 'default', 'waiting.' || (i %%%% %[4]d %%%% %[1]d), 'key:' || (i %%%% %[4]d), 1 + i %%%% %[4]d %%%% %[2]d, 1 + i %%%% %[4]d %%%% %[2]d, %%[4]s, %%[4]s, %%[4]s, %%[4]s, '503 Service Unavailable', '%[3]s'`, profileKinds, profileLevels, encoded, dashKeys))
	if err := errors.Join(insert, db.analyze(ctx)); err != nil {
		return nil, err
	}
	one, _, err := f.views(ctx, db, 1, 1)
	if err != nil {
		return nil, err
	}
	all, took, err := f.views(ctx, db, dashViewers, 1)
	if err != nil {
		return nil, err
	}
	_, warm, err := f.views(ctx, db, dashViewers, dashViews)
	if err != nil {
		return nil, err
	}
	list, err := f.lists(ctx)
	if err != nil {
		return nil, err
	}
	warm = warm[dashViewers:] // the first views wait for the database
	slices.Sort(warm)
	v := values{"": milliseconds(warm[len(warm)*95/100]), "dashboard_first_ms": milliseconds(slices.Max(took)), "dashboard_list_ms": milliseconds(list)}
	if db.counts {
		v["dashboard_statements"], v["dashboard_statements_100"] = float64(one), float64(all)
	}
	return v, nil
}

// dashLists are lists of package dash that find many tasks, few, or none.
var dashLists = []string{"/tasks", "/tasks?order=oldest", "/tasks?kind=waiting.0", "/tasks?key=key:7", "/tasks?phase=backing_off", "/tasks?phase=running", "/tasks?state=done", "/tasks?match=timeout", "/failures", "/queues"}

// lists returns the longest time of a list of tasks.
func (f *falldueSubject) lists(ctx context.Context) (longest time.Duration, err error) {
	h, err := dash.New(f.producer, dash.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	for _, path := range dashLists {
		took, failed := view(ctx, h, path)
		longest, err = max(longest, took), errors.Join(err, failed)
	}
	return longest, errors.Join(err, h.Close(ctx))
}

// view looks at a page.
func view(ctx context.Context, h http.Handler, path string) (took time.Duration, err error) {
	begin, w := time.Now(), httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	if took = time.Since(begin); w.Code != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.300s", path, w.Code, w.Body)
	}
	return took, err
}

// views has viewers look at the first page of a new handler, each several times, and returns how many
// statements the server ran meanwhile, and how long each view took, the first view of each viewer before
// the others.
func (f *falldueSubject) views(ctx context.Context, db database, viewers, times int) (statements int, took []time.Duration, err error) {
	h, err := dash.New(f.producer, dash.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, nil, err
	}
	before, after := 0, 0
	if db.counts {
		if before, err = db.statements(ctx); err != nil {
			return 0, nil, err
		}
	}
	var failed error
	for range times {
		list := make([]time.Duration, viewers)
		var all sync.WaitGroup
		var mu sync.Mutex
		for i := range viewers {
			all.Go(func() {
				took, err := view(ctx, h, "/")
				list[i] = took
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			})
		}
		all.Wait()
		took = append(took, list...)
	}
	if db.counts && failed == nil {
		after, failed = db.statements(ctx)
	}
	return after - before, took, errors.Join(failed, h.Close(ctx))
}
