package dash

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// reads are the values that all viewers of a handler share.
type reads struct {
	slots   chan struct{}
	changed *atomic.Int64

	pulse     *cached[ops.Pulse]
	overdue   *cached[[]ops.Overdue]
	counts    *cached[[]ops.Count]
	failures  *cached[ops.Failures]
	schedules *cached[[]periodic.Info]
	queues    *cached[[]ops.Queue]
	history   *cached[[]ops.Override]
	findings  *cached[[]ops.Finding]
	profile   *cached[*ops.Profile]
	tasks     keyed[ops.Page]
	task      keyed[taskView]

	samples samples
}

func (r *reads) init(h *Handler) {
	r.slots, r.changed = make(chan struct{}, readsAtOnce), &h.changed
	o := h.ops
	r.pulse = newCached(r, 2*time.Second, func(ctx context.Context) (ops.Pulse, error) {
		p, err := h.monitor.Read(ctx)
		if err == nil {
			r.samples.add(p)
		}
		return p, err
	})
	r.overdue = newCached(r, 10*time.Second, func(ctx context.Context) ([]ops.Overdue, error) { return o.Overdue(ctx, 0) })
	r.counts = newCached(r, 10*time.Second, o.EstimateCounts)
	r.failures = newCached(r, 15*time.Second, o.Failures)
	r.schedules = newCached(r, 5*time.Second, func(ctx context.Context) ([]periodic.Info, error) { return periodic.List(ctx, h.queue) })
	r.queues = newCached(r, 5*time.Second, o.Queues)
	r.history = newCached(r, 5*time.Second, o.OverrideHistory)
	r.findings = newCached(r, time.Minute, o.Diagnose)
	r.findings.limit = 2 * time.Minute
	r.profile = newCached(r, time.Minute, o.Profile)
	r.profile.limit = time.Minute
	r.tasks.make = func(key string) *cached[ops.Page] {
		return newCached(r, 2*time.Second, func(ctx context.Context) (ops.Page, error) {
			f, list, err := parseList(key)
			if err != nil {
				return ops.Page{}, err
			}
			return o.Tasks(ctx, f, list)
		})
	}
	r.task.make = func(key string) *cached[taskView] {
		return newCached(r, 2*time.Second, func(ctx context.Context) (taskView, error) {
			id, err := strconv.ParseInt(key, 10, 64)
			if err != nil {
				return taskView{}, falldue.ErrNotFound
			}
			return h.readTask(ctx, id)
		})
	}
}

// sample is the state at a moment.
type sample struct {
	at           time.Time // by the database's clock
	done, failed float64   // per second
	known        bool      // whether these are
	oldest       time.Duration
}

// samples has the last hour, with gaps while no page was open.
type samples struct {
	mu   sync.Mutex
	list []sample
}

const (
	sampleEvery = 5 * time.Second
	sampleFor   = time.Hour
)

func (s *samples) add(p ops.Pulse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 && p.At.Sub(s.list[n-1].at) < sampleEvery {
		return
	}
	one := sample{at: p.At, done: p.Rate.Done, failed: p.Rate.Failed, known: p.Rate.Known}
	if first, ok := p.First(); ok {
		one.oldest = max(p.At.Sub(first.FirstDue), 0)
	}
	for len(s.list) > 0 && p.At.Sub(s.list[0].at) > sampleFor {
		s.list = s.list[1:]
	}
	s.list = append(s.list, one)
}

func (s *samples) all() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sample(nil), s.list...)
}
