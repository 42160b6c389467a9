package store

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestRivalsKeepTheirPermits: after a claim has lost a permit, claims leave permits to the worker that took them last.
// That worker takes them again, and so the other worker's claims lose no more permits. Without a lost permit, and after a
// while, each worker takes any free permit.
func TestRivalsKeepTheirPermits(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		list := stores(t, engine, 2)
		for _, s := range list {
			s.rivals.recent = time.Hour // as if all happened quickly
		}
		one, other := list[0], list[1]
		sources := keyed(t, one, 1, 20, Limit{Form: Running, Most: 2})
		p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: 5, Sources: sources}
		// run claims tasks, settles them, and returns how many there were.
		run := func(s *Store) (n int, rest Rest) {
			t.Helper()
			result, err := s.ClaimLimited(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			var ends []*Settlement
			for _, c := range result.Claims {
				ends = append(ends, &Settlement{Settlement: statements.Settlement{Key: Key{TaskID: c.ID, Fence: c.Fence}, State: statements.StateDone}})
			}
			if left, err := s.Settle(t.Context(), "w", ends); err != nil || len(left.Lost)+len(left.Locked) > 0 {
				t.Fatalf("left %+v, error %v", left, err)
			}
			return len(result.Claims), result.Rests[0]
		}
		want := func(s *Store, want int, when string) {
			t.Helper()
			if n, rest := run(s); n != want || !rest.Limited() {
				t.Errorf("%s a worker claims %d tasks, and the rest is %+v; want %d and a limit", when, n, rest, want)
			}
		}
		want(one, 2, "first,")
		want(other, 2, "without a lost permit,")
		want(one, 2, "again without a lost permit,")
		loseAPermit(t, other, p)
		other.rivals.lost.Add(int64(time.Hour)) // as if the rivalry lasted
		want(other, 0, "after it has lost a permit,")
		want(one, 2, "with permits of its own,")
		want(other, 0, "again after it has lost a permit,")
		other.rivals.recent = 0
		want(other, 2, "if the others have not taken permits recently,")
		other.rivals.recent = time.Hour
		want(other, 2, "with permits of its own,")
		want(one, 2, "without a lost permit of its own,")
		other.rivals.lost.Add(int64(-2 * time.Hour))
		want(other, 2, "long after it has lost a permit,")
	})
}

// loseAPermit makes a claim that another one outruns.
func loseAPermit(t *testing.T, s *Store, p ClaimParams) {
	t.Helper()
	claims, err := inTx(t.Context(), s, func(x runner) ([]*Claim, error) {
		quotas, err := s.quotas(t.Context(), x, p)
		if err != nil {
			return nil, err
		}
		found, rests, err := s.find(t.Context(), x, p, quotas)
		if err != nil {
			return nil, err
		}
		for _, permit := range quotas[p.Sources[0].Limits[0].Name].free {
			permit.Token++
		}
		return s.takeLimited(t.Context(), x, p, found, quotas, rests)
	})
	if err != nil || len(claims) > 0 {
		t.Fatalf("claims %v, error %v", claims, err)
	}
}
