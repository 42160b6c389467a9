package falldue

import (
	"context"

	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/upkeep"
)

// What package flow needs of a queue, beside its store.

// EnqueueFlow stores tasks of which some run after others. tx is a Tx or nil.
func (s internals) EnqueueFlow(ctx context.Context, tx any, params []any, flow store.Flow) ([]int64, error) {
	var within Tx
	if tx != nil {
		within = tx.(Tx)
		if err := checkTx(within); err != nil {
			return nil, err
		}
	}
	put := func(ctx context.Context, tasks []EnqueueParams) ([]Receipt, error) {
		return s.putFlow(ctx, within, tasks, len(params), flow)
	}
	tasks := make([]EnqueueParams, len(params))
	for i, p := range params {
		tasks[i] = p.(EnqueueParams)
		tasks[i].put, tasks[i].place = put, i
	}
	if len(tasks) == 0 {
		return nil, nil
	}
	fn := EnqueueFunc(func(ctx context.Context, _ Tx, tasks []EnqueueParams) ([]Receipt, error) { return put(ctx, tasks) })
	if around := s.q.aroundEnqueue.Load(); around != nil {
		fn = *around
	}
	receipts, err := throughMiddleware(ctx, within, fn, len(tasks), func(i int) EnqueueParams { return tasks[i] })
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(receipts))
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids, nil
}

func (s internals) putFlow(ctx context.Context, tx Tx, tasks []EnqueueParams, n int, flow store.Flow) ([]Receipt, error) {
	if len(tasks) != n {
		return nil, invalid("%d tasks that middleware made of %d of a flow; allowed is one for each", len(tasks), n)
	}
	for i, t := range tasks {
		if t.put != nil && t.place != i {
			return nil, invalid("task %d of a flow, %s, which middleware made task %d; allowed is their order", t.place, t.Kind(), i)
		}
	}
	members := map[int]bool{}
	for _, e := range flow.Edges {
		members[e.Member] = true
	}
	p, err := s.q.pending(n, func(i int) EnqueueParams {
		t := tasks[i]
		t.marks = nil
		if members[i] || flow.Sibling != 0 {
			t.marks = append(t.marks, store.MemberMark)
		}
		if _, waits := flow.Waiters[i]; waits {
			t.marks = append(t.marks, store.WaiterMark)
		}
		return t
	})
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		if tasks[i].opts.Unique.isSet() {
			return nil, invalid("task %d, %s, has Unique; allowed is none in a flow, since what exists runs after nothing", i, tasks[i].Kind())
		}
	}
	p.flow = &flow
	return s.q.insert(ctx, tx, p)
}

// judgeMembers opens what may run after members that have ended. What it fails to do is done by
// a worker, at its next look at all of them.
func (q *Queue) judgeMembers(ctx context.Context, members []int64) {
	upkeep.NewFlowKeeper(q.store, func(context.Context, string) { q.Wake() }, q.cfg.Logger).JudgeFor(ctx, members)
}
