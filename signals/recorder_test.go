package signals_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/signals"
	"github.com/falldue/falldue/tasktest"
)

// memory is a backend that remembers sums and the number of records, by the names of series.
type memory struct {
	mu    sync.Mutex
	sums  map[string]float64
	times map[string]int
}

func newMemory() *memory { return &memory{sums: map[string]float64{}, times: map[string]int{}} }

type memorySeries struct {
	m    *memory
	name string
}

func (m *memory) Series(metric *signals.Metric, values ...string) signals.Series {
	if len(values) != len(metric.Labels) {
		panic(fmt.Sprintf("%s has the labels %v and the values %v", metric.Name, metric.Labels, values))
	}
	return memorySeries{m, metric.Name + "{" + strings.Join(values, ",") + "}"}
}

func (s memorySeries) Record(_ context.Context, v float64) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.sums[s.name] += v
	s.m.times[s.name]++
}

// of returns what the series of a metric have in sum.
func (m *memory) of(metric string) map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]float64{}
	for name, v := range m.sums {
		if rest, ok := strings.CutPrefix(name, metric+"{"); ok {
			found[strings.TrimSuffix(rest, "}")] = v
		}
	}
	return found
}

// timesOf returns how often the series of a metric have been recorded.
func (m *memory) timesOf(metric string) map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]int{}
	for name, n := range m.times {
		if rest, ok := strings.CutPrefix(name, metric+"{"); ok {
			found[strings.TrimSuffix(rest, "}")] = n
		}
	}
	return found
}

func TestRecorderCountsEveryOutcome(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		m := newMemory()
		r := signals.NewRecorder(m, signals.RecorderConfig{})
		q, _ := signalstest.Queue(t, engine, falldue.Config{Hooks: r.Hooks()})
		q.Use(r.Run())
		q.UseEnqueue(r.Enqueue())
		r.Begin(q)
		signalstest.RunAll(t, q)
		runs := map[string]float64{}
		for args, o := range signalstest.Outcomes {
			runs["default,pay,"+string(o.Written)]++
			_ = args
		}
		if got := m.of("falldue_runs_total"); !maps.Equal(got, runs) {
			t.Errorf("runs are %v, want %v", got, runs)
		}
		handlers := map[string]int{
			"default,pay,done,":                                2, // one was lost
			"default,pay,retried,*signalstest.BankError":       1,
			"default,pay,retried,panic":                        1,
			"default,pay,dead,*signalstest.BankError":          1,
			"default,pay,discarded,*signalstest.BankError":     1,
			"default,pay,snoozed,":                             1,
			"default,pay,repeated,":                            1,
			"default,pay,retried_after,*signalstest.BankError": 1,
			"default,pay,cancelled,lease_lost":                 1,
		}
		if got := m.timesOf("falldue_handler_seconds"); !maps.Equal(got, handlers) {
			t.Errorf("handlers are %v, want %v", got, handlers)
		}
		n := len(signalstest.Outcomes)
		for metric, want := range map[string]map[string]float64{
			"falldue_started_total":     {"default,pay": float64(n)},
			"falldue_enqueued_total":    {"default,pay,false,": float64(n)},
			"falldue_claims_lost_total": {"settle": 1, "extend": 0},
			"falldue_claim_tasks":       {"default": float64(n)},
		} {
			if got := m.of(metric); !maps.Equal(got, want) {
				t.Errorf("%s is %v, want %v", metric, got, want)
			}
		}
		if got := m.timesOf("falldue_worker_wait_seconds"); got["default,pay"] != n || len(got) != 1 {
			t.Errorf("waits for a worker are %v, want %d", got, n)
		}
		for _, operation := range []string{"enqueue,default,", "claim,default,", "settle,,"} {
			if m.timesOf("falldue_statement_seconds")[operation] == 0 {
				t.Errorf("statements are %v, without %s", m.timesOf("falldue_statement_seconds"), operation)
			}
		}
	})
}

// TestTasksThatDoneTxSettlesAreNotLost: the worker finds them settled, and has lost nothing.
func TestTasksThatDoneTxSettlesAreNotLost(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		m := newMemory()
		r := signals.NewRecorder(m, signals.RecorderConfig{})
		q, db := signalstest.Queue(t, engine, falldue.Config{Hooks: r.Hooks()})
		k := falldue.NewKind[int]("book", falldue.KindConfig{})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[int]) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := task.DoneTx(ctx, tx); err != nil {
				return err
			}
			return tx.Commit()
		})
		r.Begin(q)
		if _, err := k.Enqueue(t.Context(), q, 1); err != nil {
			t.Fatal(err)
		}
		if ran := tasktest.RunOne(t, q); ran.Err != nil || ran.State != falldue.StateDone {
			t.Errorf("it ran as %+v", ran)
		}
		if got := m.of("falldue_claims_lost_total"); got["settle"] != 0 {
			t.Errorf("lost claims are %v", got)
		}
	})
}

// TestWaitsForLimitsAndWorkersAreTwoMetrics: a task is due at 0 seconds, a limit admits it at 40, and it begins at 45.
func TestWaitsForLimitsAndWorkersAreTwoMetrics(t *testing.T) {
	t.Parallel()
	m := newMemory()
	handler := signals.NewRecorder(m, signals.RecorderConfig{}).Run()(func(context.Context, *falldue.Run) error { return nil })
	due := time.Now()
	for kind, ready := range map[string]time.Duration{"limited": 40 * time.Second, "free": 0, "early": 50 * time.Second} {
		run := &falldue.Run{RunInfo: falldue.RunInfo{Queue: "q", Kind: kind, DueAt: due, ReadyAt: due.Add(ready), StartedAt: due.Add(45 * time.Second)}}
		if err := handler(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := m.of("falldue_limit_wait_seconds"), map[string]float64{"q,limited": 40, "q,early": 50}; !maps.Equal(got, want) {
		t.Errorf("waits for limits are %v, want %v", got, want)
	}
	if got, want := m.of("falldue_worker_wait_seconds"), map[string]float64{"q,limited": 5, "q,free": 45, "q,early": 0}; !maps.Equal(got, want) {
		t.Errorf("waits for workers are %v, want %v", got, want)
	}
}

// TestLabelsAreBounded: any number of kinds, queues and types of errors makes a bounded number of series.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	r := signals.NewRecorder(m, signals.RecorderConfig{MaxKinds: 3})
	event := r.Hooks().Event
	for i := range 1000 {
		event(falldue.Event{RunInfo: falldue.RunInfo{Queue: fmt.Sprint("q", i%2), Kind: fmt.Sprint("k", i)}})
	}
	want := map[string]float64{"q0,k0": 1, "q1,k1": 1, "q0,k2": 1, "q0,other": 498, "q1,other": 499}
	if got := m.of("falldue_started_total"); !maps.Equal(got, want) {
		t.Errorf("started are %v, want %v", got, want)
	}
	for i := range 1000 {
		event(falldue.Event{RunInfo: falldue.RunInfo{Queue: fmt.Sprint("queue", i), Kind: "k0"}})
	}
	if n := len(m.of("falldue_started_total")); n > 5+101 {
		t.Errorf("%d series", n)
	}
}

// TestSeriesOfRareEventsBeginWith0: increase, which rules and dashboards use, overlooks the first event of other series.
func TestSeriesOfRareEventsBeginWith0(t *testing.T) {
	t.Parallel()
	m := newMemory()
	q, _ := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	signals.NewRecorder(m, signals.RecorderConfig{}).Begin(q)
	found := 0
	for _, file := range []string{"falldue.rules.yml", "falldue.json"} {
		text, err := os.ReadFile("../grafana/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`increase\((\w+)`).FindAllStringSubmatch(string(text), -1) {
			found++
			if values := slices.Collect(maps.Values(m.of(name[1]))); len(values) == 0 || slices.Max(values) != 0 {
				t.Errorf("%s of %s begins with %v", name[1], file, values)
			}
		}
	}
	if found < 6 {
		t.Errorf("rules and dashboard use increase %d times", found)
	}
	none := newMemory()
	enqueues, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if signals.NewRecorder(none, signals.RecorderConfig{}).Begin(enqueues); len(none.sums) > 0 {
		t.Errorf("a process without handlers has %v", none.sums)
	}
}

// TestKnownSeriesAllocateNothing is about the recorder; a backend may allocate.
func TestKnownSeriesAllocateNothing(t *testing.T) {
	m := nothing{}
	event := signals.NewRecorder(m, signals.RecorderConfig{}).Hooks().Event
	e := falldue.Event{RunInfo: falldue.RunInfo{Queue: "q", Kind: "k"}, Outcome: falldue.OutcomeDone}
	if n := testing.AllocsPerRun(100, func() { event(e) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

type nothing struct{}

func (nothing) Series(*signals.Metric, ...string) signals.Series { return nothing{} }
func (nothing) Record(context.Context, float64)                  {}

func TestEnqueuesAreCounted(t *testing.T) {
	t.Parallel()
	m := newMemory()
	r := signals.NewRecorder(m, signals.RecorderConfig{})
	q, _ := signalstest.Queue(t, testdb.SQLite, falldue.Config{})
	q.UseEnqueue(r.Enqueue())
	other := falldue.NewKind[string]("ship", falldue.KindConfig{Queue: "slow"})
	unique := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}}
	for range 2 {
		if _, err := q.EnqueueMany(t.Context(), signalstest.Kind.Params("a"), other.Params("b", unique), signalstest.Kind.Params("c", falldue.EnqueueOptions{Queue: "elsewhere"})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Enqueue(t.Context(), q, "d", falldue.EnqueueOptions{MaxAttempts: -1}); !errors.Is(err, falldue.ErrInvalid) {
		t.Fatal(err)
	}
	want := map[string]float64{"default,pay,false,": 2, "slow,ship,false,": 1, "slow,ship,true,": 1, "elsewhere,pay,false,": 2, "slow,ship,false,_OTHER": 1}
	if got := m.of("falldue_enqueued_total"); !maps.Equal(got, want) {
		t.Errorf("enqueued are %v, want %v", got, want)
	}
	if got := m.timesOf("falldue_statement_seconds"); !maps.Equal(got, map[string]int{"enqueue,,": 2, "enqueue,slow,_OTHER": 1}) {
		t.Errorf("statements are %v", got)
	}
}

func TestErrorTypesAreShort(t *testing.T) {
	t.Parallel()
	network := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("odd"), "_OTHER"},
		{fmt.Errorf("pay: %w", errors.New("odd")), "_OTHER"},
		{fmt.Errorf("pay: %w", &signalstest.BankError{}), "*signalstest.BankError"},
		{falldue.Discard(&signalstest.BankError{}), "*signalstest.BankError"},
		{falldue.Snooze(0), "_OTHER"},
		{fmt.Errorf("pay: %w", network), "*poll.DeadlineExceededError"},
		{fmt.Errorf("%w: %w", falldue.ErrTimeout, &signalstest.BankError{}), "timeout"},
		{fmt.Errorf("%w: %w", falldue.ErrStopping, network), "stopping"},
		{falldue.ErrCancelled, "lease_lost"},
		{&falldue.PanicError{Value: "odd"}, "panic"},
		{errors.Join(errors.New("odd"), &signalstest.BankError{}), "*signalstest.BankError"},
	} {
		if got := signals.ErrorType(c.err); got != c.want {
			t.Errorf("the type of %v is %q, want %q", c.err, got, c.want)
		}
	}
}

func TestHooksAreJoined(t *testing.T) {
	t.Parallel()
	var calls []string
	note := func(name string) falldue.Hooks {
		return falldue.Hooks{
			Event: func(falldue.Event) {
				if calls = append(calls, name); name == "b" {
					panic("of b")
				}
			},
		}
	}
	joined := signals.JoinHooks(note("a"), falldue.Hooks{Claim: func(falldue.StatementStats) { calls = append(calls, "claim") }}, note("b"), note("c"))
	func() {
		defer func() {
			if v := recover(); v != "of b" {
				t.Errorf("recovered %v", v)
			}
		}()
		joined.Event(falldue.Event{})
	}()
	joined.Claim(falldue.StatementStats{})
	if want := []string{"a", "b", "c", "claim"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %v, want %v", calls, want)
	}
	if joined.Sweep != nil || joined.Settle != nil || joined.Extend != nil || joined.Overtime != nil || joined.Trouble != nil {
		t.Error("a hook that no set has is not nil")
	}
}
