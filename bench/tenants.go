package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue"
)

// tenantLimits are the limits of the page "Many customers": two tasks of a tenant run concurrently, its starts have a
// rate, and the tasks of an endpoint run in order. The rate is so high that it delays no task.
var tenantLimits = []falldue.Limit{falldue.AtMost(perKey).PerKey("tenant"), falldue.Rate(1000, time.Second).PerKey("tenant"), falldue.InOrder()}

// endpoints is how many endpoints a tenant has.
const endpoints = 10

// insertTenants stores n due tasks of so many tenants, or without keys if there are none.
func (f *falldueSubject) insertTenants(ctx context.Context, n, tenants int) error {
	if tenants == 0 {
		return f.insert(ctx, n)
	}
	return insertSeries(ctx, f.pools[0], f.engine, n, fmt.Sprintf(`insert into falldue_tasks (queue, kind, task_key, updated_at, created_at, payload)
		select 'default', 'bench', 'tenant=' || (i %%%% %d) || '/endpoint=' || (i %%%% %d), %%[2]s, %%[1]s, '%s'`, tenants, endpoints*tenants, encoded))
}

// insertWaitingTenants stores a failed task of each tenant, which waits until tomorrow.
func (f *falldueSubject) insertWaitingTenants(ctx context.Context, tenants int) error {
	return insertSeries(ctx, f.pools[0], f.engine, tenants, `insert into falldue_tasks (queue, kind, task_key, attempts, fence, updated_at, created_at, first_attempted_at, attempted_at, payload)
		select 'default', 'bench', 'tenant=' || i || '/endpoint=' || i, 1, 1, %[1]s, %[1]s, %[1]s, %[1]s, '`+encoded+`'`)
}

// scaleTenants drains tasks of more and more tenants. Then it counts the statements of an idle worker, and times new
// tasks, while a task of each tenant waits until tomorrow.
func scaleTenants(ctx context.Context, c *config, srv *server, add func(...any)) error {
	for _, tenants := range []int{0, 10, 1000, 100_000} {
		if tenants > c.backlog {
			break
		}
		drains := *c
		drains.tasks = max(c.tasks, tenants)
		err := onNewDatabase(ctx, srv, settings{done: deleted, tenants: true, counts: true}, func(db database, f *falldueSubject) error {
			if err := errors.Join(f.insertTenants(ctx, drains.tasks, tenants), db.analyze(ctx)); err != nil {
				return err
			}
			d, err := timeDrain(ctx, &drains, db, workers{n: 1, system: tunedName, tenants: true})
			if err != nil {
				return err
			}
			if err := errors.Join(f.insertWaitingTenants(ctx, tenants), db.analyze(ctx)); err != nil {
				return err
			}
			perSecondIdle, pickup, err := f.idleTenants(ctx, c, db)
			if err != nil {
				return err
			}
			add(tenants, perSecond(drains.tasks, d.took), d.claimsPerSecond(), d.perClaim(drains.tasks), d.claimTime(), d.peak, perSecondIdle, pickup)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%d tenants: %w", tenants, err)
		}
	}
	return nil
}

// idleTenants returns how many statements a second an idle worker makes, and the median milliseconds from the commit of
// a task of a new tenant to the start of its handler.
func (f *falldueSubject) idleTenants(ctx context.Context, c *config, db database) (perSecond, pickup float64, err error) {
	started := make(chan time.Time, warmUp+fewestWaits+4*c.while/shortestGap+1) // no handler waits
	stop, err := f.work(ctx, func() error { started <- time.Now(); return nil })
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	perMinute, err := countStatements(ctx, c, db)
	if err != nil {
		return 0, 0, err
	}
	stored := 0
	waits, err := measureWaits(ctx, c, func(ctx context.Context) error {
		stored++
		_, err := f.kind.Enqueue(ctx, f.producer, sample, falldue.EnqueueOptions{Key: falldue.KeyOf("tenant", fmt.Sprint("new-", stored), "endpoint", "1")})
		return err
	}, started)
	if err != nil {
		return 0, 0, err
	}
	return perMinute / 60, milliseconds(waits[len(waits)/2]), nil
}

// Of two tenants, the large one has the weight largeWeight, and the small one the weight 1.
const (
	largeTenant, smallTenant = "tenant=large", "tenant=small"
	largeWeight              = 3
)

// weightOf is the weight of a tenant in the measure weights_ratio.
func weightOf(tenant string) int {
	if tenant == largeTenant {
		return largeWeight
	}
	return 1
}

// insertOfTenant stores n due tasks of a tenant.
func (f *falldueSubject) insertOfTenant(ctx context.Context, tenant string, n int) error {
	return insertSeries(ctx, f.pools[0], f.engine, n, `insert into falldue_tasks (queue, kind, task_key, updated_at, created_at, payload)
		select 'default', 'bench', '`+tenant+`/endpoint=1', %[2]s, %[1]s, '`+encoded+`'`)
}

// weightedRun is how long a handler sleeps in the measure weights_ratio, give or take a half. Handlers, and not the
// database, are then what tenants share.
const weightedRun = 400 * time.Millisecond

// measureWeights measures what two tenants with the weights 3 and 1 get: how many handlers the small one has while no
// other task waits, and how many tasks of the large one start for one of the small one while tasks of both wait.
func measureWeights(ctx context.Context, c *config, db database, s subject) (v values, err error) {
	f, ok := s.(*falldueSubject)
	if !ok || !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	n := int(5*(c.while+5*time.Second)/weightedRun) * handlers // more than the handlers can take
	if err := errors.Join(f.insertOfTenant(ctx, smallTenant, n), db.analyze(ctx)); err != nil {
		return nil, err
	}
	var large, small, running atomic.Int64
	falldue.Handle(f.worker, f.kind, func(_ context.Context, t falldue.Task[payload]) error {
		running.Add(1)
		defer running.Add(-1)
		if strings.HasPrefix(t.Key, largeTenant) {
			large.Add(1)
		} else {
			small.Add(1)
		}
		time.Sleep(weightedRun/2 + rand.N(weightedRun))
		return nil
	})
	stop, err := startWorker(ctx, f.worker.Run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	// busy returns the mean number of busy handlers from a second after the first task of a tenant. Then large and small
	// have the tasks that started in the same time.
	busy := func(first *atomic.Int64) (mean float64, err error) {
		every := time.NewTicker(5 * time.Millisecond)
		defer every.Stop()
		var sum, samples float64
		for begin, counting := time.Now(), false; samples == 0 || time.Since(begin) < c.while; {
			select {
			case <-every.C:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			switch {
			case counting:
				sum, samples = sum+float64(running.Load()), samples+1
			case time.Since(begin) > c.patience:
				return 0, fmt.Errorf("no task of a tenant started within %v", c.patience)
			case first.Load() > 0:
				time.Sleep(time.Second)
				large.Store(0)
				small.Store(0)
				begin, counting = time.Now(), true
			}
		}
		return sum / samples, nil
	}
	alone, err := busy(&small) // while only the small tenant has tasks
	if err != nil {
		return nil, err
	}
	if err := f.insertOfTenant(ctx, largeTenant, n); err != nil {
		return nil, err
	}
	both, err := busy(&large)
	if err != nil {
		return nil, err
	}
	ratio := float64(large.Load()) / float64(max(1, small.Load()))
	return values{"": ratio, "weights_alone_handlers": alone, "weights_both_handlers": both}, nil
}

// campaignRun is how long a handler of the campaign sleeps, give or take a half.
const campaignRun = time.Second

// measureCampaign measures how long the single tasks of one tenant wait while config.backlog tasks of another tenant
// are due and occupy all handlers, and how many of these handlers end before a single task starts.
func measureCampaign(ctx context.Context, c *config, db database, s subject) (v values, err error) {
	f, ok := s.(*falldueSubject)
	if !ok || !isFalldue(s) {
		return nil, errors.ErrUnsupported
	}
	var mu sync.Mutex
	var ends []time.Time // of handlers of the campaign
	var running atomic.Int64
	started := make(chan time.Time, 1)
	falldue.Handle(f.worker, f.kind, func(_ context.Context, t falldue.Task[payload]) error {
		if !strings.HasPrefix(t.Key, largeTenant) {
			started <- time.Now()
			return nil
		}
		running.Add(1)
		defer running.Add(-1)
		time.Sleep(campaignRun/2 + rand.N(campaignRun))
		mu.Lock()
		defer mu.Unlock()
		ends = append(ends, time.Now())
		return nil
	})
	stop, err := startWorker(ctx, f.worker.Run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	single := func(ctx context.Context) error { // the worker's process knows of it
		_, err := f.kind.Enqueue(ctx, f.worker, sample, falldue.EnqueueOptions{Key: smallTenant + "/endpoint=1"})
		return err
	}
	measure := func() (waits []time.Duration, ended []int, err error) {
		for range warmUp + fewestWaits {
			time.Sleep(shortestGap + rand.N(longestGap-shortestGap))
			begin := time.Now()
			wait, err := c.awaitTask(ctx, single, started)
			if err != nil {
				return nil, nil, err
			}
			at := time.Now()
			mu.Lock()
			n := 0
			for _, end := range slices.Backward(ends) {
				if end.Before(begin) {
					break
				}
				if end.Before(at) {
					n++
				}
			}
			mu.Unlock()
			waits, ended = append(waits, wait), append(ended, n)
		}
		waits, ended = waits[warmUp:], ended[warmUp:]
		slices.Sort(waits)
		slices.Sort(ended)
		return waits, ended, nil
	}
	alone, _, err := measure()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.insertOfTenant(ctx, largeTenant, c.backlog), db.analyze(ctx)); err != nil {
		return nil, err
	}
	for begin := time.Now(); running.Load() < handlers; time.Sleep(time.Millisecond) {
		if time.Since(begin) > c.patience {
			return nil, fmt.Errorf("%d of %d handlers are busy after %v", running.Load(), handlers, c.patience)
		}
	}
	beside, ended, err := measure()
	if err != nil {
		return nil, err
	}
	last := len(beside) - 1
	return values{
		"": milliseconds(beside[len(beside)/2]), "campaign_max_ms": milliseconds(beside[last]), "campaign_alone_ms": milliseconds(alone[len(alone)/2]),
		"campaign_ended": float64(ended[len(ended)/2]), "campaign_ended_max": float64(ended[last]),
	}, nil
}
