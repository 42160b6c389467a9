package falldue

import "testing"

func TestNoBatchHoldsTwoClaimsOfATask(t *testing.T) {
	t.Parallel()
	var rest []ended
	for _, id := range []int64{1, 2, 1, 3, 1, 1} {
		rest = append(rest, ended{settlement: settlement{id: id}})
	}
	for _, want := range []int{2, 2, 1, 1} {
		part := distinct(rest)
		if rest = rest[len(part):]; len(part) != want {
			t.Fatalf("a part holds %d claims, want %d", len(part), want)
		}
	}
	if len(rest) > 0 {
		t.Errorf("%d claims are left", len(rest))
	}
}
