package falldue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

func TestMeterClaimsForFreeHandlersAndALittleAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(10)
		if n := m.room(); n != 10 {
			t.Errorf("an idle worker of 10 handlers claims %d tasks", n)
		}
		m.claiming(10)
		if n := m.room(); n != 0 {
			t.Errorf("beside a claim of 10 it claims %d more", n)
		}
		m.claimed(4, 10)
		if n := m.room(); n != 6 {
			t.Errorf("after a claim that took 4 of 10 it claims %d, want 6", n)
		}
		for range 4 {
			m.returned()
		}
		// 1,000 handlers return in each of ten windows of 10 ms, that is 100,000 each
		// second, and 2,000 in the 20 ms ahead: bounded by maxAhead, and a claim.
		for range 10 {
			time.Sleep(10 * time.Millisecond)
			m.finished.Add(1000)
			m.room()
		}
		if n := m.room(); n != store.MaxBatch {
			t.Errorf("with handlers that return at once it claims %d, want %d", n, store.MaxBatch)
		}
		m.claiming(10 + maxAhead)
		if n := m.room(); n != 0 {
			t.Errorf("with %d at hand it claims %d more", maxAhead, n)
		}
		time.Sleep(time.Minute)
		for range 20 {
			time.Sleep(time.Second)
			m.room()
		}
		m.unfinished.Store(0)
		if n := m.room(); n != 10 {
			t.Errorf("after a minute without returns it claims %d, want 10", n)
		}
	})
}
