package store

import (
	"slices"
	"testing"

	"github.com/falldue/falldue/internal/statements"
)

// TestQuotasAreSizedByDemand: a limit of a great number costs no more than a limit of a small number, and
// only as many permits are made as tasks need.
func TestQuotasAreSizedByDemand(t *testing.T) {
	permits := []*statements.Permit{{N: 1}, {N: 3, Live: 1}, {N: 5000, Live: 1}}
	allocations := func(most int) float64 {
		return testing.AllocsPerRun(10, func() { newQuota(Limit{Form: Running, Most: most}, permits) })
	}
	if few, many := allocations(2), allocations(1000); many > few {
		t.Errorf("a quota of 1,000 allocates %v times, a quota of 2 %v times", many, few)
	}
	q := newQuota(Limit{Form: Running, Most: 1000}, permits)
	if numbers := q.firstMissing(3); q.room != 998 || !slices.Equal(numbers, []int{0, 2, 4}) {
		t.Errorf("room for %d and missing permits %v, want 998 and 0, 2 and 4", q.room, numbers)
	}
	if numbers := newQuota(Limit{Form: Running, Most: 4}, permits).firstMissing(9); !slices.Equal(numbers, []int{0, 2}) {
		t.Errorf("missing permits of a limit of 4 are %v, want 0 and 2", numbers)
	}
}
