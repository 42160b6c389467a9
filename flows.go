package falldue

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

const (
	// flowsEvery is the time between two looks at all tasks that run after others. They find
	// what a worker left that died between a settle and its look, and members that were
	// cancelled, deleted or retried.
	flowsEvery = 15 * time.Second
	// judgeShare limits looks after settles to a fifth of the time.
	judgeShare = 5
)

// flowKeeper is the role that opens tasks when those have ended after which they run. It looks
// only after the settles have been committed: of two that end the last members, the second one
// to look sees both.
type flowKeeper struct {
	store  *store.Store
	wake   func(queue string)
	events events
	signal chan struct{}

	mu      sync.Mutex
	members []int64 // that have ended

	// Only the role uses these:
	since map[int64]int64 // by waiters: a member that had not ended at the last look
}

func newFlowKeeper(s *store.Store, wake func(queue string), events events) *flowKeeper {
	return &flowKeeper{store: s, wake: wake, events: events, signal: make(chan struct{}, 1), since: map[int64]int64{}}
}

// ended notes the members among runs that have ended, by the settler or by their handlers.
func (k *flowKeeper) ended(batch []*taskRun) {
	if k == nil || !slices.ContainsFunc(batch, func(r *taskRun) bool { return r.end.Member }) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range batch {
		if r.end.Member && State(r.end.State).finished() {
			k.members = append(k.members, r.claim.ID)
		}
	}
	signal(k.signal)
}

// work looks until ctx ends.
func (k *flowKeeper) work(ctx context.Context) {
	swept := time.Now().Add(rand.N(time.Second) - flowsEvery) // soon, since the worker may follow one that died
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.signal:
		case <-time.After(time.Until(swept.Add(flowsEvery))):
		}
		start := time.Now()
		k.mu.Lock()
		members := k.members
		k.members = nil
		k.mu.Unlock()
		err := k.judgeMembers(ctx, members)
		if time.Since(swept) >= flowsEvery {
			if e := k.sweep(ctx); err == nil {
				err = e
			}
			swept = time.Now()
		}
		if err != nil && ctx.Err() == nil {
			k.events.flowsFailed(err)
		}
		_ = pause(ctx, judgeShare*time.Since(start)) // others end meanwhile, and are judged together
	}
}

// judgeMembers opens what may run after members that have ended.
func (k *flowKeeper) judgeMembers(ctx context.Context, members []int64) error {
	for len(members) > 0 {
		waiters := map[int64]bool{}
		for list := range slices.Chunk(members, store.MaxBatch) {
			ids, err := k.store.WaitersOf(ctx, list)
			if err != nil {
				return err
			}
			for _, id := range ids {
				waiters[id] = true
			}
		}
		members = nil
		for _, id := range slices.Sorted(maps.Keys(waiters)) {
			cancelled, err := k.judge(ctx, id)
			if err != nil {
				return err
			}
			if cancelled { // and what runs after it
				members = append(members, id)
			}
		}
	}
	return nil
}

// judge opens a waiter or cancels it, if that is due.
func (k *flowKeeper) judge(ctx context.Context, id int64) (cancelled bool, err error) {
	ctx, cancel := statementContext(ctx, statementTimeout)
	defer cancel()
	v, err := k.store.Judge(ctx, id, k.since[id])
	if err != nil {
		return false, err
	}
	if delete(k.since, id); v.Pending != 0 {
		k.since[id] = v.Pending
	}
	if v.Opened {
		k.wake(v.Queue)
		if k.store.Server().Caps.Notify {
			_ = k.store.Notify(ctx, v.Queue) // those who listen only poll later without it
		}
	}
	return v.Cancelled, nil
}

// sweep looks at all tasks that run after others.
func (k *flowKeeper) sweep(ctx context.Context) error {
	for after := int64(0); ; {
		list, err := k.store.Waiters(ctx, after)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, w := range list {
			if after = w.ID; ctx.Err() != nil {
				return ctx.Err()
			}
			if err := k.look(ctx, w); err != nil {
				return err
			}
		}
	}
}

func (k *flowKeeper) look(ctx context.Context, w store.Waiter) error {
	switch w.State {
	case "":
		return k.store.DropWaiter(ctx, w.ID)
	case statements.StateBlocked:
		if err := k.store.CorrectEdges(ctx, w.ID); err != nil {
			return err
		}
		cancelled, err := k.judge(ctx, w.ID)
		if err == nil && cancelled {
			err = k.judgeMembers(ctx, []int64{w.ID})
		}
		return err
	}
	return nil
}
