package store

import (
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestStepsBelongToTheirClaim: only the worker that holds the claim records steps, and steps are dropped
// when their task is gone, and only then.
func TestStepsBelongToTheirClaim(t *testing.T) {
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
		begun := StepRow{Key: Key{TaskID: ids[0], Fence: 1}, N: 1, Name: "one", Begins: 1}
		done := begun
		done.Begins, done.Crashes, done.Result = 0, 2, NotNull(`{"a": "ü"}`)
		lost, other := done, done
		lost.Fence, other.Name = 0, "two"
		for i, c := range []struct {
			worker string
			row    StepRow
			mine   bool
		}{{"me", begun, true}, {"another", other, false}, {"me", lost, false}, {"me", done, true}, {"another", other, false}} {
			if mine, err := s.PutStep(t.Context(), nil, c.worker, &c.row); err != nil || mine != c.mine {
				t.Fatalf("write %d by %s is of its claim: %v (error %v)", i, c.worker, mine, err)
			}
		}
		list, err := s.Steps(t.Context(), ids[0])
		if err != nil || len(list) != 1 || list[0].StepRow != done || list[0].Started == 0 || list[0].Updated < list[0].Started {
			t.Errorf("stored is %+v (error %v)", list, err)
		}
		if done, err := s.ForgetSteps(t.Context(), ids[0]); err != nil || done {
			t.Errorf("the steps of a task that runs are forgotten: %v (error %v)", done, err)
		}
		_, err = inTx(t.Context(), s, func(x runner) (struct{}, error) {
			for i := range int64(MaxBatch + 10) {
				orphan := begun
				orphan.TaskID = ids[0] + 1000 + i
				values := statements.Values{}
				statements.SetStep(values, &orphan)
				if _, err := x.exec(t.Context(), s.fixed("put step", statements.PutStep), values, nil); err != nil {
					return struct{}{}, err
				}
			}
			return struct{}{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		dropped, pages := 0, 0
		for after := int64(-1); after != 0; pages++ {
			last, n, err := s.DropOrphanedSteps(t.Context(), after)
			if err != nil {
				t.Fatal(err)
			}
			after, dropped = last, dropped+n
		}
		if dropped != MaxBatch+10 || pages != 2 {
			t.Errorf("the steps of %d tasks are dropped in %d pages, want %d in 2", dropped, pages, MaxBatch+10)
		}
		if list, err := s.Steps(t.Context(), ids[0]); err != nil || len(list) != 1 {
			t.Errorf("the steps of the task are %+v (error %v)", list, err)
		}
	})
}
