package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/internal/testdb"
)

// TestQuickstartRunsToItsEnd runs the simulation to its end, with short hours.
func TestQuickstartRunsToItsEnd(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		var out bytes.Buffer
		s, err := quickstart(t.Context(), dsn, 50*time.Millisecond, &out)
		if err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		// 4 orders, a webhook for each that is placed and each that is
		// shipped, and the invoice.
		if s.done != 12 || s.dead != 1 || s.waiting != 0 {
			t.Errorf("%d done, %d dead, %d waiting; want 12, 1, 0", s.done, s.dead, s.waiting)
		}
		if s.orders != 4 || s.shipped != 4 {
			t.Errorf("%d of %d orders shipped, want all 4", s.shipped, s.orders)
		}
		// At least two of the invoice, and one of the webhook that got Retry-After.
		if s.retries < 3 {
			t.Errorf("%d retries, want 3 or more", s.retries)
		}
		if len(s.lateness) == 0 {
			t.Error("the watcher measured no lateness")
		}
		checkDeadTask(t, s)
		for _, want := range []string{
			"The tasks have a web page while the shop is open: http://127.0.0.1:",
			"order.progress   delay 400ms * 2 / pi * atan(n^3 / 15)",
			"jitter 0.2 * delay; attempts 7",
			"attempt 3",
			"12 done, 1 dead, 0 waiting",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the output lacks %q:\n%s", want, &out)
			}
		}
		checkNothingLeft(t, engine, dsn)
	})
}

func checkDeadTask(t *testing.T, s summary) {
	t.Helper()
	if len(s.deadTasks) != 1 {
		t.Fatalf("%d dead tasks with their attempts, want 1", len(s.deadTasks))
	}
	g := s.deadTasks[0]
	const failure = `total of order 1001: strconv.ParseFloat: parsing "19.9O": invalid syntax`
	if g.task.Kind != "invoice.book" || g.task.LastError != failure {
		t.Errorf("the dead task is %s, its last error %q", g.task.Kind, g.task.LastError)
	}
	outcomes := ""
	for _, a := range g.attempts {
		outcomes += string(a.Outcome) + " "
		if a.Error != failure {
			t.Errorf("attempt %d is recorded with %q", a.Attempt, a.Error)
		}
	}
	if outcomes != "retried retried dead " {
		t.Errorf("its attempts ended %s", outcomes)
	}
}

// checkNothingLeft fails if a table of the quickstart still exists.
func checkNothingLeft(t *testing.T, engine, dsn string) {
	t.Helper()
	db, err := sqlx.Open(testdb.Drivers(engine)[0], dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tables := `select table_name from information_schema.tables where table_name like 'quickstart%' and table_schema in (current_schema(), database())`
	switch engine {
	case testdb.SQLite:
		tables = `select name from sqlite_schema where name like 'quickstart%'`
	case testdb.Postgres:
		tables = strings.Replace(tables, ", database()", "", 1)
	default:
		tables = strings.Replace(tables, "current_schema(), ", "", 1)
	}
	var left []string
	if err := db.Select(&left, tables); err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("the tables %v are left", left)
	}
}

// TestQuickstartStopsEarly stops the simulation after the first failed attempt, as Ctrl-C does.
func TestQuickstartStopsEarly(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	out := stopAt{text: ": failed", stop: stop}
	dsn := testdb.DSN(t, testdb.SQLite)
	s, err := quickstart(ctx, dsn, 10*time.Second, &out) // a slow machine stores the orders before any of them is shipped
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if s.waiting < 4 || s.dead != 0 {
		t.Errorf("%d tasks wait, %d are dead; want 4 or more, 0", s.waiting, s.dead)
	}
	checkNothingLeft(t, testdb.SQLite, dsn)
}

// stopAt calls stop when text is written.
type stopAt struct {
	bytes.Buffer
	text string
	stop func()
}

func (s *stopAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.text)) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// TestScreenRedrawsInPlace draws a table twice, the second over the first.
func TestScreenRedrawsInPlace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(&out, time.Second, []rule{{kind: "order.progress"}})
	r := row{late: -1}
	r.Kind, r.State, r.Attempts, r.LastError = "order.progress", "open", 2, "not ready"
	r.due = r.Now.Add(1500 * time.Millisecond)
	s.show([]row{r})
	first := out.String()
	if !strings.Contains(first, "1.50s") || !strings.Contains(first, "not ready") {
		t.Errorf("the table lacks when the task is due, or why it waits: %q", first)
	}
	r.State = "dead"
	s.show([]row{r})
	if second := out.String()[len(first):]; !strings.Contains(second, "\x1b[4A\r") || !strings.Contains(second, "dead") {
		t.Errorf("the second table is not drawn over the four lines of the first: %q", second)
	}
}
