package run

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/outcome"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestRecentRunsAreThoseOfFiveMinutes: recent runs are counted by kind, over less time if the worker has just started.
func TestRecentRunsAreThoseOfFiveMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e EndedRuns
		end := func(kind string, n int) {
			batch := make([]*Run, n)
			for i := range batch {
				batch[i] = &Run{ClaimResult: outcome.ClaimResult{Claim: &store.Claim{From: store.Lane{Kind: kind}}}}
				batch[i].end.State = statements.StateDone
			}
			e.count(batch, nil)
		}
		expect := func(all int64, over time.Duration, want map[string]store.Runs) {
			t.Helper()
			runs, recent := e.Take()
			if runs.Done != all || recent.Over != over || !maps.Equal(recent.Kinds, want) {
				t.Errorf("%d in all, want %d; of late %+v, want %+v in %v", runs.Done, all, recent, want, over)
			}
		}
		expect(0, 0, map[string]store.Runs{})
		time.Sleep(announceEvery)
		end("mail", 3)
		end("report", 1)
		expect(4, announceEvery, map[string]store.Runs{"mail": {Done: 3}, "report": {Done: 1}})
		for range 60 {
			time.Sleep(announceEvery)
			end("mail", 2)
			e.Take()
		}
		time.Sleep(announceEvery)
		expect(124, recentTime, map[string]store.Runs{"mail": {Done: 38}})
		end("charge", 7)
		time.Sleep(announceEvery)
		end("mail", 1)
		_, recent := e.Take()
		if recent.LatestOver != 2*announceEvery || !maps.Equal(recent.Latest, map[string]store.Runs{"mail": {Done: 1}, "charge": {Done: 7}}) {
			t.Errorf("the latest are %+v", recent)
		}
		if len(e.samples) > int(recentTime/announceEvery)+2 {
			t.Errorf("%d samples are kept", len(e.samples))
		}
		time.Sleep(time.Hour)
		expect(132, time.Hour, map[string]store.Runs{})
	})
}

// announceEvery is how often a worker announces its ended runs.
const announceEvery = 15 * time.Second
