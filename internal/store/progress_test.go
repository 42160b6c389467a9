package store

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestOrphanedProgressIsDropped: progress is dropped when its task is gone, and only then.
func TestOrphanedProgressIsDropped(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		ids, err := s.Enqueue(t.Context(), nil, []Entry{{Queue: "default", Kind: "k", Payload: "1"}})
		if err != nil {
			t.Fatal(err)
		}
		claims, err := s.Claim(t.Context(), ClaimParams{Queue: "default", Worker: "me", Lease: time.Hour, Limit: 1, Sources: []Source{
			{Lane: Lane{State: statements.StateOpen, Kind: "k"}, Running: statements.StateOpen},
		}})
		if err != nil || len(claims) != 1 {
			t.Fatalf("%d tasks are claimed (error %v)", len(claims), err)
		}
		held := Progress{Key: Key{TaskID: ids[0], Fence: 1}, Millionths: 7, Message: "held"}
		lost := held
		lost.Fence, lost.Message = 0, "lost"
		for _, c := range []struct {
			worker string
			report Progress
			stored bool
		}{{"me", held, true}, {"me", lost, false}, {"another", lost, false}} {
			if stored, err := s.WriteProgress(t.Context(), c.worker, []Progress{c.report}); err != nil || stored[ids[0]] != c.stored {
				t.Fatalf("the report %q of %s is stored: %v (error %v)", c.report.Message, c.worker, stored, err)
			}
		}
		orphans := make([]Progress, MaxBatch+100)
		for i := range orphans {
			orphans[i].TaskID = ids[0] + 1000 + int64(i)
		}
		if _, err := inTx(t.Context(), s, func(x runner) (struct{}, error) { return struct{}{}, s.putProgress(t.Context(), x, orphans) }); err != nil {
			t.Fatal(err)
		}
		if err := s.DropOrphanedProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p, ok, err := s.Progress(t.Context(), ids[0]); err != nil || !ok || p.Progress != held {
			t.Errorf("the progress of the task is %+v, %v (error %v)", p, ok, err)
		}
		for _, o := range []Progress{orphans[0], orphans[len(orphans)-1]} {
			if p, ok, err := s.Progress(t.Context(), o.TaskID); err != nil || ok {
				t.Errorf("of a task that has gone %+v is left (error %v)", p, err)
			}
		}
	})
}
