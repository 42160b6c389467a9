package claim

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// head returns the head of a lane whose first task has an anchor that long ago.
func head(kind string, attempts int, ago time.Duration) store.Head {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	lane := store.Lane{State: statements.StateOpen, Kind: kind, Attempts: attempts}
	return store.Head{Head: statements.Head{Lane: lane, Anchor: now - ago.Microseconds(), Now: now}}
}

func TestSweeperRecordsWhatFallsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		corrupt := head("k", -1, time.Hour)
		heads := []store.Head{head("k", 0, 0), head("k", 2, 10*time.Second), head("unknown", 0, 0), corrupt}
		var broken error
		p := newTestPoller(PollerConfig{
			Queue: "default", PollInterval: time.Minute, AscendingIDs: true, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Policies: policiesOf(map[string]*control.CompiledPolicy{"k": control.Compile(backoff.Constant(time.Minute))}),
		}, fakeFinder{find: func() ([]store.Head, error) { return heads, broken }})
		s, start := p.search, time.Now()
		for range 2 {
			if err := p.searchNow(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if due := s.lanes.Due(start, maxSources); len(due) != 2 { // including the corrupt one: the database decides
			t.Errorf("due at once are %v", due)
		}
		if f := s.lanes.Lanes[heads[1].Lane]; f.Due.Sub(start) != 50*time.Second {
			t.Errorf("a task that has waited 10 s of a minute is due in %v", f.Due.Sub(start))
		}
		if n := strings.Count(log.String(), "attempts below 0"); n != 1 {
			t.Errorf("a corrupt lane is reported %d times by two sweeps:\n%s", n, log.String())
		}
		if next := p.nextSearch().Sub(start); next < time.Minute || next > 66*time.Second {
			t.Errorf("the next sweep is in %v, want a minute and up to a tenth", next)
		}
		s.makeDueSoon()
		if next := p.nextSearch().Sub(start); next != 20*time.Millisecond {
			t.Errorf("after a lane was emptied the next sweep is in %v, want 20 ms", next)
		}
		if s.request(); p.nextSearch().Sub(start) != 20*time.Millisecond {
			t.Errorf("a sweep requested after another is due in %v, want 20 ms", p.nextSearch().Sub(start))
		}
		if err := p.searchNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // of synctest's clock
		if s.request(); p.nextSearch().After(time.Now()) {
			t.Error("a sweep requested a second after another is not due at once")
		}
		broken = errors.New("broken")
		if _ = p.searchNow(t.Context()); s.sweep == nil || s.sweep.failures != 1 || len(s.lanes.Lanes) == 0 || !strings.Contains(log.String(), "broken") {
			t.Errorf("a sweep that failed goes on: %+v, %d lanes known; the log:\n%s", s.sweep, len(s.lanes.Lanes), log.String())
		}
	})
}

// TestCostlySweepsGiveWayToLooks: sweeps take at most a twentieth of the time, and all
// searches a tenth. Between sweeps, rechecks find the tasks that come into emptied lanes. A
// sweep soon finds tasks in other lanes.
func TestCostlySweepsGiveWayToLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const sweepTime, lookTime = 200 * time.Millisecond, 5 * time.Millisecond
		sweeps, looks, began := 0, 0, time.Now()
		emptied := head("k", 0, 0)
		var heads []store.Head
		p := newTestPoller(PollerConfig{
			Queue: "default", PollInterval: time.Second, AscendingIDs: true,
			Policies: policiesOf(map[string]*control.CompiledPolicy{"k": control.Compile(backoff.Constant(0))}),
		}, fakeFinder{find: func() ([]store.Head, error) {
			sweeps++
			found := heads // a statement sees what was there when it began
			time.Sleep(sweepTime)
			return found, nil
		}, look: func(sources []store.Source) ([]store.Head, error) {
			looks++
			time.Sleep(lookTime)
			for _, w := range sources {
				if w.Lane == emptied.Lane && w.Since > 0 {
					return []store.Head{emptied}, nil
				}
			}
			return nil, nil
		}})
		s := p.search
		empty := func() {
			due := s.lanes.Due(time.Now(), maxSources)
			took := map[store.Lane]int64{}
			for _, at := range due {
				took[at] = emptied.Anchor
			}
			s.lanes.Emptied(due, took, time.Now())
			s.makeDueSoon()
		}
		s.lanes.Hint(emptied.Lane, time.Now())
		for time.Since(began) < time.Minute {
			empty()
			p.searchWhenDue(t.Context())
			if s.cost == lookTime && len(s.lanes.Due(time.Now(), maxSources)) != 1 {
				t.Fatal("a look did not find the task")
			}
		}
		if share := float64(sweeps) * sweepTime.Seconds() / 60; sweeps < 10 || share > 0.06 {
			t.Errorf("%d sweeps took %.2f of the time", sweeps, share)
		}
		if share := float64(looks) * lookTime.Seconds() / 60; looks < 100 || share > 0.11 {
			t.Errorf("%d looks took %.2f of the time", looks, share)
		}
		late := head("k", 5, time.Hour)
		heads, began = []store.Head{late}, time.Now()
		for !slices.Contains(s.lanes.Due(time.Now(), maxSources), late.Lane) {
			empty()
			p.searchWhenDue(t.Context())
		}
		if took := time.Since(began); took > sweepPauseFactor*sweepTime+time.Second {
			t.Errorf("a task in an unknown lane was found after %v", took)
		}
	})
}

// TestNoSweepIsFarOff: a sweep that had to wait for long does not put off the next one.
func TestNoSweepIsFarOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sweeps []time.Time
		p := newTestPoller(PollerConfig{Queue: "default", PollInterval: time.Second, AscendingIDs: true},
			fakeFinder{find: func() ([]store.Head, error) {
				time.Sleep(3 * time.Second)
				sweeps = append(sweeps, time.Now())
				return nil, nil
			}})
		for len(sweeps) < 2 {
			p.searchWhenDue(t.Context())
		}
		if pause := sweeps[1].Sub(sweeps[0]); pause > 3*time.Second+maxSweepPause+time.Second {
			t.Errorf("the second sweep ended %v after the first", pause)
		}
	})
}

// TestRequestedSearchesTakeTheirShare: searches take a tenth of the time, or more where they stand in for probes.
func TestRequestedSearchesTakeTheirShare(t *testing.T) {
	t.Parallel()
	for ascendingIDs, want := range map[bool]time.Duration{true: 100 * time.Millisecond, false: 40 * time.Millisecond} {
		now := time.Now()
		p := newTestPoller(PollerConfig{AscendingIDs: ascendingIDs}, fakeFinder{})
		s := p.search
		s.last, s.at, s.cost = now, now.Add(time.Hour), 10*time.Millisecond
		s.request()
		if wait := p.nextSearch().Sub(now); wait != want {
			t.Errorf("after a search of 10ms the next one is in %v, want %v (ascending ids: %t)", wait, want, ascendingIDs)
		}
	}
}

// TestASearchIsNotForgottenWhileThePollerIsFull: the poller has no room when the sweeper decides how long to
// sleep, and has room again shortly before its search is due.
func TestASearchIsNotForgottenWhileThePollerIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		finds := 0
		p := newTestPoller(PollerConfig{Queue: "default", PollInterval: time.Second}, fakeFinder{find: func() ([]store.Head, error) {
			finds++
			return nil, nil
		}})
		p.search.at = time.Now().Add(200 * time.Millisecond)
		p.full.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { p.Sweeper.Work(ctx) })
		time.Sleep(100 * time.Millisecond)
		p.full.Store(false)
		p.search.wakeIfDue()
		time.Sleep(150 * time.Millisecond)
		if synctest.Wait(); finds != 1 {
			t.Errorf("%d searches when the first one was due, want 1", finds)
		}
		p.full.Store(true) // and the opposite case: the search falls due while there is no room
		time.Sleep(2 * time.Second)
		if synctest.Wait(); finds != 1 {
			t.Errorf("%d searches while the poller had no room, want 1", finds)
		}
		p.full.Store(false)
		p.search.wakeIfDue()
		if synctest.Wait(); finds != 2 {
			t.Errorf("%d searches when there was room again, want 2", finds)
		}
		cancel()
		working.Wait()
	})
}
