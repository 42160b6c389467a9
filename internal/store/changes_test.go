package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestOldChangesAreDropped: changes that no longer matter are dropped when they are old or too many.
// Changes in effect stay, however old they are.
func TestOldChangesAreDropped(t *testing.T) {
	t.Parallel()
	const age = 90 * 24 * time.Hour
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		put := func(subject, what, why string, old bool) {
			t.Helper()
			if err := s.PutChange(t.Context(), Change{Subject: subject, What: what, Why: why}); err != nil {
				t.Fatal(err)
			}
			if old {
				clock := s.Server().Clock()
				db.MustExec(fmt.Sprintf("update falldue_changes set created_at = %s where why = '%s'", clock.Shift("created_at", fmt.Sprint(-(age+time.Hour).Microseconds())), why))
			}
		}
		const pause, resume, policy, clearing = statements.ChangePause, statements.ChangeResume, statements.ChangePolicy, statements.ChangeClearPolicy
		put("kind:a", pause, "old and holds", true)
		put("kind:b", pause, "old, and over", true)
		put("kind:b", policy, "of another topic", true)
		put("kind:b", resume, "ends it", true)
		put("kind:c", policy, "old, and replaced", true)
		put("kind:c", policy, "replaces it", false)
		put("kind:d", pause, "old, and resumed", true)
		put("kind:d", resume, "resumes it", false)
		put("kind:e", policy, "young, and cleared", false)
		put("kind:e", clearing, "clears it", false)
		why := func() (list []string) {
			t.Helper()
			left, err := s.Changes(t.Context(), AllChanges)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range left {
				list = append(list, c.Why)
			}
			return list
		}
		for i, want := range [][]string{
			{"old and holds", "of another topic", "ends it", "replaces it", "resumes it", "young, and cleared", "clears it"},
			{"old and holds", "of another topic", "replaces it", "resumes it", "young, and cleared", "clears it"}, // the changes that they end are gone
		} {
			if err := s.DropOldChanges(t.Context(), age); err != nil {
				t.Fatal(err)
			}
			got := why()
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("after %d times %q are left, want %q", i+1, got, want)
			}
		}
	})
}

func TestTooManyChangesAreOutdated(t *testing.T) {
	t.Parallel()
	var list []StoredChange
	for id := range int64(10) {
		list = append(list, StoredChange{ID: id, Change: Change{Subject: "kind:a", What: statements.ChangePause}})
	}
	if got := outdated(list, time.Hour, 3); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 5}) {
		t.Errorf("outdated are %v", got)
	}
}
