package store

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestPermitsThatOthersMadeAreCountedAnew: a claim reads that a limit has no permits yet. Before its
// transaction begins, another claim makes them and takes some.
func TestPermitsThatOthersMadeAreCountedAnew(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		list := stores(t, engine, 2)
		for name, c := range map[string]struct {
			limit       Limit
			first, most int // how many tasks the first claim takes, and the second one may take
		}{
			"a bucket":       {Limit{Form: Bucket, Most: 3, Per: time.Hour, Name: "bucket "}, 2, 1},
			"a window":       {Limit{Form: Window, Most: 3, Per: time.Hour, Name: "window "}, 2, 1},
			"running":        {Limit{Form: Running, Most: 3, Name: "running "}, 2, 1},
			"a sequence":     {Limit{Form: Sequence, Most: 1, Name: "sequence "}, 1, 0},
			"one that halts": {Limit{Form: HaltingSequence, Most: 1, Name: "halting "}, 1, 0},
		} {
			from := keyed(t, list[0], 1, 6, c.limit)[0]
			p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: c.limit.Most, Sources: []Source{from}}
			stale, err := reading(t.Context(), list[1], func(x runner) (map[string]*quota, error) { return list[1].quotas(t.Context(), x, p) })
			if err != nil {
				t.Fatal(err)
			}
			before := p
			before.Limit = c.first
			first, err := list[0].ClaimLimited(t.Context(), before)
			if err != nil || len(first.Claims) != c.first {
				t.Fatalf("%s: the first claim got %d tasks, error %v; want %d", name, len(first.Claims), err, c.first)
			}
			if c.limit.Form == Sequence || c.limit.Form == HaltingSequence { // its task waits for its next attempt
				e := &Settlement{}
				e.Key, e.State, e.Wait = Key{TaskID: first.Claims[0].ID, Fence: first.Claims[0].Fence}, statements.StateSnoozed, time.Hour.Microseconds()
				if _, err := list[0].Settle(t.Context(), "w", []*Settlement{e}); err != nil {
					t.Fatal(err)
				}
			}
			second, err := inTx(t.Context(), list[1], func(x runner) ([]*Claim, error) {
				found, rests, err := list[1].find(t.Context(), x, p, stale)
				if err != nil {
					return nil, err
				}
				return list[1].takeLimited(t.Context(), x, p, found, stale, rests)
			})
			if err != nil || len(second) > c.most {
				t.Errorf("%s: the second claim got %d tasks, error %v; allowed are %d", name, len(second), err, c.most)
			}
		}
	})
}
