package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// gauge counts tasks that run concurrently. Those whose worker has died count until their leases end.
type gauge struct {
	mu        sync.Mutex
	now, most int
	ends      []time.Time
}

func (g *gauge) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.count()
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

// abandon enters a task whose lease lasts until a time.
func (g *gauge) abandon(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends = append(g.ends, until)
	g.count()
}

func (g *gauge) count() {
	g.ends = slices.DeleteFunc(g.ends, func(end time.Time) bool { return !time.Now().Before(end) })
	g.most = max(g.most, g.now+len(g.ends))
}

// stores returns stores of one database with pools of their own.
func stores(t *testing.T, engine string, n int) []*Store {
	t.Helper()
	dsn, list := testdb.DSN(t, engine), make([]*Store, n)
	for i := range list {
		db, err := sqlx.Open(testdb.Drivers(engine)[0], dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if i == 0 {
			list[i] = migrated(t, db)
		} else {
			list[i] = New(db, list[0].server, Options{Tables: list[0].tables})
		}
	}
	return list
}

// keyed stores n tasks for each of several keys, and returns their lanes with a limit for
// each key.
func keyed(t *testing.T, s *Store, keys, n int, limit Limit) []Source {
	t.Helper()
	var entries []Entry
	sources := make([]Source, keys)
	for i := range sources {
		at := Lane{State: statements.StateOpen, Kind: "k", Key: fmt.Sprintf("tenant=%d/endpoint=1", i)}
		sources[i] = Source{Lane: at, Running: statements.StateOpen, Limits: []Limit{limit}}
		sources[i].Limits[0].Name += at.Key
		for range n {
			entries = append(entries, Entry{Queue: "default", Kind: at.Kind, Key: at.Key, Payload: "{}"})
		}
	}
	if _, err := s.Enqueue(t.Context(), nil, entries); err != nil {
		t.Fatal(err)
	}
	return sources
}

// persistently runs fn again as long as contention undoes it, as the loops of a worker do.
func persistently(s *Store, fn func() error) error {
	for {
		if err := fn(); s.server.Classify(err) != dialect.Contention {
			return err
		}
	}
}

// TestNoMoreThanTheLimit: many workers claim from few keys concurrently, and abandon some claims. No
// more than the limit ever run. In the end all permits are free.
func TestNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const keys, each, most = 3, 60, 2
		claimers := 10
		if engine == testdb.TiDB {
			claimers = 3 // among more, it gives up to lock a permit after 256 tries
		}
		list := stores(t, engine, claimers)
		for _, s := range list {
			s.rivals.recent = 0 // all claims try to take all permits
		}
		sources := keyed(t, list[0], keys, each, Limit{Form: Running, Most: most})
		// With a second limit, claims take permits in vain: they name claims that are made later.
		gauges, where := make([]gauge, keys), map[string]int{}
		for i, from := range sources {
			where[from.Key] = i
			sources[i].Limits = slices.Concat(from.Limits, []Limit{{Name: "kind", Form: Running, Most: keys*most - 1}})
		}
		var done, lost, turns atomic.Int64
		var all sync.WaitGroup
		for i, s := range list {
			all.Go(func() {
				worker := fmt.Sprintf("w%d", i)
				// After an error, some tasks may be claimed and never counted as done.
				for turn := i; done.Load() < keys*each && t.Context().Err() == nil && !t.Failed(); turn++ {
					sent := time.Now()
					from := slices.Concat(sources[turn%keys:], sources[:turn%keys])
					p := ClaimParams{Queue: "default", Worker: worker, Lease: time.Minute, Limit: 1 + turn%4, Sources: from}
					abandoned := turn%20 == 0 && i%3 == 0
					if abandoned {
						p.Limit, p.Lease = 1, 2*time.Second
					}
					var result Limited
					err := persistently(s, func() (err error) { result, err = s.ClaimLimited(t.Context(), p); return err })
					if err != nil {
						t.Error(err)
						return
					}
					for _, rest := range result.Rests {
						if rest.Why == Outrun {
							lost.Add(1)
						}
					}
					turns.Add(1)
					if abandoned { // its process has died
						for _, c := range result.Claims {
							gauges[where[c.From.Key]].abandon(sent.Add(p.Lease - 10*time.Millisecond)) // some clocks have milliseconds
						}
						done.Add(int64(len(result.Claims))) // an abandoned task is in another lane now
						continue
					}
					var batch []*Settlement
					for _, c := range result.Claims {
						gauges[where[c.From.Key]].enter()
						e := &Settlement{}
						e.TaskID, e.Fence, e.State = c.ID, c.Fence, statements.StateDone
						batch = append(batch, e)
					}
					_ = s.db.PingContext(t.Context()) // the handlers take some time
					for _, c := range result.Claims {
						gauges[where[c.From.Key]].leave()
					}
					if len(batch) == 0 {
						continue
					}
					var left Unsettled
					err = persistently(s, func() (err error) { left, err = s.Settle(t.Context(), worker, batch); return err })
					if err != nil {
						t.Error(err)
						return
					}
					done.Add(int64(len(batch) - len(left.Lost)))
				}
			})
		}
		all.Wait()
		for i := range gauges {
			if got := gauges[i].most; got > most {
				t.Errorf("%d tasks of %s ran at once; the limit is %d", got, sources[i].Key, most)
			}
		}
		t.Logf("%d claims, %d permits lost to others, %d tasks done", turns.Load(), lost.Load(), done.Load())
		for ok := false; !ok; { // until the last lease ends
			quotas, err := list[0].quotas(t.Context(), unprepared{list[0].db}, ClaimParams{Sources: sources})
			if err != nil {
				t.Fatal(err)
			}
			ok = true
			for _, q := range quotas {
				ok = ok && q.room == q.Most
			}
		}
	})
}

// TestClaimsReadFewPermits: a claim of few tasks reads the permits of a few keys. It reads more only if limits hold back
// all of these keys and may admit tasks of others.
func TestClaimsReadFewPermits(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		sources := keyed(t, s, 2*leastSources, 2, Limit{Form: Running, Most: 1})
		last := len(sources) - 1
		for i := range sources {
			sources[i].Limits = append(sources[i].Limits, Limit{Name: "kind", Form: Running, Most: leastSources + 2})
		}
		claim := func(limit int, sources []Source) Limited {
			t.Helper()
			result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: limit, Sources: sources})
			if err != nil || len(result.Rests) != len(sources) {
				t.Fatalf("%d rests of %d sources, error %v", len(result.Rests), len(sources), err)
			}
			return result
		}
		claim(1, sources[last:]) // has the key's only permit from now on
		if result := claim(1, sources); len(result.Claims) != 1 || result.Rests[last].Why != More {
			t.Errorf("claims %v and last rest %+v, want one claim, and the last key is not reached", result.Claims, result.Rests[last])
		}
		claim(leastSources, sources[:leastSources])
		if result := claim(1, sources); len(result.Claims) != 1 || result.Claims[0].Place != leastSources+1 || result.Rests[last].Why != Saturated {
			t.Errorf("claims %v and last rest %+v, want one claim of the first free key, and the last key is saturated", result.Claims, result.Rests[last])
		}
		before := s.Statements()
		result := claim(1, sources)
		if n := s.Statements() - before; n != 1 || len(result.Claims) != 0 {
			t.Errorf("%d statements and claims %v of a saturated kind, want a single read", n, result.Claims)
		}
		for i, rest := range result.Rests {
			if rest.Why != Saturated {
				t.Errorf("source %d of a saturated kind: %+v", i, rest)
			}
		}
	})
}

// TestLimitsShareTheirTasks: keys under one limit have equal shares of the admitted tasks, in the order of
// their lanes, with lower priority numbers first. The claim returns the rest of each.
func TestLimitsShareTheirTasks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		sources := keyed(t, s, 4, 2, Limit{Form: Running, Most: 2})
		for i := range sources {
			sources[i].Limits = append(sources[i].Limits, Limit{Name: "kind", Form: Running, Most: 5})
		}
		empty := sources[0]
		empty.Kind = "another"
		sources = append([]Source{empty}, sources...)
		claim := func(limit int) Limited {
			result, err := s.ClaimLimited(context.Background(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: limit, Sources: sources})
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		places := func(result Limited) (list []int) {
			for _, c := range result.Claims {
				list = append(list, c.Place)
			}
			return list
		}
		result := claim(3)
		if got := fmt.Sprint(places(result)); got != "[2 3 4]" {
			t.Errorf("a claim of 3 took tasks of the sources %s", got)
		}
		if got := result.Rests[0].Why; got != Emptied {
			t.Errorf("the empty source: %v", result.Rests[0])
		}
		if got := result.Rests[4].Why; got != More {
			t.Errorf("a source that was not reached: %v", result.Rests[4])
		}
		result = claim(10)
		if got := fmt.Sprint(places(result)); got != "[2 3]" {
			t.Errorf("a claim under a limit of 5 of which 3 run took tasks of the sources %s", got)
		}
		if got := result.Rests[4]; got.Why != Saturated || got.Name != "kind" {
			t.Errorf("a source whose kind is saturated: %v", got)
		}
		if len(result.Claims) != 2 || result.Claims[0].From.Key != "tenant=0/endpoint=1" {
			t.Errorf("claims %v", result.Claims)
		}
		sources = keyed(t, s, 3, 3, Limit{Form: Running, Most: 3})
		for i := range sources {
			sources[i].Limits[0].Name += " of another kind"
		}
		if got := fmt.Sprint(places(claim(5))); got != "[1 1 2 2 3]" {
			t.Errorf("a claim of 5 took tasks of the sources %s", got)
		}
		if got := fmt.Sprint(places(claim(9))); got != "[1 2 3 3]" {
			t.Errorf("a claim of all tasks took tasks of the sources %s", got)
		}
	})
}

// TestKeysShareWithinTheirPriority: the keys of a lower priority number get all that they can take
// before others get anything.
func TestKeysShareWithinTheirPriority(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		sources := keyed(t, s, 1, 3, Limit{Form: Running, Most: 10})
		later := sources[0]
		later.Priority = 1
		entries := slices.Repeat([]Entry{{Queue: "default", Kind: later.Kind, Key: later.Key, Priority: 1, Payload: "{}"}}, 3)
		if _, err := s.Enqueue(t.Context(), nil, entries); err != nil {
			t.Fatal(err)
		}
		result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 4, Sources: []Source{sources[0], later}})
		if err != nil || len(result.Claims) != 4 || result.Claims[2].Place != 1 || result.Claims[3].Place != 2 {
			t.Errorf("claims %v, error %v; want three of the first priority and one of the next", result.Claims, err)
		}
	})
}

// TestRatesHold: many workers claim concurrently under a rate. By the database's clock, no span as
// long as the period has more claims than the limit, and a bucket keeps its average.
func TestRatesHold(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const claimers, most, per, claims = 6, 3, 200 * time.Millisecond, 24
		list := stores(t, engine, claimers)
		sources := keyed(t, list[0], 2, 200, Limit{Form: Window, Most: most, Per: per})
		sources[1].Limits[0].Form = Bucket // 3 immediately, and then one each 200 ms
		taken := make([]atomic.Int64, 2)
		var mu sync.Mutex
		seen := map[[2]int64]int64{}         // when the permits of the window were taken
		now, err := list[0].Now(t.Context()) // before the first claim
		if err != nil {
			t.Fatal(err)
		}
		first := now.UnixMicro()
		last := first
		var all sync.WaitGroup
		for i, s := range list {
			all.Go(func() {
				for taken[0].Load() < claims && t.Context().Err() == nil {
					p := ClaimParams{Queue: "default", Worker: fmt.Sprint(i), Lease: time.Minute, Limit: 1 + i, Sources: sources}
					var result Limited
					err := persistently(s, func() (err error) { result, err = s.ClaimLimited(t.Context(), p); return err })
					if err != nil {
						t.Error(err)
						return
					}
					for _, c := range result.Claims {
						taken[c.Place-1].Add(1)
					}
					mu.Lock()
					permits, err := permitsOf(t.Context(), s, sources)
					for _, p := range permits {
						if p.Token == 0 {
							continue
						}
						if p.Name == sources[0].Limits[0].Name {
							seen[[2]int64{p.ID, p.Token}] = p.Until - per.Microseconds()
						}
						last = max(last, p.Now)
					}
					mu.Unlock()
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		times := slices.Sorted(maps.Values(seen))
		for i := most; i < len(times); i++ {
			if apart := Duration(times[i] - times[i-most]); apart < per {
				t.Errorf("%d claims within %v; the limit is %d in %v", most+1, apart, most, per)
			}
		}
		elapsed := Duration(last - first)
		if got, most := taken[1].Load(), most+1+int64(elapsed/per); got < 3 || got > most {
			t.Errorf("%d claims from a bucket within %v; allowed are 3 to %d", got, elapsed, most)
		}
		t.Logf("%d claims under the window, %d from the bucket, within %v", taken[0].Load(), taken[1].Load(), elapsed)
	})
}

// TestRatesCountFromTheClaim: a claim takes its permits before its tasks. The time of a rate's permit
// counts from the start of the run in the database.
func TestRatesCountFromTheClaim(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const keys, per = 30, time.Hour // SQLite's clock has milliseconds, and one claim may be within one
		s := stores(t, engine, 1)[0]
		for i, from := range keyed(t, s, keys, 2, Limit{Form: Window, Most: 2, Per: per}) {
			full := per
			if i%2 == 0 {
				from.Limits[0].Form, full = Bucket, 2*per
			}
			result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 2, Sources: []Source{from}})
			if err != nil || len(result.Claims) != 2 {
				t.Fatalf("claimed %d tasks, %v; want 2", len(result.Claims), err)
			}
			var last int64
			tasks, err := s.Tasks(t.Context(), Filter{Key: from.Key, Limit: keys})
			for _, task := range tasks {
				last = max(last, task.Attempted)
			}
			permits, other := permitsOf(t.Context(), s, []Source{from})
			if err := errors.Join(err, other); err != nil || last == 0 {
				t.Fatalf("the last claim was at %d: %v", last, err)
			}
			for _, p := range permits {
				if short := Duration(last + full.Microseconds() - p.Until); p.Token != 0 && short > 0 {
					t.Fatalf("a permit of form %d is free %v too early", from.Limits[0].Form, short)
				}
			}
		}
	})
}

// permitsOf returns the permits of the limits of sources.
func permitsOf(ctx context.Context, s *Store, sources []Source) (permits []statements.Permit, err error) {
	for _, from := range sources {
		rows := statements.LimitColumns.Rows(1, func(int) *string { return &from.Limits[0].Name })
		err = unprepared{s.db}.query(ctx, s.batch("permits", 1, statements.Permits), nil, rows, func(r row) error {
			var p statements.Permit
			err := statements.PermitColumns.Scan(r, &p)
			permits = append(permits, p)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return permits, nil
}

// TestPermitsAreDropped: free permits are dropped, and others are not.
func TestPermitsAreDropped(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		sources := keyed(t, s, 4, 1, Limit{Form: Running, Most: 1})
		sources[2].Limits[0].Form, sources[3].Limits[0].Form = Sequence, Window
		sources[3].Limits[0].Per = time.Minute
		result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 10, Sources: sources})
		if err != nil || len(result.Claims) != 4 {
			t.Fatal(result, err)
		}
		settle := func(state string, list ...*Claim) {
			t.Helper()
			for _, c := range list {
				e := &Settlement{}
				e.TaskID, e.Fence, e.State = c.ID, c.Fence, state
				if left, err := s.Settle(t.Context(), "w", []*Settlement{e}); err != nil || len(left.Lost) > 0 {
					t.Fatal(left, err)
				}
			}
		}
		drop := func(keep time.Duration, want ...string) {
			t.Helper()
			if last, _, err := s.DropPermits(t.Context(), 0, keep); err != nil || last != 0 {
				t.Fatal(last, err)
			}
			permits, err := permitsOf(t.Context(), s, sources)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, p := range permits {
				left = append(left, p.Name)
			}
			if !slices.Equal(left, want) {
				t.Errorf("the permits %v are left, want %v", left, want)
			}
		}
		drop(0, "tenant=0/endpoint=1", "tenant=1/endpoint=1", "tenant=2/endpoint=1", "tenant=3/endpoint=1") // their claims are alive
		settle(statements.StateDone, result.Claims[0], result.Claims[3])
		settle(statements.StateOpen, result.Claims[2])
		drop(time.Hour, "tenant=0/endpoint=1", "tenant=1/endpoint=1", "tenant=2/endpoint=1", "tenant=3/endpoint=1") // they were taken just now
		drop(0, "tenant=1/endpoint=1", "tenant=2/endpoint=1", "tenant=3/endpoint=1")                                // claimed, next in a sequence, within the window
	})
}
