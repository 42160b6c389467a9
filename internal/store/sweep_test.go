package store

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/othersql"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
)

// TestSlowSweepsRefreshStatistics: MariaDB has opened the table while it was empty, and reads
// every index entry of the table until it opens the table again.
func TestSlowSweepsRefreshStatistics(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.MariaDB)
	s := migrated(t, db)
	if _, _, err := s.Sweep(t.Context(), []Place{FirstPlace("default")}, 1000); err != nil { // which opens the table
		t.Fatal(err)
	}
	db.MustExec(`insert into falldue_tasks (queue, kind, attempts, updated_at, created_at, payload)
		select 'default', concat('k', seq % 8), seq % 25, utc_timestamp(6), utc_timestamp(6), '{}' from seq_1_to_100000`)
	stmt, place := statements.Sweep(s.server, s.tables, 1), FirstPlace("default")
	row := statements.PlaceColumns(s.server).Row(&place)
	ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
	defer cancel()
	w := s.NewLaneFinder()
	for {
		var plan struct {
			Extra string `db:"Extra"`
		}
		if err := db.Unsafe().GetContext(ctx, &plan, "explain "+stmt.SQL, stmt.Bind(statements.Values{"page": 1000}, []statements.Row{row})...); err != nil {
			t.Fatalf("the last plan was %q: %v", plan.Extra, err)
		}
		if strings.Contains(plan.Extra, "group-by") {
			return
		}
		s.refreshed = time.Time{}
		if _, err := w.FindAll(ctx, "default"); err != nil || !w.strategies["default"].oneStatement {
			t.Fatalf("the last plan was %q; after a refresh, the next sweep is one statement: %v (error %v)", plan.Extra, w.strategies["default"].oneStatement, err)
		}
	}
}

// TestSweepStrategyPicksFasterWay: few lanes are always found by steps. For more lanes
// the other way is tried, and the faster one is used until it is time to try again.
func TestSweepStrategyPicksFasterWay(t *testing.T) {
	t.Parallel()
	var g sweepStrategy
	now := time.Now()
	for i, c := range []struct {
		after, took time.Duration
		lanes       int
		whole       bool // the next sweep is one statement
	}{
		{0, time.Second, fewLanes, false},
		{0, 50 * time.Millisecond, 20, true},                 // many lanes: the other way is tried,
		{0, 20 * time.Millisecond, 20, true},                 // it is faster, and stays,
		{30 * time.Second, 90 * time.Millisecond, 200, true}, // though it is slow:
		{30 * time.Second, 90 * time.Millisecond, 200, true}, // steps to so many lanes would be slow too;
		{time.Minute, 30 * time.Millisecond, 20, true},       // one slow sweep after a quick one changes nothing,
		{0, 5 * time.Millisecond, 20, true},
		{0, 30 * time.Millisecond, 20, true},
		{0, 30 * time.Millisecond, 20, false}, // and after the second in a row it is time to try steps again;
		{0, 40 * time.Millisecond, 20, true},  // they are slower, and one statement stays,
		{time.Second, 70 * time.Millisecond, 20, true},
		{time.Second, 90 * time.Millisecond, 20, false}, // until it is much slower
		{0, 10 * time.Millisecond, 20, false},           // than steps were;
		{59 * time.Second, 170 * time.Millisecond, 20, false},
		{2 * time.Second, 20 * time.Millisecond, fewLanes, false},
		{0, 20 * time.Millisecond, 20, true},          // it is time to try one statement,
		{0, 3 * time.Second, 20, false},               // which takes longer,
		{2 * time.Minute, 2 * time.Second, 20, false}, // and is not tried again for a hundred times that
		{4 * time.Minute, 2 * time.Second, 20, true},
		{0, time.Millisecond, 20, true},
		{4 * time.Minute, 11 * slowSweep, 20, false}, // a very slow one suffices
	} {
		now = now.Add(c.after)
		if g.record(c.took, c.lanes, now); g.oneStatement != c.whole {
			t.Fatalf("after sweep %d, of %v, the next is one statement: %v, want %v", i+1, c.took, g.oneStatement, c.whole)
		}
	}
}

// TestStepsFindWhatASweepFinds compares the two ways on every engine that has both.
func TestStepsFindWhatASweepFinds(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		if !s.server.Caps.LooseScan {
			t.Skip("its sweeps are always by one statement")
		}
		var entries []Entry
		for i := range 9 {
			entries = append(entries, Entry{Queue: "default", Kind: string(rune('a' + i%3)), Priority: i % 2, Delay: time.Hour.Microseconds(), Payload: "{}"})
		}
		for i := range fewLanes {
			entries = append(entries, Entry{Queue: "few", Kind: string(rune('a' + i)), Payload: "{}"})
		}
		if _, err := s.Enqueue(t.Context(), nil, entries); err != nil {
			t.Fatal(err)
		}
		jumped, _, err := s.Sweep(t.Context(), []Place{FirstPlace("default")}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		stepped, rest, err := s.sweepBySteps(t.Context(), FirstPlace("default"), 1000)
		if err != nil || rest != nil {
			t.Fatalf("there are more lanes than the greatest number: %v (error %v)", rest, err)
		}
		if len(jumped) != 6 || len(stepped) != 6 {
			t.Fatalf("found %d lanes by one statement and %d by steps, want 6", len(jumped), len(stepped))
		}
		for _, c := range []struct {
			queue string
			lanes int
			want  []string // the statements of the first sweep
		}{{"other", 0, []string{"next lane"}}, {"few", fewLanes, []string{"next lane"}}, {"default", 6, []string{"next lane", "sweep"}}} {
			clear(s.made)
			if _, err := s.NewLaneFinder().FindAll(t.Context(), c.queue); err != nil {
				t.Fatal(err)
			}
			var made []string
			for key := range s.made {
				made = append(made, key.name)
			}
			if slices.Sort(made); !slices.Equal(made, c.want) {
				t.Errorf("the first sweep of %d lanes was by %q, want %q", c.lanes, made, c.want)
			}
		}
		for i, h := range stepped {
			if h.Lane != jumped[i].Lane || h.Anchor != jumped[i].Anchor || h.Now < jumped[i].Now {
				t.Errorf("lane %d is %+v by steps, and %+v by one statement", i, h, jumped[i])
			}
		}
	})
}

// TestRechecksTakeOneStatement: one statement finds the first tasks of all lanes of a recheck, each from the anchor on
// from which the lane is searched, also on servers without lateral joins.
func TestRechecksTakeOneStatement(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, s *Store) {
		sources := keyed(t, s, MaxRechecked, 1, Limit{Form: Sequence, Most: 1})
		all, err := s.NewLaneFinder().FindAll(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		want := map[Lane]int64{}
		for _, h := range all {
			want[h.Lane] = h.Anchor
		}
		if len(want) != MaxRechecked {
			t.Fatalf("a sweep finds %d lanes, want %d", len(want), MaxRechecked)
		}
		for i := range sources {
			switch sources[i].Since = want[sources[i].Lane]; i % 4 {
			case 0: // it has no later task
				delete(want, sources[i].Lane)
				sources[i].Since++
			case 1: // it has no task
				delete(want, sources[i].Lane)
				sources[i].Attempts = 7
			}
		}
		n := 0
		heads, err := reading(t.Context(), s, func(x runner) ([]Head, error) { return s.firstTasks(t.Context(), counting{x, &n}, "default", sources) })
		if err != nil || n != 1 {
			t.Fatalf("a recheck of %d lanes takes %d statements, want 1 (error %v)", len(sources), n, err)
		}
		for _, h := range heads {
			if h.Corrupt != nil || h.Anchor != want[h.Lane] || h.Now < h.Anchor {
				t.Errorf("found %+v, want the anchor %d", h, want[h.Lane])
			}
			delete(want, h.Lane)
		}
		for at := range want {
			t.Errorf("found no task in %+v", at)
		}
		for _, part := range [][]Source{nil, sources[2:5]} { // a statement for fewer lanes than a power of two
			if heads, err := s.Recheck(t.Context(), "default", part); err != nil || len(heads) != min(len(part), 2) {
				t.Errorf("a recheck of %d lanes finds %+v (error %v)", len(part), heads, err)
			}
		}
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		check(t, stores(t, engine, 1)[0])
		if engine != testdb.Postgres {
			return
		}
		s := stores(t, engine, 1)[0]
		server, err := othersql.Probe(t.Context(), s.db, "lateral")
		if err != nil {
			t.Fatal(err)
		}
		check(t, New(s.db, server, Options{Tables: s.tables}))
	})
}
