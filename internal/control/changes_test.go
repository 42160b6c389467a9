package control

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// TestChangesAreReadEverySecond: a worker applies changes within two seconds, including changes committed
// late, runs at most 65 statements a minute for it, and resumes when a pause ends by itself.
func TestChangesAreReadEverySecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, resumed := &controltest.Table{}, 0
		var cancelled map[int64]int64
		r := readerOf(table, controltest.Effects{OnResumed: func() { resumed++ }, OnCancelled: func(fences map[int64]int64) { cancelled = fences }}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		go r.Work(ctx)
		after := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		at := store.Lane{Kind: "charge", Key: "seven"}

		after(time.Hour)
		if perMinute := table.Count() / 60; perMinute > 65 || perMinute < 50 {
			t.Errorf("%d reads a minute", perMinute)
		}
		begin := time.Now()
		table.Add("queue:default kind:charge", statements.ChangePause, "", begin, time.Time{})
		after(2 * time.Second)
		if !r.Paused("default", at) || r.Paused("other", at) || r.Paused("default", store.Lane{Kind: "other"}) {
			t.Error("the pause holds for other lanes")
		}
		// A transaction that took 20 seconds has resumed it, and is committed after the pause.
		table.Add("queue:default kind:charge", statements.ChangeResume, "", begin.Add(time.Microsecond), time.Time{})
		after(2 * time.Second)
		if r.Paused("default", at) || resumed != 1 {
			t.Errorf("the pause holds after its end, resumed %d times", resumed)
		}
		table.Add("key:seven", statements.ChangePause, "", time.Now(), time.Now().Add(90*time.Second))
		after(80 * time.Second)
		if !r.Paused("any", at) {
			t.Error("the pause has ended before its time")
		}
		after(11 * time.Second)
		if r.Paused("any", at) || resumed != 2 {
			t.Errorf("the pause holds after its time, resumed %d times", resumed)
		}
		table.Add("task:12", statements.ChangeCancel, "3", time.Now(), time.Time{})
		after(2 * time.Second)
		if !maps.Equal(cancelled, map[int64]int64{12: 3}) {
			t.Errorf("cancelled are %v", cancelled)
		}
		// Pauses that the database does not know any more end, and errors change nothing.
		table.Add("kind:charge", statements.ChangePause, "", time.Now(), time.Time{})
		after(2 * time.Second)
		table.Lock()
		table.Err, table.List = errors.New("down"), nil
		table.Unlock()
		after(2 * time.Minute)
		if !r.Paused("default", at) {
			t.Error("a database that does not answer has ended a pause")
		}
		table.Lock()
		table.Err = nil
		table.Unlock()
		after(2 * time.Minute)
		if r.Paused("default", at) {
			t.Error("a pause that the database has lost goes on")
		}
		cancel()
		synctest.Wait()
	})
}

// TestChangesAreReadSeldomWhileReadsFail: a pause ends by itself while changes cannot be read. Reads are
// tried about once a second, or more seldom.
func TestChangesAreReadSeldomWhileReadsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &controltest.Table{}
		r := readerOf(table, controltest.Effects{}, slog.New(slog.DiscardHandler))
		table.Add("kind:charge", statements.ChangePause, "", time.Now(), time.Now().Add(10*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		go r.Work(ctx)
		time.Sleep(5 * time.Second)
		table.Lock()
		table.Err = errors.New("down")
		table.Unlock()
		time.Sleep(6 * time.Second)
		before := table.Count()
		time.Sleep(10 * time.Second)
		if n := table.Count() - before; n > 20 {
			t.Errorf("%d reads in ten seconds", n)
		}
		cancel()
		synctest.Wait()
	})
}
