package store

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestSumsOfManyWorkersAreAdded: the order in which workers write does not matter.
func TestSumsOfManyWorkersAreAdded(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		const workers, kinds = 8, 9
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				var sums []Sums
				for k := range kinds { // each worker in another order
					kind := fmt.Sprint("k", (w+k)%kinds)
					sums = append(sums, Sums{Queue: "default", Kind: kind, Done: 2, Dead: 1, Run: Distribution{Sum: 10, Max: int64(w), In: [8]int64{1, 2}}, Lag: Distribution{Sum: 5}})
				}
				if err := persistently(s, func() error { return s.AddMinutes(t.Context(), sums, time.Second) }); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := s.AddMinutes(t.Context(), []Sums{{Queue: "default", Kind: "k1", Waiting: NotNull[int64](7), DeadNow: NotNull[int64](3), OldestDue: NotNull[int64](90)}, {Queue: "mail", Kind: "k1", Waiting: NotNull[int64](1), OldestDue: NotNull[int64](50), Started: 4}}, time.Second); err != nil {
			t.Fatal(err)
		}
		now, err := s.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		add := func(p MinuteParams) (total Sums) {
			t.Helper()
			for step := range Steps {
				p.From, p.To, p.Step = now.Add(-2*time.Hour), now.Add(time.Hour), step
				list, err := s.Minutes(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				total = Sums{}
				for _, sums := range list { // the minute may have ended in the meantime
					if at := Time(sums.At); at != at.Truncate(step) || at.After(now) || now.Sub(at) > step+2*time.Minute {
						t.Errorf("sums of %v are those of a span that begins at %v", now, at)
					}
					total.Started, total.Done, total.Dead = total.Started+sums.Started, total.Done+sums.Done, total.Dead+sums.Dead
					total.Run.Sum, total.Run.Max, total.Run.In[1] = total.Run.Sum+sums.Run.Sum, max(total.Run.Max, sums.Run.Max), total.Run.In[1]+sums.Run.In[1]
					total.Waiting.V, total.OldestDue.V = total.Waiting.V+sums.Waiting.V, max(total.OldestDue.V, sums.OldestDue.V)
				}
			}
			return total
		}
		total := add(MinuteParams{})
		if total.Done != workers*kinds*2 || total.Dead != workers*kinds || total.Run.Sum != workers*kinds*10 || total.Run.Max != workers-1 || total.Run.In[1] != workers*kinds*2 {
			t.Errorf("the sums are %+v", total)
		}
		if total.Started != 4 || total.Waiting.V != 8 || total.OldestDue.V != 90 {
			t.Errorf("what was measured is %+v", total)
		}
		if one := add(MinuteParams{Queue: "default", Kind: "k1", ByKind: true}); one.Done != workers*2 || one.Waiting.V != 7 || one.Started != 0 {
			t.Errorf("the sums of a kind are %+v", one)
		}
		if one := add(MinuteParams{Queue: "mail", ByQueue: true}); one.Done != 0 || one.Started != 4 {
			t.Errorf("the sums of a queue are %+v", one)
		}
	})
}

// TestOldSumsAreDropped: each span has its own retention, and the number of rows does not matter.
func TestOldSumsAreDropped(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		var many []Sums
		for i := range 1200 {
			many = append(many, Sums{Queue: "default", Kind: fmt.Sprint("k", i), Done: 1})
		}
		for sums, back := range map[int]time.Duration{1200: 27 * time.Hour, 2: 9 * 24 * time.Hour, 3: 91 * 24 * time.Hour} {
			if err := s.AddMinutes(t.Context(), many[:sums], back); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.AddMinutes(t.Context(), many[:4], time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := s.DropOldMinutes(t.Context()); err != nil {
			t.Fatal(err)
		}
		now, err := s.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for step, want := range map[time.Duration]int{time.Minute: 4, 10 * time.Minute: 1204, time.Hour: 1206} {
			list, err := s.Minutes(t.Context(), MinuteParams{From: now.AddDate(-1, 0, 0), To: now, Step: step, ByKind: true})
			if err != nil || len(list) != want {
				t.Errorf("%d sums of %v are left (error %v), want %d", len(list), step, err, want)
			}
		}
	})
}

// TestOneOfManyProcessesMeasures: one process measures, and the others read its measurement.
func TestOneOfManyProcessesMeasures(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if sample, err := s.Sample(t.Context()); err != nil || !sample.At.IsZero() {
			t.Errorf("the first sample is %+v (error %v)", sample, err)
		}
		take := func(age time.Duration) (n int) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					var mine bool
					err := persistently(s, func() (err error) { mine, err = s.TakeSample(t.Context(), age); return err })
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
					}
					if mine {
						n++
					}
				})
			}
			all.Wait()
			return n
		}
		if n := take(time.Hour); n != 1 {
			t.Errorf("%d of 8 processes measure, want 1", n)
		}
		want := Gauge{Queue: "default", Kind: "k", Tasks: map[string]int64{statements.StateOpen: 5, statements.StateSnoozed: 1, statements.StateDead: 2}, OldestDue: 9}
		if err := s.PutSample(t.Context(), Sample{Took: time.Second, Gauges: []Gauge{want}}); err != nil {
			t.Fatal(err)
		}
		sample, err := s.Sample(t.Context())
		if err != nil || sample.Took != time.Second || len(sample.Gauges) != 1 || sample.Gauges[0].Tasks[statements.StateOpen] != 5 || sample.At.IsZero() || sample.Age < 0 || sample.Age > time.Hour {
			t.Errorf("the sample is %+v (error %v)", sample, err)
		}
		if sums := sample.Measured(); len(sums) != 1 || sums[0].Waiting.V != 6 || sums[0].DeadNow.V != 2 || sums[0].OldestDue.V != 9 {
			t.Errorf("the sums of a sample are %+v", sums)
		}
		if n := take(time.Hour); n != 0 {
			t.Errorf("%d processes measure again, want none", n)
		}
		// A clock that was in the future, before a failover for example, stops no worker.
		future := map[string]string{testdb.SQLite: "4102444800000000"}[engine]
		if future == "" {
			future = "'2100-01-01'"
		}
		db.MustExec("update falldue_sample set at = " + future)
		if n := take(time.Hour); n != 1 {
			t.Errorf("after a time in the future %d of 8 processes measure, want 1", n)
		}
	})
}

// TestDeedsAreKeptInOrder: deeds are returned newest first, and kept for a given time.
func TestDeedsAreKeptInOrder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		for i := range 3 {
			if err := s.PutDeed(t.Context(), Deed{Who: "ann", Why: "it's 'late'", Action: "retry", Target: fmt.Sprint("task ", i), Changed: int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := s.Audit(t.Context(), 2)
		if err != nil || len(list) != 2 || list[0].Target != "task 2" || list[0].Changed != 2 || list[0].Why != "it's 'late'" || list[1].Target != "task 1" || list[0].Created == 0 {
			t.Errorf("the last deeds are %+v (error %v)", list, err)
		}
		if err := s.DropAudit(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Audit(t.Context(), 9); err != nil || len(list) != 3 {
			t.Errorf("%d deeds are left (error %v), want 3", len(list), err)
		}
		if err := s.DropAudit(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Audit(t.Context(), 9); err != nil || len(list) != 0 {
			t.Errorf("%d deeds are left (error %v), want none", len(list), err)
		}
	})
}
