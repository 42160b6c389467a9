package claim

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestLooksStandInForReads of changes, of which there is one a minute then, and another one
// as soon as a look sees a change, however late that was committed.
func TestLooksStandInForReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, stored := &controltest.Table{}, &storedTasks{ids: []int64{1}}
		p, _ := proberOf(stored)
		var busy atomic.Bool
		p.changes, p.wanted = readerOf(table.Read), func() bool { return !busy.Load() }
		ctx, cancel := context.WithCancel(t.Context())
		go p.changes.Work(ctx)
		go p.Work(ctx)
		reads := func(d time.Duration) int {
			before := table.Count()
			time.Sleep(d)
			synctest.Wait()
			return table.Count() - before
		}
		reads(20 * time.Second) // tasks may have come just before
		for _, idle := range []time.Duration{0, 2 * asleepAfter} {
			reads(idle)
			if n := reads(10 * time.Minute); n > 12 || n < 9 {
				t.Errorf("%d reads in ten minutes after %v without a task", n, idle)
			}
			table.Add("kind:k", statements.ChangePause, "", time.Now(), time.Time{})
			stored.set(func() { stored.changes += 7 })
			if reads(2 * time.Second); !p.changes.Paused("default", store.Lane{Kind: "k"}) {
				t.Errorf("a pause is not seen within two seconds after %v without a task", idle)
			}
			table.Add("kind:k", statements.ChangeResume, "", time.Now(), time.Time{})
			stored.set(func() { stored.changes += 8 })
			if reads(2 * time.Second); p.changes.Paused("default", store.Lane{Kind: "k"}) {
				t.Errorf("the end of a pause is not seen within two seconds after %v without a task", idle)
			}
		}
		// Without looks, changes are read as before.
		busy.Store(true)
		reads(2 * time.Second)
		if n := reads(time.Minute); n < 50 {
			t.Errorf("a busy worker reads changes %d times a minute", n)
		}
		cancel()
		synctest.Wait()
	})
}
