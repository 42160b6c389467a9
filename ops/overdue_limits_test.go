package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestLimitedTasksAreNotOverdue: tasks that wait for a permit, a rate or their sequence are told apart
// from those that wait for a worker or behind a dead task, and doctor asks for attention only for the
// latter.
func TestLimitedTasksAreNotOverdue(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		began, end := make(chan int64, 10), make(chan struct{})
		block := blocking(began, end)
		fail := func(context.Context, falldue.Task[json.RawMessage]) error { return errors.New("no") }
		limited := func(p backoff.Policy, l ...falldue.Limit) falldue.KindConfig {
			return falldue.KindConfig{Policy: p, Limits: l}
		}
		defer b.start(falldue.Config{Concurrency: 20, Queues: map[string]falldue.QueueConfig{"default": {}, "one": {Concurrency: 1}}}, func(q *falldue.Queue) {
			handle(limited(backoff.Policy{}, falldue.AtMost(1)), block, "permit")(q)
			handle(limited(backoff.Policy{}, falldue.Rate(1, time.Hour)), succeed, "rate")(q)
			handle(limited(backoff.Constant(time.Hour), falldue.InOrder()), fail, "order")(q)
			handle(limited(backoff.Constant(0).WithMaxAttempts(1), falldue.InOrder().HaltOnDeath()), fail, "halted")(q)
			handle(falldue.KindConfig{}, block, "busy")(q)
		})()
		defer close(end)
		b.workers(i, "the worker", announced(1))
		past := func(o falldue.EnqueueOptions) falldue.EnqueueOptions {
			o.RunAt = time.Now().Add(-10 * time.Minute)
			return o
		}
		for range 2 {
			b.enqueue("permit", past(falldue.EnqueueOptions{}))
			b.enqueue("rate", past(falldue.EnqueueOptions{}))
			b.enqueue("busy", past(falldue.EnqueueOptions{Queue: "one"}))
		}
		b.enqueue("permit", past(falldue.EnqueueOptions{Queue: "nobody"}))
		<-began
		<-began
		dead := map[string]int64{}
		for _, kind := range []string{"order", "halted"} {
			first := b.enqueue(kind, past(falldue.EnqueueOptions{Key: "seven"}))
			b.tried(first)
			b.enqueue(kind, past(falldue.EnqueueOptions{Key: "seven"}))
			dead[kind] = first
		}
		want := map[ops.Overdue]int{
			{Queue: "default", Kind: "permit", Limit: "AtMost(1) of kind permit"}:                                         1,
			{Queue: "default", Kind: "rate", Limit: "Rate(1, 1h0m0s) of kind rate"}:                                       1,
			{Queue: "default", Kind: "order", Limit: "InOrder() of kind order"}:                                           1,
			{Queue: "default", Kind: "halted", Limit: "InOrder().HaltOnDeath() of kind halted", HaltedBy: dead["halted"]}: 1,
			{Queue: "one", Kind: "busy"}:      1,
			{Queue: "nobody", Kind: "permit"}: 1,
		}
		list, err := i.Overdue(t.Context(), 0)
		if err != nil || len(list) != len(want) {
			t.Errorf("overdue are %+v, error %v", list, err)
		}
		for _, o := range list {
			stuck := o.Limit == "" || o.Kind == "halted"
			key := ops.Overdue{Queue: o.Queue, Kind: o.Kind, Limit: o.Limit, HaltedBy: o.HaltedBy}
			if o.Tasks != want[key] || o.Stuck() != stuck {
				t.Errorf("%+v; stuck is %v", o, o.Stuck())
			}
		}
		if list, err := i.Overdue(t.Context(), time.Hour); err != nil || len(list) > 0 {
			t.Errorf("older than an hour are %+v, error %v", list, err)
		}
		if _, err := i.Overdue(t.Context(), -1); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("error %v", err)
		}
		findings, err := i.Diagnose(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bad := 0
		for _, f := range findings {
			if f.Check == "overdue" && f.Level == ops.Attention {
				bad++
			}
		}
		if bad != 3 {
			t.Errorf("doctor finds %+v", findings)
		}
	})
}

// tried waits until the first attempt of a task has ended.
func (b backlog) tried(id int64) {
	b.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := b.queue.Task(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		if info.Attempts > 0 && info.ClaimedBy == "" {
			return
		}
		<-tick.C
	}
}
