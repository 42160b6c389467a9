package store

import (
	"database/sql"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// TestOnlyATaskWithTheFenceIsChanged: a task that has been claimed since its fence was read stays as it is, while it
// runs and when it waits again. A task whose worker is lost waits.
func TestOnlyATaskWithTheFenceIsChanged(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		ids, err := s.Enqueue(t.Context(), nil, []Entry{{Queue: "default", Kind: "k", Payload: "1"}})
		if err != nil {
			t.Fatal(err)
		}
		change := func(fence int64) bool {
			t.Helper()
			changed, err := s.ChangeWaiting(t.Context(), WaitingChange{
				Key: Key{TaskID: ids[0], Fence: fence}, Queue: "other", Payload: sql.Null[string]{V: "2", Valid: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			return changed
		}
		clock := s.server.Clock()
		if s.db.MustExec("update falldue_tasks set fence = 1, claimed_by = 'w', updated_at = " + clock.Shift(clock.Now, "60000000")); change(1) {
			t.Error("a task that runs is changed")
		}
		if s.db.MustExec("update falldue_tasks set claimed_by = ''"); change(0) {
			t.Error("a task is changed that has been claimed since its fence was read")
		}
		if !change(1) || change(1) {
			t.Error("a task is not changed once with a fence")
		}
		if s.db.MustExec("update falldue_tasks set claimed_by = 'w', updated_at = " + clock.Now); !change(2) {
			t.Error("a task whose worker is lost is not changed")
		}
	})
}
