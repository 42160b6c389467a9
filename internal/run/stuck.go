package run

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/lease"
	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/words"
)

// Stuck gives up handlers that keep running although their context has ended: their runs end, and other
// handlers take their slots. Go cannot end a goroutine, so given-up handlers keep running. A nil Stuck
// gives up none.
type Stuck struct {
	StuckConfig
	stop func() // stops the worker
	log  *slog.Logger

	mu   sync.Mutex
	runs map[*Run]struct{} // of given-up handlers that keep running
}

// StuckConfig decides which handlers are stuck, and how their runs end.
type StuckConfig struct {
	// After is how long a handler may run after the end of its context; 0 is no limit.
	After time.Duration
	// Most is how many given-up handlers may run before the worker stops.
	Most int
	// Failure returns how the run of a stuck handler ends.
	Failure func(r *Run, err error) *outcome.Failure
}

// NewStuck returns a Stuck for the worker that stop stops, or nil if no handlers are given up.
func NewStuck(cfg StuckConfig, stop func(), log *slog.Logger) *Stuck {
	if cfg.After == 0 {
		return nil
	}
	return &Stuck{StuckConfig: cfg, stop: stop, log: log, runs: map[*Run]struct{}{}}
}

// watch waits until a time after the end of a handler's context.
type watch struct {
	after time.Duration
	late  chan error // receives the cause of the context's end, when the time has passed
}

// begin starts the wait. The context ends in d, with a cause.
func (w *watch) begin(d time.Duration, cause error) *time.Timer {
	return time.AfterFunc(d+w.after, func() {
		select {
		case w.late <- cause:
		default: // another end came first
		}
	})
}

// handle runs the handler of a run. If it gives up the handler, it returns the run that continues
// without the handler.
func (s *Stuck) handle(ctx context.Context, r *Run, leases *lease.Set) (*Run, *outcome.Failure) {
	if s == nil {
		return r, r.handler.Run(ctx, r)
	}
	started := time.Now()
	r.watch = &watch{after: s.After, late: make(chan error, 1)}
	defer context.AfterFunc(ctx, func() { r.watch.begin(0, context.Cause(ctx)) })()
	returned, name := make(chan *outcome.Failure, 1), make(chan string, 1)
	go func() {
		f := outcome.Goexit
		defer func() {
			returned <- f
			s.returned(r, started)
		}()
		name <- goroutine()
		f = r.handler.Run(ctx, r)
	}()
	select {
	case f := <-returned:
		return r, f
	case cause := <-r.watch.late:
		select {
		case f := <-returned:
			return r, f
		default:
		}
		left := r.withoutHandler(leases)
		s.giveUp(r)
		err := &outcome.StuckError{After: s.After, Cause: cause, Stack: stackOf(<-name)}
		s.gaveUp(r, err)
		return left, s.Failure(left, err)
	}
}

// giveUp counts a given-up handler, and stops the worker if too many keep running.
func (s *Stuck) giveUp(r *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[r] = struct{}{}; len(s.runs) > s.Most {
		s.stop()
	}
}

// returned notes that a handler has returned.
func (s *Stuck) returned(r *Run, started time.Time) {
	s.mu.Lock()
	_, given := s.runs[r]
	delete(s.runs, r)
	s.mu.Unlock()
	if given {
		s.log.Info("falldue: a handler that was given up has returned", "task", r.Claim.ID, "kind", r.Claim.From.Kind, "took", time.Since(started).Round(time.Millisecond))
	}
}

// gaveUp reports a handler that was given up.
func (s *Stuck) gaveUp(r *Run, err *outcome.StuckError) {
	s.log.Error("falldue: a handler is stuck and has been given up", "task", r.Claim.ID, "kind", r.Claim.From.Kind, "queue", r.Queue, "attempt", r.Claim.Attempts,
		"error", err, "stack", err.Stack)
}

// Err returns an error if given-up handlers keep running.
func (s *Stuck) Err() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s of this worker cannot be ended; restart the process", outcome.ErrStuck, words.Count(int64(len(s.runs)), "handler"))
}

// withoutHandler returns a run of the same claim. The given-up handler keeps r, which has lost its lease.
func (r *Run) withoutHandler(leases *lease.Set) *Run {
	left := &Run{Env: r.Env, handler: r.handler, Lease: lease.New(r.Claim, r.Queue, time.Time{}), began: r.began}
	left.ClaimResult = outcome.ClaimResult{Claim: r.Claim, Policy: r.Policy, WorkerID: r.WorkerID, Answered: r.Answered}
	left.progress.last, left.progress.any = r.lastProgress()
	r.mu.Lock()
	left.steps = r.steps
	r.mu.Unlock()
	leases.Replace(&r.Lease, &left.Lease)
	return left
}

// goroutine returns the beginning of the first line of this goroutine's stack, which no other goroutine has.
func goroutine() string {
	line := make([]byte, 64)
	line = line[:runtime.Stack(line, false)]
	name, _, _ := bytes.Cut(line, []byte("["))
	return string(name)
}

// maxStacks is the greatest size of all stacks together in which stackOf searches.
const maxStacks = 16 << 20

// stackOf returns the stack of the goroutine with a name, or "" if it is behind too many others.
func stackOf(name string) string {
	for size := 64 << 10; ; size *= 4 {
		all := make([]byte, size)
		n := runtime.Stack(all, true)
		for stack := range bytes.SplitSeq(all[:n], []byte("\n\n")) {
			if bytes.HasPrefix(stack, []byte(name)) && (n < size || size >= maxStacks) {
				return string(stack)
			}
		}
		if n < size || size >= maxStacks {
			return ""
		}
	}
}
