package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

const (
	// flowsEvery is the time between two checks of tasks with dependencies. The checks find
	// tasks whose worker died between the settle of a dependency and its check.
	flowsEvery = 15 * time.Second
	// flowPages is the greatest number of pages of tasks with dependencies, and of members, that a
	// check reads. The next check continues after these pages.
	flowPages = 10
	// maxEnded is how many ended members may wait for a check. The check every flowsEvery finds
	// the others.
	maxEnded = 100_000
	// maxFlowsPause is the longest pause between two rounds.
	maxFlowsPause = 100 * time.Millisecond
)

// FlowKeeper is the role that opens tasks when their dependencies, the members, have ended. It checks a
// member only after the commit of the member's settle. So if two workers end the last two members, the
// second check sees both.
type FlowKeeper struct {
	table  flowTable
	wake   func(ctx context.Context, queue string)
	events events
	signal chan struct{}

	mu      sync.Mutex
	members []int64 // that have ended
	gone    []int64 // tasks with dependencies that were deleted when they ended

	// Only the role uses these:
	waiter  int64         // the waiter up to which the last check came
	edge    store.EdgeKey // the edge up to which the last check of members came
	checked time.Time     // when members were last checked
}

// flowTable has the statements of the role.
type flowTable interface {
	WaitersOf(ctx context.Context, members []int64) ([]int64, error)
	Judge(ctx context.Context, ids []int64) ([]store.Verdict, error)
	JudgePage(ctx context.Context, after int64) ([]store.Verdict, error)
	EndWaiting(ctx context.Context, ids []int64, to store.Fate) (ended []int64, err error)
	CheckEdges(ctx context.Context, after store.EdgeKey) (last store.EdgeKey, waiters []int64, err error)
	ForgetMembers(ctx context.Context, waiters []int64) error
}

// NewFlowKeeper returns a flow keeper that calls wake with the queues of opened tasks.
func NewFlowKeeper(table flowTable, wake func(ctx context.Context, queue string), log *slog.Logger) *FlowKeeper {
	return &FlowKeeper{table: table, wake: wake, events: events{log}, signal: make(chan struct{}, 1)}
}

// Ended notes members that have ended, and waiters that were deleted when they ended.
func (k *FlowKeeper) Ended(members, gone []int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.members = append(k.members, members[:min(len(members), maxEnded-len(k.members))]...)
	k.gone = append(k.gone, gone[:min(len(gone), maxEnded-len(k.gone))]...)
	retry.Signal(k.signal)
}

// take returns the tasks that have ended, and forgets them.
func (k *FlowKeeper) take() (members, gone []int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	members, gone = k.members, k.gone
	k.members, k.gone = nil, nil
	return members, gone
}

// Work checks tasks with dependencies until ctx ends.
func (k *FlowKeeper) Work(ctx context.Context) {
	swept := time.Now().Add(rand.N(time.Second) - flowsEvery) // soon, since the worker may follow one that died
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.signal:
		case <-time.After(time.Until(swept.Add(flowsEvery))):
		}
		start := time.Now()
		err := k.judgeEnded(ctx)
		if time.Since(swept) >= flowsEvery {
			err = cmp.Or(err, k.checkSome(ctx))
			swept = time.Now()
		}
		if err != nil && ctx.Err() == nil {
			k.events.flowsFailed(err)
		}
		_ = retry.Pause(ctx, min(time.Since(start), maxFlowsPause)) // members that end in the meantime are judged together
	}
}

// JudgeNow judges the waiters of ended members, and of cancelled waiters in turn. After a failure, the
// next check of a worker does so.
func (k *FlowKeeper) JudgeNow(ctx context.Context) {
	if err := k.judgeAllEnded(ctx); err != nil {
		k.events.flowsFailed(err)
	}
}

// judgeAllEnded judges the waiters of ended members, until no more end.
func (k *FlowKeeper) judgeAllEnded(ctx context.Context) (first error) {
	for more := true; more && ctx.Err() == nil; {
		first = cmp.Or(first, k.judgeEnded(ctx))
		k.mu.Lock()
		more = len(k.members)+len(k.gone) > 0
		k.mu.Unlock()
	}
	return first
}

// judgeEnded judges the waiters of members that have ended since the last call, and forgets the members.
// Cancelled waiters are members of the next call, so that a deep cascade delays no other flow by more
// than one of its levels.
func (k *FlowKeeper) judgeEnded(ctx context.Context) error {
	members, gone := k.take()
	cancelled, err := k.judgeWaitersOf(ctx, members)
	k.endedMore(cancelled)
	for list := range slices.Chunk(gone, store.MaxBatch) {
		err = cmp.Or(err, k.bounded(ctx, func(ctx context.Context) error { return k.table.ForgetMembers(ctx, list) }))
	}
	return err
}

// checkSome checks the next tasks with dependencies, and the next members.
func (k *FlowKeeper) checkSome(ctx context.Context) error {
	some, err := k.sweepWaiters(ctx)
	// Without flows, a rare check is enough to find the rows of earlier flows.
	if some || k.edge != (store.EdgeKey{}) || time.Since(k.checked) >= idleRoundWait {
		err = cmp.Or(err, k.checkEdges(ctx))
		k.checked = time.Now()
	}
	return err
}

// endedMore notes members that the role itself has cancelled, if any.
func (k *FlowKeeper) endedMore(cancelled []int64) {
	if len(cancelled) > 0 {
		k.Ended(cancelled, nil)
	}
}

// CheckAll checks all tasks with dependencies and all members.
func (k *FlowKeeper) CheckAll(ctx context.Context) error {
	for {
		if err := cmp.Or(k.checkSome(ctx), k.judgeAllEnded(ctx)); err != nil || k.waiter == 0 && k.edge == (store.EdgeKey{}) {
			return err
		}
	}
}

// bounded calls f with the time limit of a statement.
func (k *FlowKeeper) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := retry.StatementContext(ctx, retry.StatementTimeout)
	defer cancel()
	return f(ctx)
}

// JudgeFor is judgeMembers for a process without a worker. If it fails, or ctx ends before the cascade does,
// the next check of a worker judges the rest.
func (k *FlowKeeper) JudgeFor(ctx context.Context, members []int64) {
	if err := k.judgeMembers(ctx, members); err != nil && ctx.Err() == nil {
		k.events.flowsFailed(err)
	}
}

// judgeMembers opens or cancels the tasks that wait for ended members, and then the tasks that wait for
// cancelled ones. It stops between two levels if ctx has ended. It returns the first error.
func (k *FlowKeeper) judgeMembers(ctx context.Context, members []int64) (first error) {
	for len(members) > 0 {
		if ctx.Err() != nil {
			return cmp.Or(first, context.Cause(ctx))
		}
		var err error
		members, err = k.judgeWaitersOf(ctx, members)
		first = cmp.Or(first, err)
	}
	return first
}

// judgeWaitersOf opens or cancels the tasks that wait for ended members, and returns the cancelled ones. A
// waiter that the database refuses does not hold up others. judgeWaitersOf returns the first error.
func (k *FlowKeeper) judgeWaitersOf(ctx context.Context, members []int64) (cancelled []int64, first error) {
	waiters := map[int64]bool{}
	for list := range slices.Chunk(members, store.MaxBatch) {
		first = cmp.Or(first, k.bounded(ctx, func(ctx context.Context) error {
			ids, err := k.table.WaitersOf(ctx, list)
			for _, id := range ids {
				waiters[id] = true
			}
			return err
		}))
	}
	for list := range slices.Chunk(slices.Sorted(maps.Keys(waiters)), store.MaxBatch) {
		ended, err := k.judge(ctx, list)
		first = cmp.Or(first, err)
		cancelled = append(cancelled, ended...)
	}
	return cancelled, first
}

// judge judges waiters, and returns the cancelled ones.
func (k *FlowKeeper) judge(ctx context.Context, waiters []int64) (cancelled []int64, err error) {
	var verdicts []store.Verdict
	err = k.bounded(ctx, func(ctx context.Context) (err error) {
		verdicts, err = k.table.Judge(ctx, waiters)
		return err
	})
	if err != nil {
		return nil, err
	}
	return k.carryOut(ctx, verdicts)
}

// carryOut carries out verdicts, and returns the cancelled waiters. It leaves rows that another
// transaction has locked to the next check.
func (k *FlowKeeper) carryOut(ctx context.Context, verdicts []store.Verdict) (cancelled []int64, first error) {
	fates, queues := map[store.Fate][]int64{}, map[int64]string{}
	for _, v := range verdicts {
		fates[v.To] = append(fates[v.To], v.ID)
		queues[v.ID] = v.Queue
		if v.Corrupt != nil {
			first = cmp.Or(first, fmt.Errorf("the row of table flows for task %d cannot be read: %w", v.ID, v.Corrupt))
		}
	}
	opened := map[string]bool{}
	end := func(ids []int64, to store.Fate) error {
		var ended []int64
		err := k.bounded(ctx, func(ctx context.Context) (err error) {
			ended, err = k.table.EndWaiting(ctx, ids, to)
			return err
		})
		for _, id := range ended {
			switch to {
			case store.Opens:
				opened[queues[id]] = true
			case store.IsCancelled:
				cancelled = append(cancelled, id)
			}
		}
		return err
	}
	for _, to := range []store.Fate{store.Opens, store.IsCancelled, store.IsForgotten} {
		ids := fates[to]
		if len(ids) == 0 || end(ids, to) == nil {
			continue
		}
		for _, id := range ids { // the database may refuse only one of them
			if ctx.Err() != nil {
				return cancelled, ctx.Err()
			}
			if err := end([]int64{id}, to); err != nil {
				first = cmp.Or(first, fmt.Errorf("task %d: %w", id, err))
			}
		}
	}
	for queue := range opened {
		k.wake(ctx, queue)
	}
	return cancelled, first
}

// sweepWaiters judges the next tasks with dependencies, and reports whether there are any.
func (k *FlowKeeper) sweepWaiters(ctx context.Context) (some bool, first error) {
	for range flowPages {
		var verdicts []store.Verdict
		err := k.bounded(ctx, func(ctx context.Context) (err error) {
			verdicts, err = k.table.JudgePage(ctx, k.waiter)
			return err
		})
		if err != nil {
			return some, cmp.Or(first, err) // the next check begins here
		}
		some = some || len(verdicts) > 0 || k.waiter > 0
		cancelled, err := k.carryOut(ctx, verdicts)
		first = cmp.Or(first, err)
		k.endedMore(cancelled)
		if len(verdicts) < store.MaxBatch {
			k.waiter = 0
			break
		}
		k.waiter = verdicts[len(verdicts)-1].ID
	}
	return some, first
}

// checkEdges compares the next members with their tasks.
func (k *FlowKeeper) checkEdges(ctx context.Context) (first error) {
	for range flowPages {
		var waiters []int64
		first = cmp.Or(first, k.bounded(ctx, func(ctx context.Context) (err error) {
			k.edge, waiters, err = k.table.CheckEdges(ctx, k.edge)
			return err
		}))
		if waiters = slices.Compact(slices.Sorted(slices.Values(waiters))); len(waiters) > 0 {
			cancelled, err := k.judge(ctx, waiters)
			first = cmp.Or(first, err)
			k.endedMore(cancelled)
		}
		if first != nil || k.edge == (store.EdgeKey{}) {
			break
		}
	}
	return first
}

// Last judges the waiters of members that have ended since the role ended.
func (k *FlowKeeper) Last(ctx context.Context) {
	members, _ := k.take()
	if err := k.judgeMembers(ctx, members); err != nil {
		k.events.flowsFailed(err)
	}
}
