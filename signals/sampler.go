package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/hooks"
)

// SamplerConfig contains the settings of a [Sampler]. The zero value is ready for use.
type SamplerConfig struct {
	// Every is the age at which a new sample is computed: 1 second or more. Defaults to 15 seconds. If computing a sample
	// takes long, the age grows to 20 times the duration.
	Every time.Duration
	// Timeout limits the time for computing a sample. Defaults to 5 seconds.
	Timeout time.Duration
}

const (
	defaultEvery   = 15 * time.Second
	defaultTimeout = 5 * time.Second
	// sampleShare limits samples to this part of the time.
	sampleShare = 20
	// sampleCheckEvery is how often a process reads whether another process has computed a sample.
	sampleCheckEvery = time.Second
	// staleAfter is how many times older than Every a sample is withheld.
	staleAfter = 3
)

// Sampler reads the state of the database for metrics. All processes on the database share one sample, in the table
// falldue_sample: the first process that finds the sample too old computes the next sample. Without calls of Collect, a
// Sampler reads nothing. A Sampler is safe for concurrent use.
//
// A process that cannot write to the table computes its own samples, at the same pace.
type Sampler struct {
	cfg   SamplerConfig
	queue *falldue.Queue
	now   func() time.Time

	reading sync.Mutex // held while a sample is read

	mu     sync.Mutex
	last   state
	at     time.Time // when last was computed, by this process's clock; zero without one
	next   time.Time // when to read again
	blind  bool      // the last reading failed
	failed float64
}

// NewSampler returns a sampler of the database of a queue. It reads nothing yet.
func NewSampler(q *falldue.Queue, cfg SamplerConfig) *Sampler {
	if cfg.Every <= 0 {
		cfg.Every = defaultEvery
	}
	cfg.Every = max(cfg.Every, sampleCheckEvery)
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	return &Sampler{cfg: cfg, queue: q, now: time.Now}
}

// Collect calls f with each value of the metrics that are [Metric.Sampled]. If this process's copy of the sample is
// old, Collect first reads the sample again. If reading fails, or if the sample is much too old, Collect omits the
// metrics of the database's state, and falldue_sample_age_seconds grows.
func (s *Sampler) Collect(ctx context.Context, f func(m *Metric, v float64, values ...string)) {
	s.refresh(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() {
		age := s.now().Sub(s.at)
		if !s.blind && age < staleAfter*s.every(s.last) {
			s.last.values(f)
		}
		f(sampleAge, max(age, 0).Seconds())
	}
	f(sampleSeconds, s.last.Took.Seconds())
	f(sampleErrors, s.failed)
}

// every returns how old a state may be.
func (s *Sampler) every(st state) time.Duration { return max(s.cfg.Every, sampleShare*st.Took) }

// fresh reports whether to read nothing now.
func (s *Sampler) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Before(s.next)
}

// refresh reads the sample if this process's copy is old. Of concurrent calls one reads.
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
	st, age, err := s.read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.blind = err != nil; s.blind {
		s.failed++
		s.next = now.Add(max(s.cfg.Every, sampleShare*now.Sub(start)))
		return
	}
	s.next = now.Add(sampleCheckEvery)
	if !st.At.IsZero() {
		s.last, s.at = st, now.Add(-age)
		if next := s.at.Add(s.every(st)); next.After(s.next) {
			s.next = next
		}
	}
}

// read returns the state and its age: the one in the table, or a new one if that is old and no other
// process computes it. The state is empty until the first process has computed it.
func (s *Sampler) read(ctx context.Context) (st state, age time.Duration, err error) {
	table := hooks.StoreOf(s.queue)
	stored, err := table.StateSample(ctx)
	if err != nil {
		return st, 0, err
	}
	if st, err = decode(stored.Text); err != nil {
		return st, 0, err
	}
	every := s.every(st)
	mine, alone := false, stored.Now.Unix() == 0 // the table has no such row
	if stored.Taken >= every || stored.Taken <= -every {
		if mine, err = table.TakeStateSample(ctx, every); err != nil {
			switch class := table.Classify(err); {
			case class == dialect.Contention: // with the process that computes it
			case class == dialect.ReadOnly, class == dialect.Other && ctx.Err() == nil: // such as a missing permission
				alone = true
			default:
				return st, 0, err
			}
		}
	}
	if !mine && !alone {
		return st, stored.Now.Sub(st.At), nil
	}
	if alone {
		s.mu.Lock()
		st = s.last // it remembers what this process has seen
		s.mu.Unlock()
	}
	start := time.Now()
	if st, err = compute(ctx, s.queue, st.Seen); err != nil {
		return st, 0, err
	}
	st.Took = time.Since(start)
	if mine {
		text, err := json.Marshal(st)
		if err != nil {
			return st, 0, fmt.Errorf("falldue: encode the sample: %w", err)
		}
		if err := table.PutStateSample(ctx, string(text)); err != nil {
			return st, 0, err
		}
	}
	return st, 0, nil
}
