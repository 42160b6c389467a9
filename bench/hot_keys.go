package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue"
)

// hotKeys is how many keys have tasks in the measure hot_keys, hotWorkers how many workers take
// them, and hotRun how long a handler sleeps.
const hotKeys, hotWorkers, hotRun = 3, 8, 10 * time.Millisecond

// drainHotKeys measures how fast many workers process the tasks of few keys, of each of which
// perKey may run at once, what the handlers allow, and how many claims are in vain.
func drainHotKeys(ctx context.Context, c *config, db database, s subject) (v values, err error) {
	f, ok := s.(*falldueSubject)
	if !ok || !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	n := int(c.while / hotRun * hotKeys * perKey)
	if err := errors.Join(f.insertHotKeys(ctx, n), db.analyze(ctx)); err != nil {
		return nil, err
	}
	var handled, ran, first, last, claims, empty atomic.Int64
	begin, done := time.Now(), make(chan struct{})
	handle := func() error {
		start := time.Since(begin)
		first.CompareAndSwap(0, int64(start))
		time.Sleep(hotRun)
		end := time.Since(begin)
		ran.Add(int64(end - start))
		if handled.Add(1) == int64(n) {
			last.Store(int64(end))
			close(done)
		}
		return nil
	}
	hooks := falldue.Hooks{Claim: func(s falldue.StatementStats) {
		if claims.Add(1); s.Tasks == 0 {
			empty.Add(1)
		}
	}}
	var ends []func() error // of the workers
	defer func() {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
	}()
	for range hotWorkers {
		end, err := startHotWorker(ctx, db, hooks, handle)
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	patience, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	select {
	case <-done:
	case <-patience.Done():
		return nil, fmt.Errorf("%d of %d tasks handled: %w", handled.Load(), n, patience.Err())
	}
	took, mean := time.Duration(last.Load()-first.Load()), time.Duration(ran.Load()/int64(n))
	return values{
		"": perSecond(n, took), "hot_keys_ceiling": perSecond(hotKeys*perKey, mean),
		"hot_keys_empty_percent": 100 * float64(empty.Load()) / float64(claims.Load()),
	}, nil
}

// startHotWorker starts a worker with a pool of its own, and returns the function that ends both.
func startHotWorker(ctx context.Context, db database, hooks falldue.Hooks, handle func() error) (end func() error, err error) {
	worker, err := openFalldue(tuned)(ctx, db, settings{done: deleted, limited: true, hooks: hooks})
	if err != nil {
		return nil, err
	}
	stop, err := worker.work(ctx, handle)
	if err != nil {
		worker.close()
		return nil, err
	}
	return func() error {
		defer worker.close()
		return stop()
	}, nil
}

// insertHotKeys stores n due tasks of hotKeys keys.
func (f *falldueSubject) insertHotKeys(ctx context.Context, n int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, fmt.Sprintf(`insert into falldue_tasks (queue, kind, task_key, updated_at, created_at, payload)
		select 'default', 'bench', 'customer:' || (i %%%% %d), %%[2]s, %%[1]s, '%s'`, hotKeys, encoded))
}
