package falldue

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
)

// What package periodic needs of a queue, beside its store.

func init() { hooks.Origin = origin }

// Entry returns the task that params describe as schedules store it, and a hash of its kind
// and arguments. Settings that the tasks of a schedule cannot have give an error.
func (s stepper) Entry(params any) (e store.Entry, hash string, err error) {
	p, ok := params.(EnqueueParams)
	if !ok || p.kind == nil {
		return e, "", invalid("empty EnqueueParams; Kind.Params makes them")
	}
	switch o := p.opts; {
	case o.Policy != nil:
		return e, "", invalid("Policy is set; allowed is none, that of the kind")
	case o.Unique != nil:
		return e, "", invalid("Unique is set; allowed is none")
	case !o.RunAt.IsZero() || o.Delay != 0:
		return e, "", invalid("RunAt %v or Delay %v is set; allowed is neither, the tick says when", o.RunAt, o.Delay)
	}
	if e, err = s.q.entry(p); err != nil {
		return e, "", fmt.Errorf("kind %.100q: %w", p.kind.name, err)
	}
	plain, err := json.Marshal(p.args)
	if err != nil {
		return e, "", fmt.Errorf("%w: arguments: %w", ErrInvalid, err)
	}
	hash, err = (&Unique{}).hash(s.q.cfg.Codec, p.kind.name, p.args, plain)
	return e, hash, err
}

// AddTicker adds a ticker.
func (s stepper) AddTicker(t hooks.Ticker) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.q.tickers = append(s.q.tickers, t)
}

// Tickers returns the tickers that have been added.
func (s stepper) Tickers() []hooks.Ticker {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return slices.Clone(s.q.tickers)
}

// origin says which process this is: its host, and the release of the program.
func origin() string {
	text, _ := os.Hostname()
	if build, ok := debug.ReadBuildInfo(); ok {
		if release := releaseOf(build); release != "" {
			text += " " + release
		}
	}
	return text
}
