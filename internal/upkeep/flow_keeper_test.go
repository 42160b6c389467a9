package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// fakeFlows is a table of flows with a waiter that the database refuses.
type fakeFlows struct {
	flowTable
	refused   int64
	corrupt   map[int64]error
	waitersOf map[int64][]int64 // by members
	fates     map[int64]store.Fate
	ended     map[int64]store.Fate
}

func (f *fakeFlows) WaitersOf(_ context.Context, members []int64) (ids []int64, err error) {
	for _, m := range members {
		ids = append(ids, f.waitersOf[m]...)
	}
	return ids, nil
}

func (f *fakeFlows) Judge(_ context.Context, ids []int64) (list []store.Verdict, err error) {
	for _, id := range ids {
		list = append(list, store.Verdict{ID: id, Queue: fmt.Sprint("queue", id), To: f.fates[id], Corrupt: f.corrupt[id]})
	}
	return list, nil
}

func (f *fakeFlows) EndWaiting(_ context.Context, ids []int64, to store.Fate) ([]int64, error) {
	if slices.Contains(ids, f.refused) {
		return nil, errors.New("refused")
	}
	for _, id := range ids {
		f.ended[id] = to
	}
	return ids, nil
}

func TestWaiterThatIsRefusedHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	f := &fakeFlows{
		refused: 12, ended: map[int64]store.Fate{},
		waitersOf: map[int64][]int64{1: {11, 12, 13, 14}, 13: {21}},
		fates:     map[int64]store.Fate{11: store.Opens, 12: store.Opens, 13: store.IsCancelled, 21: store.Opens},
	}
	woken := map[string]bool{}
	err := NewFlowKeeper(f, func(_ context.Context, queue string) { woken[queue] = true }, nil).judgeMembers(t.Context(), []int64{1})
	if err == nil || !strings.Contains(err.Error(), "task 12") {
		t.Errorf("the error is %v; want one that names task 12", err)
	}
	if want := map[int64]store.Fate{11: store.Opens, 13: store.IsCancelled, 21: store.Opens}; !maps.Equal(f.ended, want) {
		t.Errorf("ended are %v, want %v", f.ended, want)
	}
	if want := map[string]bool{"queue11": true, "queue21": true}; !maps.Equal(woken, want) {
		t.Errorf("woken are %v, want %v", woken, want)
	}
}

func TestAWaiterThatCannotBeReadHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	f := &fakeFlows{
		ended: map[int64]store.Fate{}, corrupt: map[int64]error{11: errors.New("column on_death is 17")},
		waitersOf: map[int64][]int64{1: {11, 12}}, fates: map[int64]store.Fate{12: store.Opens},
	}
	err := NewFlowKeeper(f, func(context.Context, string) {}, slog.New(slog.DiscardHandler)).judgeMembers(t.Context(), []int64{1})
	if err == nil || !strings.Contains(err.Error(), "the row of table flows for task 11 cannot be read: column on_death is 17") {
		t.Errorf("the error is %v; want one that names the row", err)
	}
	if want := map[int64]store.Fate{12: store.Opens}; !maps.Equal(f.ended, want) {
		t.Errorf("ended are %v, want %v", f.ended, want)
	}
}

// countedFlows counts reads of a table with some waiters.
type countedFlows struct {
	flowTable
	waiters            []store.Verdict
	ofWaiters, ofEdges int
}

func (c *countedFlows) JudgePage(context.Context, int64) ([]store.Verdict, error) {
	c.ofWaiters++
	return c.waiters, nil
}

func (c *countedFlows) CheckEdges(context.Context, store.EdgeKey) (store.EdgeKey, []int64, error) {
	c.ofEdges++
	return store.EdgeKey{}, nil, nil
}

func TestWhoHasNoFlowsHardlyLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			waiters []store.Verdict
			edges   int // checks of edges in a minute
		}{{nil, 1}, {[]store.Verdict{{ID: 1}}, 4}} {
			table := &countedFlows{waiters: c.waiters}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute-2*time.Second)
			NewFlowKeeper(table, nil, nil).Work(ctx)
			cancel()
			if table.ofWaiters != 4 || table.ofEdges != c.edges {
				t.Errorf("with %d waiters %d reads of waiters and %d of edges, want 4 and %d", len(c.waiters), table.ofWaiters, table.ofEdges, c.edges)
			}
		}
	})
}

// deepFlows is a table of flows with a cascade without an end from member 1 on: each task is cancelled
// and cancels the next one. Member 0 has a waiter that opens.
type deepFlows struct {
	flowTable
	judged func(id int64)
}

func (f *deepFlows) WaitersOf(_ context.Context, members []int64) (ids []int64, err error) {
	for _, m := range members {
		ids = append(ids, m+1)
		if m == 0 {
			ids[len(ids)-1] = -1
		}
	}
	return ids, nil
}

func (f *deepFlows) Judge(_ context.Context, ids []int64) (list []store.Verdict, err error) {
	for _, id := range ids {
		f.judged(id)
		to := store.IsCancelled
		if id < 0 {
			to = store.Opens
		}
		list = append(list, store.Verdict{ID: id, To: to})
	}
	return list, nil
}

func (f *deepFlows) EndWaiting(_ context.Context, ids []int64, _ store.Fate) ([]int64, error) {
	return ids, nil
}

func (f *deepFlows) JudgePage(context.Context, int64) ([]store.Verdict, error) { return nil, nil }

func (f *deepFlows) CheckEdges(context.Context, store.EdgeKey) (store.EdgeKey, []int64, error) {
	return store.EdgeKey{}, nil, nil
}

// TestADeepCascadeDelaysNoOtherFlow: during a cascade without an end, another flow waits for one level of
// the cascade.
func TestADeepCascadeDelaysNoOtherFlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const level = 10 * time.Millisecond
		var k *FlowKeeper
		var ended, opened time.Time
		f := &deepFlows{judged: func(id int64) {
			time.Sleep(level) // by the clock of the bubble
			switch {
			case id < 0:
				opened = time.Now()
				cancel()
			case id == 50:
				ended = time.Now()
				k.Ended([]int64{0}, nil)
			case id > 1000:
				t.Error("the other flow waits for 1,000 levels")
				cancel()
			}
		}}
		k = NewFlowKeeper(f, func(context.Context, string) {}, slog.New(slog.DiscardHandler))
		k.Ended([]int64{1}, nil)
		k.Work(ctx)
		if late := opened.Sub(ended); opened.IsZero() || late > 4*level {
			t.Errorf("the other flow goes on %v after its member has ended, want up to four levels of %v", late, level)
		}
	})
}

// TestACascadeEndsWithItsContext: the cascade of a Cancel ends when the caller's time is up.
func TestACascadeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	last := int64(0)
	f := &deepFlows{judged: func(id int64) {
		last = id
		if id == 50 {
			cancel()
		}
	}}
	NewFlowKeeper(f, func(context.Context, string) {}, slog.New(slog.DiscardHandler)).JudgeFor(ctx, []int64{1})
	if last != 50 {
		t.Errorf("the cascade went on to task %d, want 50", last)
	}
}
