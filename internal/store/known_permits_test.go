package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestKnownPermitsAreNotRead: a claim does not read the permits of a limit if this worker had them all and their tasks
// have ended. It gets no permit that another worker has taken in the meantime, and reads permits again after that.
func TestKnownPermitsAreNotRead(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		list := stores(t, engine, 2)
		one, other := list[0], list[1]
		one.known.readAgain = time.Hour
		sources := keyed(t, one, 1, 20, Limit{Form: Running, Most: 2})
		p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: 5, Sources: sources}
		// claim returns the claims of a worker, and the number of their statements.
		claim := func(s *Store, want int, when string) (claims []*Claim, sent int64) {
			t.Helper()
			before := s.Statements()
			result, err := s.ClaimLimited(t.Context(), p)
			if err != nil || len(result.Claims) != want {
				t.Fatalf("%s: %d claims, rest %+v, error %v; want %d", when, len(result.Claims), result.Rests, err, want)
			}
			return result.Claims, s.Statements() - before
		}
		settle := func(s *Store, claims []*Claim) { settleDone(t, s, claims) }
		first, _ := claim(one, 2, "first")
		settle(one, first)
		again, read := claim(one, 2, "before the end is recorded")
		settle(one, again)
		one.Ended(first) // late: these permits have other tokens by now
		one.Ended(again)
		claims, known := claim(one, 2, "after the end is recorded")
		if known != read-1 {
			t.Errorf("%d statements with known permits, and %d without; want one less", known, read)
		}
		settle(one, claims)
		one.Ended(claims[:1])
		claims, sent := claim(one, 2, "with one known permit of two")
		if sent != read {
			t.Errorf("%d statements, want %d: one permit is not known", sent, read)
		}
		settle(one, claims)
		one.Ended(claims)
		taken, _ := claim(other, 2, "another worker")
		claim(one, 0, "after another worker has taken the known permits")
		claim(one, 0, "again, by the permits in the database")
		settle(other, taken)
		one.rivals.recent = 0
		claims, _ = claim(one, 2, "after the other worker's tasks have ended")
		settle(one, claims)
		one.Ended(claims)
		one.rivals.lost.Add(int64(time.Hour)) // as if the rivalry lasted
		if _, sent := claim(one, 2, "during the rivalry"); sent != read {
			t.Errorf("%d statements during the rivalry, want %d", sent, read)
		}
	})
}

// TestTasksUnderAHigherLimitCount: a worker with a lower limit than another one had counts the tasks that still run under the
// higher limit, though it had all of its own permits and knows that they are free.
func TestTasksUnderAHigherLimitCount(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		list := stores(t, engine, 2)
		low, high := list[0], list[1]
		claim := func(s *Store, most int) []*Claim {
			t.Helper()
			sources := keyed(t, low, 1, 5, Limit{Form: Running, Most: most})
			result, err := s.ClaimLimited(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: 5, Sources: sources})
			if err != nil {
				t.Fatal(err)
			}
			return result.Claims
		}
		settle := func(s *Store, claims ...*Claim) {
			t.Helper()
			settleDone(t, s, claims)
			s.Ended(claims)
		}
		settle(low, claim(low, 2)...)
		settle(low, claim(low, 2)...) // these permits are known
		running := 0
		for _, c := range claim(high, 5) {
			if c.permits[0].N < 2 || running == 1 {
				settle(high, c)
			} else {
				running++
			}
		}
		low.known.readAgain = 0 // as if a second had passed
		low.rivals.recent = 0
		for range 20 {
			low.rivals.lost.Store(0)
			claims := claim(low, 2)
			if len(claims) != 1 || running != 1 {
				t.Fatalf("%d tasks are claimed while %d runs, want one", len(claims), running)
			}
			low.known.readAgain = time.Hour
			settle(low, claims...)
		}
	})
}

// TestKnownPermitsAreBounded: a store knows the permits of a bounded number of limits, for a bounded time, and only of
// limits on running tasks.
func TestKnownPermitsAreBounded(t *testing.T) {
	t.Parallel()
	k := &knownPermits{}
	k.begin()
	now := time.Now()
	limit := func(n int) Limit { return Limit{Name: fmt.Sprint(n), Form: Running, Most: 1} }
	for n := range maxKnown + 5 {
		k.add([]*statements.Permit{{ID: int64(n), Name: limit(n).Name}}, now)
	}
	last := maxKnown + 4
	if len(k.free) != maxKnown || k.of(limit(last)) == nil {
		t.Errorf("%d limits are known, the last one: %v; want %d with the last one", len(k.free), k.of(limit(last)), maxKnown)
	}
	for _, form := range []LimitForm{Window, Bucket, Sequence, HaltingSequence} {
		if l := (Limit{Name: limit(last).Name, Form: form, Most: 1}); k.of(l) != nil {
			t.Errorf("form %d has known permits", form)
		}
	}
	k.add([]*statements.Permit{{ID: int64(last), Name: limit(last).Name}}, now.Add(-knownFor-time.Second))
	if list := k.of(limit(last)); list != nil {
		t.Errorf("known after %v: %v", knownFor, list)
	}
	k.add([]*statements.Permit{{ID: int64(last), Name: limit(last).Name}}, now)
	if k.free[limit(last).Name].read = now.Add(-readAgain - time.Second); k.of(limit(last)) != nil || k.of(limit(last)) == nil {
		t.Errorf("known permits are not read once after %v", readAgain)
	}
	k.remove(map[int64]*statements.Permit{int64(last): {Name: limit(last).Name}})
	if list := k.of(limit(last)); list != nil {
		t.Errorf("known after a claim has tried to take it: %v", list)
	}
}

// settleDone settles claims of done tasks.
func settleDone(t *testing.T, s *Store, claims []*Claim) {
	t.Helper()
	var ends []*Settlement
	for _, c := range claims {
		ends = append(ends, &Settlement{Settlement: statements.Settlement{Key: Key{TaskID: c.ID, Fence: c.Fence}, State: statements.StateDone}})
	}
	if left, err := s.Settle(t.Context(), "w", ends); err != nil || len(left.Lost)+len(left.Locked) > 0 {
		t.Fatalf("left %+v, error %v", left, err)
	}
}
