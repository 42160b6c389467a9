package systemtest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestWorkersRestWhileNoTaskCanRun: tasks wait for a permit, for another one of their sequence,
// for a death that somebody is to retry, or for the end of a pause. A worker then claims a few
// times a second, and a task that can run does so at once.
func TestWorkersRestWhileNoTaskCanRun(t *testing.T) {
	t.Parallel()
	const most = 25 // claims in a second
	again := func(context.Context, falldue.Task[string]) error {
		return falldue.RetryAfter(time.Hour, errors.New("no"))
	}
	snoozed := func(context.Context, falldue.Task[string]) error { return falldue.Snooze(time.Hour) }
	dead := func(context.Context, falldue.Task[string]) error { return falldue.Discard(errors.New("no")) }
	atMostOne, inOrder := []falldue.Limit{falldue.AtMost(1)}, []falldue.Limit{falldue.InOrder()}
	states := map[string]struct {
		limits []falldue.Limit
		handle func(context.Context, falldue.Task[string]) error // nil: it runs until the test ends
		paused *falldue.Subject
		refuse bool // the database refuses the first one, and many others wait
		none   bool // not even one starts
	}{
		"its limit has no permit left":                {limits: atMostOne},
		"the limit of its key has no permit left":     {limits: []falldue.Limit{falldue.AtMost(1).PerKey()}},
		"its rate is used up":                         {limits: []falldue.Limit{falldue.Rate(1, time.Hour)}, handle: again},
		"its rate with a burst is used up":            {limits: []falldue.Limit{falldue.Rate(1, time.Hour).Burst(1)}, handle: again},
		"the one before it runs":                      {limits: inOrder},
		"the one before it is to run again":           {limits: inOrder, handle: again},
		"the one before it is snoozed":                {limits: inOrder, handle: snoozed},
		"the one before it is dead, and halts it":     {limits: []falldue.Limit{falldue.InOrder().HaltOnDeath()}, handle: dead},
		"a second limit admits it, the first doesn't": {limits: []falldue.Limit{falldue.AtMost(1), falldue.InOrder()}, handle: again},
		"its kind is paused":                          {paused: &falldue.Subject{Kind: "waiting"}, none: true},
		"its key is paused":                           {paused: &falldue.Subject{Kind: "waiting", Key: "key"}, none: true},
		"its kind has a limit, and is paused":         {limits: atMostOne, paused: &falldue.Subject{Kind: "waiting"}, none: true},
		"its sequence is paused":                      {limits: inOrder, paused: &falldue.Subject{Key: "key"}, none: true},
		"a claim has failed, and no permit is left":   {limits: atMostOne, refuse: true},
		"the database refuses the one before it":      {limits: inOrder, refuse: true, none: true},
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		for name, s := range states {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if s.refuse && engine == testdb.TiDB {
					t.Skip("it has no triggers")
				}
				db, err := testdb.OpenFew(testdb.Drivers(engine)[0], testdb.DSN(t, engine))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				var claims atomic.Int64
				q := hotQueue(t, db, falldue.Hooks{Claim: func(c falldue.StatementStats) {
					if c.Queue == "default" {
						claims.Add(1)
					}
				}})
				waiting := falldue.NewKind[string]("waiting", falldue.KindConfig{Limits: s.limits})
				plain := falldue.NewKind[string]("plain", falldue.KindConfig{})
				bell := falldue.NewKind[string]("bell", falldue.KindConfig{Queue: "bells"})
				release, ended := make(chan struct{}), make(chan struct{}, 10)
				ran, rang := make(chan struct{}, 1), make(chan time.Time, 1)
				falldue.Handle(q, waiting, func(ctx context.Context, task falldue.Task[string]) error {
					ended <- struct{}{}
					if s.handle != nil {
						return s.handle(ctx, task)
					}
					<-release
					return nil
				})
				falldue.Handle(q, plain, func(context.Context, falldue.Task[string]) error { ran <- struct{}{}; return nil })
				falldue.Handle(q, bell, func(context.Context, falldue.Task[string]) error { rang <- time.Now(); return nil })
				args := slices.Repeat([]string{""}, 3)
				if s.refuse {
					refuse := refusalsOf(engine)
					for _, statement := range refuse.claim {
						db.MustExec(statement)
					}
					args = append([]string{"poison " + refuse.codes[0]}, slices.Repeat([]string{""}, 2000)...)
				}
				if _, err := waiting.EnqueueMany(t.Context(), q, args, falldue.EnqueueOptions{Key: "key"}); err != nil {
					t.Fatal(err)
				}
				if s.paused != nil {
					if err := q.Pause(t.Context(), *s.paused); err != nil {
						t.Fatal(err)
					}
				}
				stop := runUntil(t, q)
				if !s.none {
					<-ended
				}
				ring := func(delay time.Duration) time.Time {
					if _, err := bell.Enqueue(t.Context(), q, "", falldue.EnqueueOptions{Delay: delay}); err != nil {
						t.Fatal(err)
					}
					return <-rang
				}
				begin := ring(time.Second) // until then it has claimed in vain some times
				claims.Store(0)
				took := ring(time.Second).Sub(begin)
				if n, limit := claims.Load(), int64(most*took.Seconds()); n > limit {
					t.Errorf("%d claims in %v, want %d at most", n, took, limit)
				}
				if _, err := plain.Enqueue(t.Context(), q, ""); err != nil {
					t.Fatal(err)
				}
				select {
				case <-ran:
				case <-time.After(testdb.Patience):
					t.Error("a task without a limit has not run")
				}
				if len(ended) > 0 {
					t.Errorf("%d more of those that wait have run", len(ended))
				}
				close(release)
				stop()
			})
		}
	})
}
