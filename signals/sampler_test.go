package signals_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/signals"
	"github.com/falldue/falldue/tasktest"
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

// process is a sampler of one of several processes, whose clocks the test moves.
type process struct {
	*signals.Sampler
	queue *falldue.Queue
	at    time.Time
}

// moved returns a process whose samples last for 15 seconds. A test without a test clock moves only the process's own
// clock.
func moved(q *falldue.Queue) *process { return movedEvery(q, 0) }

// movedEvery returns a process whose samples last so long.
func movedEvery(q *falldue.Queue, every time.Duration) *process {
	p := &process{signals.NewSampler(q, signals.SamplerConfig{Every: every, Timeout: time.Minute}), q, time.Now()}
	signals.SetNow(p.Sampler, func() time.Time { return p.at })
	return p
}

// statements returns how many statements of the process f costs.
func (p *process) statements(f func()) int64 {
	before := signals.Statements(p.queue)
	f()
	return signals.Statements(p.queue) - before
}

// every is how long the samples of processes last. Their ages are measured by the clock of the database, which goes on
// while a test moves it: a minute of them is longer than a busy machine takes from one step of a test to the next.
const every = 15 * time.Minute

// processes are several processes on one database, and its clock.
type processes struct {
	list  []*process
	clock *tasktest.Clock
	db    *sqlx.DB
}

func newProcesses(t *testing.T, engine string, n int) *processes {
	t.Helper()
	db := testdb.Open(t, engine)
	all := &processes{clock: tasktest.NewClock(t, db), db: db}
	for range n {
		q, err := falldue.New(db, falldue.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.list = append(all.list, movedEvery(q, every))
	}
	return all
}

// move moves all clocks.
func (all *processes) move(t *testing.T, d time.Duration) {
	t.Helper()
	all.clock.Jump(t, d)
	for _, p := range all.list {
		p.at = p.at.Add(d)
	}
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
		frozen := falldue.NewKind[int]("frozen", falldue.KindConfig{})
		charge := falldue.NewKind[int]("charge", falldue.KindConfig{Limits: []falldue.Limit{falldue.Rate(1, time.Hour)}})
		order := falldue.NewKind[int]("order", falldue.KindConfig{Policy: backoff.Constant(time.Hour), Limits: []falldue.Limit{falldue.InOrder()}})
		falldue.Handle(q, charge, nothing)
		falldue.Handle(q, order, func(context.Context, falldue.Task[int]) error { return errors.New("no") })
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
		for range 2 { // a limit and a sequence admit the first of each
			enqueue(charge, falldue.EnqueueOptions{})
			enqueue(order, falldue.EnqueueOptions{Key: "seven"})
		}
		tasktest.Drain(t, q)
		if err := q.Pause(ctx, falldue.Subject{Kind: "frozen"}, falldue.PauseOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := ops.New(q).SetPolicy(ctx, falldue.Subject{Kind: "mail"}, ops.Hold(), ops.OverrideOptions{}); err != nil {
			t.Fatal(err)
		}
		got := collect(ctx, moved(q).Sampler)
		for name, want := range map[string]float64{
			"tasks{default,mail,open}": 3, "tasks{default,mail,dead}": 0, "tasks{default,frozen,open}": 3,
			"due_tasks{default,mail}": 3, "due_tasks{default,frozen}": 0, "oldest_due_seconds{default,frozen}": 0,
			"unhandled{default,mail}": 1, "limited{default,mail}": 0, "paused{kind:frozen}": 1, "workers{default}": 0,
			"oldest_due_seconds{default,charge}": 0, "due_tasks{default,charge}": 0, "limited{default,charge}": 1,
			"oldest_due_seconds{default,order}": 0, "due_tasks{default,order}": 0, "limited{default,order}": 1,
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

// TestAllProcessesShareASample: three processes, of each of which ten scrapers ask concurrently, compute the
// state once while a sample lasts.
func TestAllProcessesShareASample(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		all := newProcesses(t, engine, 3)
		signalstest.Enqueue(t.Context(), t, all.list[0].queue, "done")
		one := all.list[0].statements(func() { collect(t.Context(), all.list[0].Sampler) })
		if one < 10 || one > 40 {
			t.Errorf("a sample costs %d statements", one)
		}
		// shared has the statements of all processes, and how many processes have computed the state.
		shared := func() (n int64, computed int) {
			var each [3]int64
			var running sync.WaitGroup
			for i, p := range all.list {
				running.Go(func() {
					each[i] = p.statements(func() {
						var scrapers sync.WaitGroup
						for range 10 {
							scrapers.Go(func() { collect(t.Context(), p.Sampler) })
						}
						scrapers.Wait()
					})
				})
			}
			running.Wait()
			for _, own := range each {
				n += own
				if own > 2 { // it has done more than read the row and try to take it
					computed++
				}
			}
			return n, computed
		}
		all.move(t, 14*time.Minute)
		if n, computed := shared(); computed != 0 || n != 2 {
			t.Errorf("14 minutes later the scrapers cost %d statements, and %d processes compute the state; want 2, to read the row, and none", n, computed)
		}
		for range 3 {
			all.move(t, 16*time.Minute)
			if n, computed := shared(); computed != 1 || n >= 2*one {
				t.Errorf("16 minutes later the scrapers cost %d statements, and %d processes compute the state; want fewer than %d, and 1", n, computed, 2*one)
			}
			all.move(t, 2*time.Minute) // the others may have read the row before
			for i, p := range all.list {
				if got := collect(t.Context(), p.Sampler); got["tasks{default,pay,open}"] != 1 || got["sample_age_seconds{}"] > (3*time.Minute).Seconds() {
					t.Errorf("process %d has %v", i, got)
				}
			}
		}
	})
}

// TestASampleLasts15Seconds, unless a configuration says otherwise.
func TestASampleLasts15Seconds(t *testing.T) {
	t.Parallel()
	q, _ := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	p := moved(q)
	scrape := func() int64 { return p.statements(func() { collect(t.Context(), p.Sampler) }) }
	scrape()
	p.at = p.at.Add(15*time.Second - 1)
	if n := scrape(); n != 0 {
		t.Errorf("a scrape in the last nanosecond of a sample costs %d statements", n)
	}
	p.at = p.at.Add(1)
	if n := scrape(); n == 0 {
		t.Error("a scrape after the end of a sample reads nothing")
	}
}

// TestSampleOfAProcessThatDied: while no process finishes the sample, others show its last state with a growing
// age, and then withhold it.
func TestSampleOfAProcessThatDied(t *testing.T) {
	t.Parallel()
	all := newProcesses(t, testdb.SQLite, 2)
	other := all.list[1]
	signalstest.Enqueue(t.Context(), t, other.queue, "done")
	collect(t.Context(), all.list[0].Sampler)
	for age := 16; age < 60; age += 16 {
		all.move(t, 16*time.Minute)
		if mine, err := hooks.StoreOf(other.queue).TakeStateSample(t.Context(), every); err != nil || !mine { // and dies
			t.Fatal(mine, err)
		}
		got := collect(t.Context(), other.Sampler)
		if _, has := got["tasks{default,pay,open}"]; int(got["sample_age_seconds{}"])/60 != age || has != (age < 45) {
			t.Errorf("after %d minutes the sample is %v", age, got)
		}
	}
}

// TestSamplersWithoutPermissionToWrite compute the state for themselves.
func TestSamplersWithoutPermissionToWrite(t *testing.T) {
	t.Parallel()
	all := newProcesses(t, testdb.SQLite, 1)
	signalstest.Enqueue(t.Context(), t, all.list[0].queue, "done")
	all.db.MustExec("create trigger deny before update on falldue_sample begin select raise(abort, 'no permission'); end")
	for range 2 {
		if got := collect(t.Context(), all.list[0].Sampler); got["tasks{default,pay,open}"] != 1 || got["sample_age_seconds{}"] != 0 {
			t.Errorf("the sample is %v", got)
		}
		if n := all.list[0].statements(func() { collect(t.Context(), all.list[0].Sampler) }); n != 0 {
			t.Errorf("a second scrape costs %d statements", n)
		}
		all.move(t, 16*time.Minute)
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
	if got := collect(t.Context(), moved(q).Sampler)["tasks{default,pay,open}"]; got != 7 {
		t.Errorf("%v tasks, want the 7 that a worker has counted", got)
	}
}

// TestBlindSamplersWithholdTheState: and their age grows.
func TestBlindSamplersWithholdTheState(t *testing.T) {
	t.Parallel()
	q, db := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	signalstest.Enqueue(t.Context(), t, q, "done")
	p := moved(q)
	if got := collect(t.Context(), p.Sampler); got["tasks{default,pay,open}"] != 1 {
		t.Fatalf("the sample is %v", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	p.at = p.at.Add(time.Minute)
	got := collect(t.Context(), p.Sampler)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"sample_age_seconds{}", "sample_errors_total{}", "sample_seconds{}"}) || got["sample_age_seconds{}"] != 60 || got["sample_errors_total{}"] != 1 {
		t.Errorf("without a database the sample is %v", got)
	}
}

// TestEmptyQueuesAreZero: a queue whose tasks have ended is exported for an hour, so that no alert
// takes the end of a series for a recovery.
func TestEmptyQueuesAreZero(t *testing.T) {
	t.Parallel()
	all := newProcesses(t, testdb.SQLite, 2)
	id := signalstest.Enqueue(t.Context(), t, all.list[0].queue, "done")
	collect(t.Context(), all.list[0].Sampler)
	if err := all.list[0].queue.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	all.move(t, 59*time.Minute)
	if n, ok := collect(t.Context(), all.list[1].Sampler)["tasks{default,pay,open}"]; !ok || n != 0 { // another process remembers
		t.Errorf("an empty queue has %v tasks, %v", n, ok)
	}
	all.move(t, 62*time.Minute)
	if n, ok := collect(t.Context(), all.list[0].Sampler)["tasks{default,pay,open}"]; ok {
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
	if late, ok := collect(t.Context(), moved(q).Sampler)["schedule_late_seconds{monthly}"]; !ok || late != 0 {
		t.Errorf("the schedule is late by %v, %v", late, ok)
	}
}
