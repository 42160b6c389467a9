package signals

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// SamplerConfig has the settings of a Sampler. The zero value is ready for use.
type SamplerConfig struct {
	// Every is how old a sample may be before it is read again. Defaults to 15 seconds. It grows
	// to 20 times as long as a sample takes.
	Every time.Duration
	// Timeout is the longest time for a sample. Defaults to 5 seconds.
	Timeout time.Duration
}

const (
	defaultEvery   = 15 * time.Second
	defaultTimeout = 5 * time.Second
	// sampleShare limits samples to this part of the time.
	sampleShare = 20
	// sampledDue is how long tasks have been due that wait.
	sampledDue = time.Second
	// maxPairs, maxSubjects and maxSchedules bound the series of one metric.
	maxPairs, maxSubjects, maxSchedules = 1000, 100, 1000
	// measured is how old the counts of workers may be, which measure once a minute.
	measured = 90 * time.Second
	// remembered is how long a queue and kind without tasks is exported as 0.
	remembered = time.Hour
)

// Sampler reads the state of a database for metrics. Any number of concurrent callers share one
// sample; without calls it reads nothing. It is safe for concurrent use.
type Sampler struct {
	cfg   SamplerConfig
	queue *falldue.Queue
	now   func() time.Time

	reading sync.Mutex // held while a sample is read

	mu     sync.Mutex
	values []value
	at     time.Time     // of the last good sample
	tried  time.Time     // when the last sample ended
	took   time.Duration // of the last sample
	failed float64
	seen   map[ops.QueueKind]time.Time
}

// value is a value of a metric.
type value struct {
	metric *Metric
	v      float64
	labels []string
}

// NewSampler returns a sampler of the database of a queue. It reads nothing yet.
func NewSampler(q *falldue.Queue, cfg SamplerConfig) *Sampler {
	if cfg.Every <= 0 {
		cfg.Every = defaultEvery
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	return &Sampler{cfg: cfg, queue: q, now: time.Now, seen: map[ops.QueueKind]time.Time{}}
}

// Collect calls f with each value of the metrics that are [Metric.Sampled]. It reads a sample first
// if the last one is old. If that fails, it leaves the state out, and falldue_sample_age_seconds
// grows.
func (s *Sampler) Collect(ctx context.Context, f func(m *Metric, v float64, values ...string)) {
	s.refresh(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.Equal(s.tried) { // it did not fail
		for _, v := range s.values {
			f(v.metric, v.v, v.labels...)
		}
	}
	if !s.at.IsZero() {
		f(sampleAge, s.now().Sub(s.at).Seconds())
	}
	f(sampleSeconds, s.took.Seconds())
	f(sampleErrors, s.failed)
}

// fresh reports whether the last sample may be used.
func (s *Sampler) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.tried.IsZero() && s.now().Sub(s.tried) < max(s.cfg.Every, sampleShare*s.took)
}

// refresh reads a sample if the last one is old. Of concurrent calls one reads.
func (s *Sampler) refresh(ctx context.Context) {
	if s.fresh() {
		return
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.fresh() { // another call has read it
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	start := s.now()
	values, err := s.read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried, s.took = s.now(), s.now().Sub(start)
	if err != nil {
		s.failed++
		return
	}
	s.values, s.at = values, s.tried
}

// read reads the state.
func (s *Sampler) read(ctx context.Context) (list []value, err error) {
	o := ops.New(s.queue) // which remembers no estimates
	counts, err := s.counts(ctx, o)
	if err != nil {
		return nil, err
	}
	due, err := o.Overdue(ctx, sampledDue)
	if err != nil {
		return nil, err
	}
	pulse, err := o.NewMonitor().Read(ctx)
	if err != nil {
		return nil, err
	}
	schedules, err := periodic.List(ctx, s.queue)
	if err != nil {
		return nil, err
	}
	add := func(m *Metric, v float64, labels ...string) { list = append(list, value{m, v, labels}) }
	s.addKinds(add, counts, due, pulse)
	s.addWorkers(add, pulse)
	for _, p := range pulse.Pauses[:min(len(pulse.Pauses), maxSubjects)] {
		add(paused, 1, p.String())
	}
	for _, o := range pulse.Overrides[:min(len(pulse.Overrides), maxSubjects)] {
		hold := "0"
		if ops.IsHold(o.Formula) {
			hold = "1"
		}
		add(overrideAge, max(pulse.At.Sub(o.At), 0).Seconds(), o.String(), hold)
	}
	for _, schedule := range schedules[:min(len(schedules), maxSchedules)] {
		late := max(schedule.Now.Sub(schedule.Next), 0)
		if schedule.Paused {
			late = 0
		}
		add(scheduleLate, late.Seconds(), schedule.Name)
	}
	return list, nil
}

// counts returns what workers have measured of late, or else estimates: of what a sample reads, these
// alone cost more the more tasks there are.
func (s *Sampler) counts(ctx context.Context, o *ops.Ops) (list []ops.Count, err error) {
	stored, err := hooks.StoreOf(s.queue).Sample(ctx)
	if err != nil || stored.Age > measured || len(stored.Gauges) == 0 {
		return o.EstimateCounts(ctx)
	}
	for _, g := range stored.Gauges {
		for state, n := range g.Tasks {
			list = append(list, ops.Count{Queue: g.Queue, Kind: g.Kind, State: falldue.State(state), Tasks: n, Estimated: true})
		}
	}
	return list, nil
}

// addKinds adds the values of each queue and kind. One that had tasks within the last hour, or that a
// live worker handles, has values of 0.
func (s *Sampler) addKinds(add func(*Metric, float64, ...string), counts []ops.Count, due []ops.Overdue, pulse ops.Pulse) {
	now := s.now()
	see := func(at ops.QueueKind) {
		if _, known := s.seen[at]; known || len(s.seen) < maxPairs {
			s.seen[at] = now
		}
	}
	for _, c := range counts {
		see(ops.QueueKind{Queue: c.Queue, Kind: c.Kind})
	}
	for _, w := range pulse.Workers {
		for _, queue := range w.QueueNames() {
			for _, kind := range w.KindNames() {
				if at := (ops.QueueKind{Queue: queue, Kind: kind}); len(w.Queues) == 1 || !s.seen[at].IsZero() {
					see(at)
				}
			}
		}
	}
	none := map[ops.QueueKind]bool{}
	for _, at := range ops.Unhandled(pulse.Queues, pulse.Workers) {
		none[at] = true
		see(at)
	}
	for at, seen := range s.seen {
		if now.Sub(seen) > remembered {
			delete(s.seen, at)
			continue
		}
		var oldest, first float64
		var waiting, delayed int
		for _, o := range due {
			switch {
			case o.Queue != at.Queue || o.Kind != at.Kind:
			case o.Stuck():
				waiting += o.Tasks
				oldest = max(oldest, pulse.At.Sub(o.DueSince).Seconds())
			default:
				delayed += o.Tasks
			}
		}
		if delayed > 0 && waiting == 0 {
			first = 1
		}
		add(oldestDue, oldest, at.Queue, at.Kind)
		add(dueTasks, float64(waiting), at.Queue, at.Kind)
		add(limited, first, at.Queue, at.Kind)
		add(unhandled, number(none[at]), at.Queue, at.Kind)
		for _, state := range sampledStates {
			n := 0.0
			if i := slices.IndexFunc(counts, func(c ops.Count) bool { return c.Queue == at.Queue && c.Kind == at.Kind && c.State == state }); i >= 0 {
				n = float64(counts[i].Tasks)
			}
			add(tasks, n, at.Queue, at.Kind, string(state))
		}
	}
}

// sampledStates are the states of tasks.
var sampledStates = []falldue.State{falldue.StateBlocked, falldue.StateOpen, falldue.StateSnoozed, falldue.StateDone, falldue.StateDead, falldue.StateCancelled}

// addWorkers adds the values of each queue with workers.
func (s *Sampler) addWorkers(add func(*Metric, float64, ...string), pulse ops.Pulse) {
	var queues []string
	for _, q := range pulse.Queues {
		queues = append(queues, q.Name)
	}
	for _, w := range pulse.Workers {
		queues = append(queues, w.QueueNames()...)
	}
	slices.Sort(queues)
	for _, queue := range slices.Compact(queues) {
		h := ops.Handlers(pulse.Workers, queue, "")
		add(workersGauge, float64(len(h.Workers)), queue)
		add(handlersRunning, float64(h.Running), queue)
		add(handlersLimit, float64(h.Concurrency), queue)
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
