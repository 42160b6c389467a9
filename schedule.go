package falldue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// What package periodic needs of a queue, beside its store.

func init() { hooks.Origin = origin }

// Entry returns the task that params describe as schedules store it, and a hash of its kind
// and arguments. Settings that the tasks of a schedule cannot have give an error.
func (s internals) Entry(params any) (e store.Entry, hash string, err error) {
	p, ok := params.(EnqueueParams)
	if !ok || p.kind == nil {
		return e, "", invalid("empty EnqueueParams, or a task of an empty Kind; make them with NewKind and Kind.Params")
	}
	if p.opts.Delay != 0 {
		return e, "", invalid("Delay %v is set; allowed is none, the tick says when", p.opts.Delay)
	}
	if err := p.opts.schedulable(); err != nil {
		return e, "", err
	}
	if e, err = s.q.entry(p); err != nil {
		return e, "", fmt.Errorf("kind %.100q: %w", p.kind.name, err)
	}
	plain, err := storable.JSON(p.args)
	if err != nil {
		return e, "", invalid("payload: %w", err)
	}
	hash, err = Unique{By: ByArgs()}.hash(s.q.cfg.Codec, p.kind.name, p.args, plain)
	return e, hash, err
}

// schedulable returns an error for settings that the tasks of a schedule cannot have.
func (o *EnqueueOptions) schedulable() error {
	switch {
	case !o.Policy.IsZero():
		return invalid("Policy is set; allowed is none, that of the kind")
	case o.Unique.isSet():
		return invalid("Unique is set; allowed is none")
	case !o.RunAt.IsZero():
		return invalid("RunAt %v is set; allowed is none, the tick says when", o.RunAt)
	}
	return nil
}

// errNotStored is the error of middleware that returned nil without calling next.
var errNotStored = errors.New("falldue: middleware has not stored the tasks of a schedule, and returned no error")

// Middleware reports whether there is middleware around enqueues.
func (s internals) Middleware() bool { return s.q.aroundEnqueue.Load() != nil }

// Through stores entries of a schedule by way of the queue's middleware.
func (s internals) Through(ctx context.Context, entries []store.Entry, put func(context.Context, []store.Entry) ([]int64, error)) error {
	around := s.q.aroundEnqueue.Load()
	if around == nil || len(entries) == 0 {
		_, err := put(ctx, entries)
		return err
	}
	called := false
	params := make([]EnqueueParams, len(entries))
	for i, e := range entries {
		payload, err := decode(s.q.cfg.Codec, payloadOf(e.Kind), []byte(e.Payload))
		if err != nil {
			return err
		}
		params[i] = EnqueueParams{
			kind: &kind{name: e.Kind, KindConfig: KindConfig{Queue: e.Queue, Priority: e.Priority}}, args: json.RawMessage(payload),
			opts: EnqueueOptions{Key: e.Key, MaxAttempts: e.MaxAttempts, Delay: store.Duration(e.Delay), Metadata: store.ReadMetadata([]byte(e.Metadata.V))},
			put: func(ctx context.Context, tasks []EnqueueParams) ([]Receipt, error) {
				called = true
				list, err := s.scheduled(tasks, entries)
				if err != nil {
					return nil, err
				}
				return receiptsOf(put(ctx, list))
			},
		}
	}
	_, err := (*around)(ctx, nil, params)
	if err == nil && !called {
		err = errNotStored
	}
	return err
}

// scheduled returns tasks of a schedule as they are stored. entries are those of which
// middleware has made them.
func (s internals) scheduled(tasks []EnqueueParams, entries []store.Entry) ([]store.Entry, error) {
	list := make([]store.Entry, len(tasks))
	for i, p := range tasks {
		err := p.opts.schedulable()
		if err == nil {
			list[i], err = s.q.entry(p)
		}
		if err != nil {
			return nil, fmt.Errorf("enqueue %.100q: %w", p.Kind(), err)
		}
		if slices.ContainsFunc(entries, func(e store.Entry) bool { return e.Key == p.opts.Key }) {
			list[i].Key = p.opts.Key // which may be a hash
		}
	}
	return list, nil
}

// Said returns who pauses a schedule, and why, as they are stored.
func (s internals) Said(who, why string) (string, string, error) { return said(who, why) }

// AddTicker adds a ticker.
func (s internals) AddTicker(t hooks.Ticker) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.q.tickers = append(s.q.tickers, t)
}

// Tickers returns the tickers that have been added.
func (s internals) Tickers() []hooks.Ticker {
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
