package ops_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestRatesOfWorkers: a rate is that between the last two announcements of a worker that lives.
func TestRatesOfWorkers(t *testing.T) {
	t.Parallel()
	var rates ops.Rates
	began := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	a, b := ops.Worker{ID: "a", Seen: began, Now: began, Done: 100}, ops.Worker{ID: "b", Seen: began, Now: began}
	check := func(want map[string]ops.Rate, workers ...ops.Worker) {
		t.Helper()
		got := rates.Add(workers)
		for id, rate := range want {
			if got[id] != rate {
				t.Errorf("the rate of %s is %+v, want %+v", id, got[id], rate)
			}
		}
		if len(got) != len(want) {
			t.Errorf("the rates are %+v, want %+v", got, want)
		}
	}
	check(map[string]ops.Rate{"a": {}, "b": {}}, a, b)
	a.Seen, a.Done, a.Failed = began.Add(15*time.Second), 400, 30
	for range 2 { // the second list has the same announcements
		check(map[string]ops.Rate{"a": {20, 2, true}, "b": {}}, a, b)
	}
	a.Seen, a.Done = began.Add(45*time.Second), 1000
	b.Now = began.Add(time.Hour) // it was not seen for long
	check(map[string]ops.Rate{"a": {20, 0, true}}, a, b)
	b.Seen, b.Done = b.Now, 10
	check(map[string]ops.Rate{"b": {}}, b) // it is new again
}

// TestMonitor: it reads the queues and the workers that live, and what all of them do.
func TestMonitor(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		m := i.NewMonitor()
		if p, err := m.Read(t.Context()); err != nil || len(p.Workers)+len(p.Queues) != 0 || p.At.IsZero() {
			t.Errorf("without tasks: %+v, error %v", p, err)
		}
		running, release := make(chan struct{}), make(chan struct{})
		wait := func(context.Context, falldue.Task[json.RawMessage]) error {
			close(running)
			<-release
			return nil
		}
		b.enqueue("mail")
		b.enqueue("mail", falldue.EnqueueOptions{Queue: "a.later", Delay: 2 * time.Hour})
		b.enqueue("mail", falldue.EnqueueOptions{Queue: "b.later", Delay: time.Hour})
		stop := b.start(falldue.Config{Concurrency: 7}, handle(falldue.KindConfig{}, wait, "mail"))
		<-running
		b.workers(i, "a worker", announced(1))
		p, err := m.Read(t.Context())
		if err != nil || len(p.Workers) != 1 || p.Concurrency() != 7 || len(p.Queues) != 3 || p.Lanes() != 3 || p.Rate.Known || p.Rates[p.Workers[0].ID].Known {
			t.Errorf("with a worker: %+v, error %v", p, err)
		}
		if first, ok := p.First(); !ok || first.Name != "default" {
			t.Errorf("the first task is due in %+v", first)
		}
		close(release)
		stop()
	})
}
