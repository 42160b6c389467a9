package many

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/run"
)

// gatherer is the handler of a kind. The run of each task calls it, and waits in it until the task's batch has run.
type gatherer[A any] struct {
	Config[A]
	fn func(context.Context, *Batch[A]) error

	mu   sync.Mutex
	open map[string]*batch[A] // to which tasks can still come, by their groups
}

// batch is a batch that gathers or runs. Its members do not change after full is closed.
type batch[A any] struct {
	members []*member[A]
	timer   *time.Timer
	full    chan struct{} // closed when no more tasks come
	ran     chan struct{} // closed when the function has returned
}

// member is a task of a batch.
type member[A any] struct {
	ctx  context.Context
	task falldue.Task[A]
	err  error // set before ran is closed
}

// handle runs a task in a batch, and returns the task's own error.
func (g *gatherer[A]) handle(ctx context.Context, t falldue.Task[A]) error {
	group := ""
	if g.GroupBy != nil {
		group = g.GroupBy(t)
	}
	from, m := run.GatheringOf(ctx), &member[A]{ctx: ctx, task: t}
	b := g.join(group, m, from.None)
	select {
	case <-b.full:
	case <-ctx.Done():
		if g.leave(group, b, m) {
			return context.Cause(ctx)
		}
	case <-from.Stop:
		if g.leave(group, b, m) {
			return falldue.ErrStopping // so that the attempt does not count
		}
	}
	if b.members[0] == m {
		b.run(g.fn)
	}
	<-b.ran
	return m.err
}

// join adds a task to the batch of its group that gathers, or to a new one. With last, no more tasks come after it.
func (g *gatherer[A]) join(group string, m *member[A], last bool) *batch[A] {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.open[group]
	if b == nil {
		b = &batch[A]{full: make(chan struct{}), ran: make(chan struct{})}
		b.timer = time.AfterFunc(g.Wait, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.close(group, b)
		})
		g.open[group] = b
	}
	if b.members = append(b.members, m); last || len(b.members) == g.Most {
		g.close(group, b)
	}
	return b
}

// close lets a batch run, unless it runs already or all its tasks have left. The caller holds mu.
func (g *gatherer[A]) close(group string, b *batch[A]) {
	if g.open[group] == b {
		delete(g.open, group)
		b.timer.Stop()
		close(b.full)
	}
}

// leave removes a task from a batch that gathers. It returns false if the batch runs.
func (g *gatherer[A]) leave(group string, b *batch[A], m *member[A]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[group] != b {
		return false
	}
	if b.members = slices.DeleteFunc(b.members, func(one *member[A]) bool { return one == m }); len(b.members) == 0 {
		delete(g.open, group)
		b.timer.Stop()
	}
	return true
}

var errGoexit = errors.New("the function that handles batches called runtime.Goexit")

// run calls the function, and gives each task its error.
func (b *batch[A]) run(fn func(context.Context, *Batch[A]) error) {
	shown := &Batch[A]{contexts: map[claim]context.Context{}}
	for _, m := range b.members {
		shown.Tasks = append(shown.Tasks, m.task)
		shown.contexts[claimOf(m.task)] = m.ctx
	}
	shown.Errs = make([]error, len(b.members))
	ctx, stop := b.context()
	err := errGoexit
	defer func() {
		if v := recover(); v != nil {
			err = &falldue.PanicError{Value: v, Stack: string(debug.Stack())}
		}
		stop()
		errs := shown.errors()
		for _, m := range b.members {
			if m.err = errs[claimOf(m.task)]; m.err == nil {
				m.err = err
			}
		}
		close(b.ran)
	}()
	err = fn(ctx, shown)
}

// context returns the context of the function. Call stop when the function has returned.
func (b *batch[A]) context() (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(b.members[0].ctx))
	var left atomic.Int64
	left.Store(int64(len(b.members)))
	stops := make([]func() bool, len(b.members))
	for i, m := range b.members {
		stops[i] = context.AfterFunc(m.ctx, func() {
			if left.Add(-1) == 0 {
				cancel(context.Cause(m.ctx))
			}
		})
	}
	return ctx, func() {
		for _, one := range stops {
			one()
		}
		cancel(nil)
	}
}
