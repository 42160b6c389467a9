package signals_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/signals"
)

// collect returns the values of a sampler, by the names of series.
func collect(ctx context.Context, s *signals.Sampler) map[string]float64 {
	found := map[string]float64{}
	s.Collect(ctx, func(m *signals.Metric, v float64, values ...string) {
		if len(values) != len(m.Labels) || !m.Sampled() {
			panic(fmt.Sprintf("%s has the labels %v and the values %v", m.Name, m.Labels, values))
		}
		found[strings.TrimPrefix(m.Name, "falldue_")+"{"+strings.Join(values, ",")+"}"] = v
	})
	return found
}

// moved returns a sampler whose clock the test moves.
func moved(q *falldue.Queue) (s *signals.Sampler, move func(time.Duration)) {
	s = signals.NewSampler(q, signals.SamplerConfig{Timeout: time.Minute})
	at := time.Now()
	signals.SetNow(s, func() time.Time { return at })
	return s, func(d time.Duration) { at = at.Add(d) }
}

// TestSamplerReadsTheState: on each engine, tasks that wait for a worker are told from those that a
// pause, a limit or a sequence delays.
func TestSamplerReadsTheState(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		ctx := t.Context()
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		nothing := func(context.Context, falldue.Task[int]) error { return nil }
		mail := falldue.NewKind[int]("mail", falldue.KindConfig{})
		charge := falldue.NewKind[int]("charge", falldue.KindConfig{Limits: []falldue.Limit{falldue.InOrder()}})
		frozen := falldue.NewKind[int]("frozen", falldue.KindConfig{})
		falldue.Handle(q, charge, nothing)
		begin := time.Now().Add(-time.Hour)
		enqueue := func(k falldue.Kind[int], o falldue.EnqueueOptions) {
			t.Helper()
			o.RunAt = begin
			if _, err := k.Enqueue(ctx, q, 1, o); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			enqueue(mail, falldue.EnqueueOptions{})
			enqueue(frozen, falldue.EnqueueOptions{})
		}
		if err := q.Pause(ctx, falldue.Subject{Kind: "frozen"}, falldue.PauseOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := ops.New(q).SetPolicy(ctx, falldue.Subject{Kind: "mail"}, ops.Hold(), ops.OverrideOptions{}); err != nil {
			t.Fatal(err)
		}
		s, _ := moved(q)
		got := collect(ctx, s)
		for name, want := range map[string]float64{
			"tasks{default,mail,open}": 3, "tasks{default,mail,dead}": 0, "tasks{default,frozen,open}": 3,
			"due_tasks{default,mail}": 3, "due_tasks{default,frozen}": 0, "oldest_due_seconds{default,frozen}": 0,
			"unhandled{default,mail}": 1, "limited{default,mail}": 0, "paused{kind:frozen}": 1, "workers{default}": 0,
			"sample_age_seconds{}": 0, "sample_errors_total{}": 0,
		} {
			if v, ok := got[name]; !ok || v != want {
				t.Errorf("%s is %v (%v), want %v; the sample is %v", name, v, ok, want, got)
			}
		}
		if oldest := got["oldest_due_seconds{default,mail}"]; oldest < 3590 || oldest > 4200 {
			t.Errorf("the oldest mail has been due for %v seconds", oldest)
		}
		if _, ok := got["override_age_seconds{kind:mail,1}"]; !ok {
			t.Errorf("the sample has no override: %v", got)
		}
	})
}

// TestScrapersShareASample: a hundred scrapers cost the statements of one in 15 seconds.
func TestScrapersShareASample(t *testing.T) {
	t.Parallel()
	q, _ := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	signalstest.Enqueue(t.Context(), t, q, "done")
	s, move := moved(q)
	statements := func(f func()) int64 {
		before := signals.Statements(q)
		f()
		return signals.Statements(q) - before
	}
	one := statements(func() { collect(t.Context(), s) })
	if one == 0 || one > 40 {
		t.Errorf("a sample costs %d statements", one)
	}
	move(14 * time.Second)
	if n := statements(func() { collect(t.Context(), s) }); n != 0 {
		t.Errorf("a second scrape costs %d statements", n)
	}
	move(2 * time.Second)
	if n := statements(func() {
		var scrapers sync.WaitGroup
		for range 100 {
			scrapers.Go(func() { collect(t.Context(), s) })
		}
		scrapers.Wait()
	}); n > one {
		t.Errorf("100 scrapers cost %d statements, and one %d", n, one)
	}
}

// TestSamplersUseTheCountsOfWorkers: of any number of processes one counts, once a minute.
func TestSamplersUseTheCountsOfWorkers(t *testing.T) {
	t.Parallel()
	q, _ := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	table := hooks.StoreOf(q)
	if mine, err := table.TakeSample(t.Context(), time.Minute); err != nil || !mine {
		t.Fatal(mine, err)
	}
	if err := table.PutSample(t.Context(), store.Sample{Gauges: []store.Gauge{{Queue: "default", Kind: "pay", Tasks: map[string]int64{"open": 7}}}}); err != nil {
		t.Fatal(err)
	}
	s, _ := moved(q)
	if got := collect(t.Context(), s)["tasks{default,pay,open}"]; got != 7 {
		t.Errorf("%v tasks, want the 7 that a worker has counted", got)
	}
}

// TestBlindSamplersWithholdTheState: and their age grows.
func TestBlindSamplersWithholdTheState(t *testing.T) {
	t.Parallel()
	q, db := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	signalstest.Enqueue(t.Context(), t, q, "done")
	s, move := moved(q)
	if got := collect(t.Context(), s); got["tasks{default,pay,open}"] != 1 {
		t.Fatalf("the sample is %v", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	move(time.Minute)
	got := collect(t.Context(), s)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"sample_age_seconds{}", "sample_errors_total{}", "sample_seconds{}"}) || got["sample_age_seconds{}"] != 60 || got["sample_errors_total{}"] != 1 {
		t.Errorf("without a database the sample is %v", got)
	}
}

// TestEmptyQueuesAreZero: a queue whose tasks have ended is exported for an hour, so that no alert
// takes the end of a series for a recovery.
func TestEmptyQueuesAreZero(t *testing.T) {
	t.Parallel()
	q, _ := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	id := signalstest.Enqueue(t.Context(), t, q, "done")
	s, move := moved(q)
	collect(t.Context(), s)
	if err := q.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	move(59 * time.Minute)
	if n, ok := collect(t.Context(), s)["tasks{default,pay,open}"]; !ok || n != 0 {
		t.Errorf("an empty queue has %v tasks, %v", n, ok)
	}
	move(62 * time.Minute)
	if n, ok := collect(t.Context(), s)["tasks{default,pay,open}"]; ok {
		t.Errorf("an hour later the queue has %v tasks", n)
	}
}

func TestLateSchedulesAreSampled(t *testing.T) {
	t.Parallel()
	q, _ := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	scheduler, err := periodic.New(q, periodic.Schedule{Name: "monthly", Spec: "@every 1h", Task: signalstest.Kind.Params("done")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, _ := moved(q)
	if late, ok := collect(t.Context(), s)["schedule_late_seconds{monthly}"]; !ok || late != 0 {
		t.Errorf("the schedule is late by %v, %v", late, ok)
	}
}
