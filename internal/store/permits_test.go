package store

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestOnlyPermitsOfRunningTasksAreKept: a task that is cancelled while it runs keeps its permit
// until its handler has ended. A rate has counted the start, and admits no fewer tasks because of the cancel.
func TestOnlyPermitsOfRunningTasksAreKept(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		sources := keyed(t, s, 3, 4, Limit{Form: Running, Most: 1})
		for i, l := range []Limit{{Name: "kind k running", Form: Running, Most: 1}, {Name: "kind k rate 1ms", Form: Window, Most: 1, Per: time.Millisecond}, {Name: "kind k bucket 1ms", Form: Bucket, Most: 1, Per: time.Millisecond}} {
			sources[i].Limits = []Limit{l}
		}
		claim := func() (claims []*Claim, from map[int]bool) {
			t.Helper()
			result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: 3, Sources: sources})
			if err != nil {
				t.Fatal(err)
			}
			from = map[int]bool{}
			for _, c := range result.Claims {
				from[c.Place-1] = true
			}
			return result.Claims, from
		}
		running, _ := claim()
		p := ActParams{Action: ActCancel, Wait: true}
		for _, c := range running {
			p.IDs = append(p.IDs, c.ID)
		}
		if acted, err := s.Act(t.Context(), p); err != nil || len(acted.Done) != 3 {
			t.Fatalf("%d tasks are cancelled, error %v; want 3", len(acted.Done), err)
		}
		states, err := s.LimitStates(t.Context(), []Limit{sources[1].Limits[0], sources[2].Limits[0]})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range states {
			if l.Wait > time.Second {
				t.Errorf("%s admits a task in %v", l.Name, l.Wait)
			}
		}
		if _, from := claim(); from[0] {
			t.Error("a task is claimed beside one whose handler has not ended")
		}
		if err := s.FreePermits(t.Context(), running); err != nil {
			t.Fatal(err)
		}
		if _, from := claim(); !from[0] {
			t.Error("no task is claimed after the handler has ended")
		}
	})
}

// TestEndedClaimsKeepThePermitsOfAllLimits: ended claims keep the permits of limits of kinds and of queues,
// of each form that limits running tasks, per key or not, or per part of a key. The permits are found by the
// names of the limits.
func TestEndedClaimsKeepThePermitsOfAllLimits(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		from := keyed(t, s, 1, 1, Limit{})[0]
		from.Limits = nil
		for _, owner := range []string{"kind k", "queue default"} {
			for _, form := range []LimitForm{Running, HaltingSequence} {
				for _, l := range []Limit{{}, {PerKey: true}, {PerKey: true, Part: "tenant"}, {PerKey: true, Part: "endpoint"}} {
					l.Name, l.Form, l.Most = LimitName(owner, form, 0, l.PerKey, l.Part), form, 1
					of, applies := l.Of(from.Key)
					if !applies {
						t.Fatalf("%+v does not apply to key %q", l, from.Key)
					}
					from.Limits = append(from.Limits, of)
				}
			}
		}
		p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: 1, Sources: []Source{from}}
		result, err := s.ClaimLimited(t.Context(), p)
		if err != nil || len(result.Claims) != 1 {
			t.Fatal(result, err)
		}
		kept := func() (n int) {
			t.Helper()
			for _, l := range from.Limits {
				permits, err := permitsOf(t.Context(), s, []Source{{Limits: []Limit{l}}})
				if err != nil || len(permits) != 1 {
					t.Fatal(permits, err)
				}
				if permits[0].Until > permits[0].Now {
					n++
				}
			}
			return n
		}
		act(t, s, ActCancel, []int64{result.Claims[0].ID})
		if n := kept(); n != len(from.Limits) {
			t.Errorf("of a task that was cancelled while it ran, the permits of %d limits are kept, want %d", n, len(from.Limits))
		}
		if err := s.FreePermits(t.Context(), result.Claims); err != nil {
			t.Fatal(err)
		}
		if n := kept(); n > 0 {
			t.Errorf("after its handler has ended, %d permits are kept", n)
		}
	})
}

// TestPermitsAreMadeByDemand: a limit that admits many tasks only has as many permits as tasks have run
// concurrently.
func TestPermitsAreMadeByDemand(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, form := range []LimitForm{Running, Window} {
			s := migrated(t, testdb.Open(t, engine))
			const keys = 20
			p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 100, Sources: keyed(t, s, keys, 2, Limit{Form: form, Most: 1000, Per: time.Hour})}
			result, err := s.ClaimLimited(t.Context(), p)
			if err != nil || len(result.Claims) != 2*keys {
				t.Fatalf("%d claims, error %v", len(result.Claims), err)
			}
			permits, err := permitsOf(t.Context(), s, p.Sources)
			if err != nil || len(permits) != 2*keys {
				t.Errorf("form %d: %d permits for %d tasks, error %v", form, len(permits), 2*keys, err)
			}
		}
	})
}

// TestPermitsAreFreeAfterTheClockStepsBack: the times of permits are then in the future. The permits of ended tasks are free
// nevertheless, and the permit of a task that is cancelled while it runs is kept.
func TestPermitsAreFreeAfterTheClockStepsBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, form := range []LimitForm{Running, HaltingSequence} {
			s := stores(t, engine, 1)[0]
			clock := s.server.Clock()
			limit := Limit{Form: form, Most: 1}
			limit.Name, limit.PerKey = LimitName("kind k", form, 0, true, ""), true
			p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: 3, Sources: keyed(t, s, 1, 3, limit)}
			claim := func(want int, when string) []*Claim {
				t.Helper()
				result, err := s.ClaimLimited(t.Context(), p)
				if err != nil || len(result.Claims) != want {
					t.Fatalf("form %d, %s: %d tasks are claimed, want %d (error %v)", form, when, len(result.Claims), want, err)
				}
				s.db.MustExec("update falldue_permits set taken_until = " + clock.Shift(clock.Now, "600000000"))
				return result.Claims
			}
			settleDone(t, s, claim(1, "at first"))
			running := claim(1, "after the first task has ended")
			act(t, s, ActCancel, []int64{running[0].ID})
			claim(0, "while a cancelled task runs")
			if err := s.FreePermits(t.Context(), running); err != nil {
				t.Fatal(err)
			}
			claim(1, "after the cancelled task has ended")
		}
	})
}
