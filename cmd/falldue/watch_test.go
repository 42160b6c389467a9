package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// lines receives what a command prints.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// begin starts a command on the database. Its lines come from printed, and its error from
// ended.
func (s shop) begin(ctx context.Context, args ...string) (printed lines, ended chan error) {
	printed, ended = make(lines, 1000), make(chan error, 1)
	cmd := root()
	cmd.SetArgs(append(args, "--dsn", s.dsn))
	cmd.SetOut(printed)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	return printed, ended
}

func TestTail(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.TiDB {
			t.Skip("its ids do not ascend")
		}
		s := openShop(t, engine)
		printed, ended := s.begin(t.Context(), "tail", "--kind", "mail", "--interval", "100ms", "--count", "1")
		asJSON, both := s.begin(t.Context(), "tail", "--json", "--interval", "100ms", "--count", "1")
		for len(ended) == 0 || len(both) == 0 { // until they have begun
			s.run("enqueue", "charge")
			s.run("enqueue", "mail", "--key", "customer:7")
		}
		if err := errors.Join(<-ended, <-both); err != nil {
			t.Error(err)
		}
		if got := <-printed; len(printed) > 0 {
			t.Errorf("more than a line: %s", <-printed)
		} else {
			contains(t, got, `^\d\d:\d\d:\d\d  new        \d+  default  mail  customer:7\n$`)
		}
		contains(t, <-asJSON, `^{"at":"[^"]+","what":"new","id":\d+,"queue":"default","kind":"(charge",|mail","key":"customer:7",)"attempts":0}\n$`)

		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		printed, ended = s.begin(ctx, "tail", "--interval", "100ms")
		for len(printed) == 0 {
			s.run("enqueue", "charge")
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: error %v", err)
		}
		if _, err := s.fails(exitUsage, "tail", "--interval", "1ms"); !strings.Contains(err.Error(), "must be 100ms or more") {
			t.Error(err)
		}
	})
}

func TestEventsFitTheTerminal(t *testing.T) {
	t.Parallel()
	e := ops.Event{At: time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC), What: ops.Failed, ID: 7, Queue: "default", Kind: "charge", Attempts: 2, Error: "the bank\nis \x1b[31mclosed"}
	for _, c := range []struct {
		s    screen
		want string
	}{
		{screen{}, "14:02:00  failed     7  default  charge  attempt 2: the bank is \ufffd[31mclosed"},
		{screen{width: 40}, "14:02:00  failed     7  default  charge…"},
		{screen{width: 40, colour: true}, "14:02:00  \x1b[33mfailed   \x1b[0m  7  default  charge…"},
	} {
		if got := c.s.eventLine(e); got != c.want {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}

func TestTopPrintsLines(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.run("enqueue", "mail", "--delay", "10h")
		out := s.run("top", "--count", "2", "--interval", "100ms")
		contains(t, out, `^(\d\d:\d\d:\d\d UTC  0 workers, 0 of 0 handlers busy  – done/s  – failed/s  1 lane  first task in (10h|9h5\d\S*), in default\n){2}$`)
		var got struct {
			Workers, Lanes int
			NextDue        time.Time `json:"next_due"`
		}
		if err := json.Unmarshal([]byte(s.run("top", "--count", "1", "--json")), &got); err != nil || got.Lanes != 1 || got.NextDue.IsZero() {
			t.Errorf("%+v, error %v", got, err)
		}
	})
}

// TestTopGoesOnAfterAnError: the first one ends it, and later ones are shown.
func TestTopGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	m := topScreen{read: func() tea.Msg { return nil }, every: time.Hour, screen: screen{width: 60}}
	down := errors.New("the server is down")
	if end, cmd := m.Update(down); cmd == nil || end.(topScreen).failed == nil {
		t.Errorf("after the first error it is %+v", end)
	}
	update := func(msg tea.Msg) (quits bool) {
		next, cmd := m.Update(msg)
		m = next.(topScreen)
		if _, is := msg.(tea.KeyPressMsg); !is || cmd == nil {
			return false
		}
		_, quits = cmd().(tea.QuitMsg)
		return quits
	}
	began := time.Date(2026, 12, 11, 14, 2, 0, 0, time.UTC)
	worker := ops.Worker{ID: "vm:1/a", Started: began, Seen: began, Now: began, Queues: map[string]ops.WorkerQueue{"default": {Concurrency: 10}}}
	update(pulse{Pulse: ops.Pulse{At: began, Workers: []ops.Worker{worker}, Queues: []ops.Queue{{Name: "default", Kinds: []string{"mail"}, Lanes: 3}}}})
	contains(t, m.text(), `(?m)^default +3 +– +mail$`, `(?m)^vm:1/a +0 of 10 +– +– `)
	update(down)
	contains(t, m.text(), `^cannot read: the server is down\n`, `vm:1/a`)
	update(tea.WindowSizeMsg{Width: 40, Height: 4})
	if got := strings.Split(m.text(), "\n"); len(got) != 4 || got[3] != "…" {
		t.Errorf("on four lines it shows %q", got)
	}
	if !update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}) || exitStatus(failure{m.failed}) != exitInterrupted {
		t.Errorf("Ctrl-C ends it with status %d", exitStatus(failure{m.failed}))
	}
	if update(tea.KeyPressMsg{Code: 'x', Text: "x"}) || !update(tea.KeyPressMsg{Code: 'q', Text: "q"}) {
		t.Error("x ends it, or q does not")
	}
}

// TestBench: the measures, and nothing is left, also after an interruption.
func TestBench(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		left := func() (n int) {
			t.Helper()
			query := "select count(*) from information_schema.tables where table_name like 'falldue_bench%'"
			if engine == testdb.SQLite {
				query = "select count(*) from sqlite_schema where name like 'falldue_bench%'"
			} else if engine != testdb.Postgres {
				query += " and table_schema = database()"
			}
			if err := s.db.Get(&n, query); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if _, err := s.fails(exitUsage, "bench"); !strings.Contains(err.Error(), "confirm with --yes") {
			t.Error(err)
		}
		small := []string{"bench", "--yes", "--tasks", "300", "--handlers", "10", "--starts", "3"}
		contains(t, s.run(small...), `(?m)^enqueue_one +[\d,]+ tasks a second$`, `(?m)^enqueue_many +[\d,]+ tasks a second$`, `(?m)^run +[\d,]+ tasks a second$`, `(?m)^start +\S+ at the median, \S+ for 99 of 100 tasks$`)
		contains(t, s.run(append(small, "--json")...), `(?m)^{"measure":"run","tasks":300,"per_second":[\d.e+]+}$`, `(?m)^{"measure":"start","tasks":3,"median_seconds":[\d.e-]+,"p99_seconds":[\d.e-]+}$`)
		if n := left(); n != 0 {
			t.Errorf("%d tables are left", n)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		printed, ended := s.begin(ctx, "bench", "--yes", "--tasks", "1000000")
		<-printed
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: error %v", err)
		}
		if n := left(); n != 0 {
			t.Errorf("after an interruption %d tables are left", n)
		}
	})
}
