package main

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/periodic"
)

func TestSchedules(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		if got := s.run("schedules"); got != "there are no schedules\n" {
			t.Errorf("without any, schedules prints %q", got)
		}
		q, err := falldue.New(s.db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[string]("report", falldue.KindConfig{})
		scheduler, err := periodic.New(q,
			periodic.Schedule{Name: "daily", Spec: "30 2 * * *", Zone: "Europe/Berlin", Task: kind.Params("d")},
			periodic.Schedule{Name: "often", Spec: "@every 90m", NoOverlap: true, Missed: periodic.None, Task: kind.Params("o")},
			periodic.Schedule{Name: "yearly", Spec: "@yearly", TaskAt: func(tick time.Time) falldue.EnqueueParams { return kind.Params(tick.String()) }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scheduler.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		text := s.run("schedules")
		for _, want := range []string{"daily", "30 2 * * *", "Europe/Berlin", "often", "@every 90m", "UTC", "report", "in 1h", "never"} {
			if !strings.Contains(text, want) {
				t.Errorf("schedules does not print %q:\n%s", want, text)
			}
		}
		if out, err := s.fails(exitUsage, "schedules", "remove", "daily", "yearly"); out != "" || !strings.Contains(err.Error(), "remove schedules: daily, yearly; confirm with --yes") {
			t.Errorf("schedules remove without --yes prints %q, error %v", out, err)
		}
		for _, c := range [][]string{
			{"paused often\n", "pause", "often"},
			{"resumed often\n", "resume", "often"},
			{"paused often\npaused daily\n", "pause", "often", "daily", "--who", "ada", "--why", "no data"},
			{"triggered daily: enqueued 1\n", "trigger", "daily"},
			{`{"name":"often","change":"triggered","id":2}` + "\n", "trigger", "often", "--json"},
			{"triggered yearly\n", "trigger", "yearly"}, // by the program, at its next look
			{"removed daily\nremoved yearly\n", "remove", "daily", "yearly", "--yes"},
		} {
			if got := s.run(append([]string{"schedules"}, c[1:]...)...); got != c[0] {
				t.Errorf("schedules %v prints %q, want %q", c[1:], got, c[0])
			}
		}
		if _, err := runQuietly(t, "schedules", "trigger", "daily", "--dsn", s.dsn); err == nil || exitStatus(err) != exitNotFound || !strings.Contains(err.Error(), `no schedule "daily"`) {
			t.Errorf("a schedule that was removed: status %d, error %v", exitStatus(err), err)
		}
		if text := s.run("schedules"); !strings.Contains(text, "paused by") || !strings.Contains(text, "ada") || !strings.Contains(text, "no data") || !regexp.MustCompile(`paused \S+ ago`).MatchString(text) || !strings.Contains(text, " ago") || strings.Contains(text, "daily") {
			t.Errorf("schedules prints\n%s", text)
		}
		var one struct {
			Name, Spec, Missed  string
			NextAt              time.Time `json:"next_at"`
			LastTask            int64     `json:"last_task"`
			NoOverlap           bool      `json:"no_overlap"`
			Paused, Late, Other bool
			PausedAt            time.Time `json:"paused_at"`
			PausedBy            string    `json:"paused_by"`
			PausedWhy           string    `json:"paused_why"`
		}
		if err := json.Unmarshal([]byte(s.run("schedules", "--json")), &one); err != nil {
			t.Fatal(err)
		}
		if one.Name != "often" || one.Spec != "@every 90m" || one.Missed != "none" || !one.NoOverlap || !one.Paused || one.PausedAt.IsZero() || one.PausedBy != "ada" || one.PausedWhy != "no data" || one.Late || one.LastTask != 2 || one.NextAt.Before(time.Now()) {
			t.Errorf("schedules --json prints %+v", one)
		}
		s.run("schedules", "resume", "often")
		past := "'2026-01-01'"
		if engine == testdb.SQLite {
			past = "1"
		}
		s.db.MustExec("update falldue_schedules set next_at = " + past)
		if text, err := runQuietly(t, "schedules", "--dsn", s.dsn); exitStatus(err) != exitAttention || !strings.Contains(text, "late by ") {
			t.Errorf("a late schedule: status %d\n%s", exitStatus(err), text)
		}
		s.db.MustExec("update falldue_schedules set alone = 7")
		if text, err := runQuietly(t, "schedules", "--dsn", s.dsn); exitStatus(err) != exitAttention || !strings.Contains(text, "often cannot be used: column alone is 7: must be between 0 and 1\n") {
			t.Errorf("a schedule that cannot be used: status %d\n%s", exitStatus(err), text)
		}
		if text, err := runQuietly(t, "schedules", "--json", "--dsn", s.dsn); exitStatus(err) != exitAttention || !strings.Contains(text, `"error":"column alone is 7: must be between 0 and 1"`) {
			t.Errorf("a schedule that cannot be used, as JSON: status %d\n%s", exitStatus(err), text)
		}
	})
}

// runQuietly returns what a command prints, and its error.
func runQuietly(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}
