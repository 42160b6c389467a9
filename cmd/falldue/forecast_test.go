package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// failed stores n tasks of a kind that have failed once, the last time so long ago.
func (s shop) failed(kind string, n int, ago time.Duration) {
	s.t.Helper()
	q, err := falldue.New(s.db, falldue.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := falldue.NewKind[struct{}](kind, falldue.KindConfig{}).EnqueueMany(s.t.Context(), q, make([]struct{}, n)); err != nil {
		s.t.Fatal(err)
	}
	s.age(ago, "attempts = 0 and kind = '"+kind+"'")
	s.db.MustExec("update falldue_tasks set attempts = 1, fence = 1 where attempts = 0 and kind = '" + kind + "'")
}

func TestForecastAndDiff(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.failed("mail", 400, 30*time.Minute)
		s.failed("mail", 100, 2*time.Minute)
		s.failed("charge", 7, time.Minute)
		contains(t, s.run("forecast", "--policy", "mail=1h", "--rate", "0.2", "--for", "90m"),
			`(?m)^kind +due now +in 1m +in 10m +in 1h +in 1h30m +later +unknown +peak$`, `(?m)^charge +0 +0 +0 +0 +0 +0 +7 +–$`,
			`(?m)^mail +0 +0 +0 +500 +500 +0 +0 +400 a minute, in (2[5-9]|30)m`, `unknown: no live worker handles the kind of 7 failed tasks; set its policy`, `tasks that fall due in each 1m`, `at 0.2 tasks a second, no due task is left after 0s`)
		contains(t, s.run("forecast", "--policy", "10m", "--rate", "2", "--for", "1h"), `(?m)^mail +400 `, `at 2 tasks a second, no due task is left after 3m20s, at \S+ \S+ UTC`)
		contains(t, s.run("forecast", "--policy", "10m", "--rate", "0.01"), `at 0.01 tasks a second, no due task is left after 14h|at 0.01 tasks a second, tasks are still due after 1.0d|at 0.01 tasks a second, tasks are still due after 24h`)
		lines := strings.Split(strings.TrimSpace(s.run("forecast", "--policy", "10m", "--rate", "2", "--for", "1h", "--json")), "\n")
		var all struct {
			Kind    string
			Due     int64
			Minutes []int64
			Gone    float64 `json:"gone_seconds"`
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &all); err != nil || len(lines) != 3 || all.Kind != "" || all.Due != 400 || len(all.Minutes) != 60 || all.Gone != 200 {
			t.Errorf("forecast --json: %d lines, the last %+v, error %v", len(lines), all, err)
		}

		picture := filepath.Join(t.TempDir(), "p.svg")
		s.run("policy", "diff", "mail", "50m", "2h", "--from", "1h", "--svg", picture)
		text, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(text), `>mail<`, `>500 tasks of this kind wait\.`, `>now: 1h<`, `>50m<`, `>2h<`, `>now: 1h, 0 due now<`, `>Tasks that fall due per minute<`)
		out := s.run("policy", "diff", "mail", "20m", "--from", "1h", "--ramp", "450")
		contains(t, out, `^500 tasks of mail wait under its policy\n`, `(?m)^ +400  would be due immediately$`, `(?m)^ +100  would be due sooner$`,
			`(?m)^before +1h +0 +400 a minute, in (2[5-9]|30)m`, `(?m)^after +20m +400 +400 a minute, now$`)
	})
}

// TestForecastTakesTheRateOfWorkers: without --rate it is what the live workers have done.
func TestForecastTakesTheRateOfWorkers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.failed("mail", 400, 30*time.Minute)
		s.serve("report")
		if got := s.run("forecast", "--policy", "10m"); strings.Contains(got, "a second") {
			t.Errorf("by workers that have done nothing, it prints\n%s", got)
		}
		s.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info, recent) select 'other', " +
			"seen_at, seen_at, info, '{\"over\":100000000000,\"kinds\":{\"mail\":{\"done\":150},\"report\":{\"done\":50}}}' from falldue_workers")
		contains(t, s.run("forecast", "--policy", "10m"), `(?m)^kind +due now .* done/min +peak\nmail +400 .* 90 `, `(?m)^in the last 1m40s, live workers completed 2 tasks a second\nat 2 tasks a second, no due task is left after 3m20s`)
		contains(t, s.run("forecast", "--policy", "10m", "--json"), `"kind":"mail",.*"rate":1.5,"gone_seconds":266\.\d+\}`, `"rate":2,"gone_seconds":200\}`)
		s.db.MustExec("update falldue_workers set recent = '{\"over\":100000000000,\"kinds\":{\"report\":{\"done\":50}}}' where id = 'other'")
		contains(t, s.run("forecast", "--policy", "10m"), `(?m)^tasks of these kinds are due, and live workers completed none of them: mail$`)
		contains(t, s.run("forecast", "--policy", "10m", "--json"), `"kind":"",.*"rate":0.5\}`)
	})
}

// TestDiffWarnsOfAHerd: tasks that would fall due over hours fall due immediately.
func TestDiffWarnsOfAHerd(t *testing.T) {
	t.Parallel()
	s := openShop(t, testdb.SQLite)
	for ago := range 20 { // farther apart than a minute, since a busy machine takes time between them
		s.failed("mail", 20, time.Duration(ago+1)*150*time.Second)
	}
	out, _ := s.fails(exitAttention, "policy", "diff", "mail", "10s", "--from", "1h")
	contains(t, out, `warning: this causes a retry storm: 400 tasks would fall due in one minute, compared with 2\d in the busiest minute now; --ramp shows steps without one\n$`)
	out, _ = s.fails(exitAttention, "policy", "diff", "mail", "10s", "--from", "1h", "--ramp", "40")
	contains(t, out, `warning: this causes a retry storm: .* busiest minute now\n`, `(?m)^\d+ steps`, `(?m)^ *0s +\d+ +delay 0\.\d+ \* 1h \+ 0\.\d+ \* 10s$`, `delay 10s\n$`)
	out = s.run("policy", "diff", "mail", "2h", "--from", "1h", "--json")
	var d struct {
		Later int64
		Herd  bool
		After struct{ Peak int64 }
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || d.Later != 400 || d.Herd || d.After.Peak < 20 || d.After.Peak > 29 {
		t.Errorf("diff --json: %+v, error %v", d, err)
	}
	for says, args := range map[string][]string{
		`--from: formula "nonsense"`: {"--from", "nonsense"},
		`no live worker handles kind mail; set the kind's current policy with --from`: nil,
		`--ramp "0": must be a whole number from 1 to `:                               {"--from", "1h", "--ramp", "0"},
		`--for "1s": must be a duration from 1m0s to 365d`:                            {"--from", "1h", "--for", "1s"},
	} {
		if _, err := s.fails(exitUsage, append([]string{"policy", "diff", "mail", "1m"}, args...)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: error %v, want %q", args, err, says)
		}
	}
	if _, err := s.fails(exitFailed, "forecast", "--time-limit", "1ns"); err == nil || !strings.Contains(err.Error(), "reading the waiting tasks took longer than 1ns; allow more time with --time-limit") {
		t.Errorf("without time: error %v", err)
	}
}

// TestReadingSaysHowLongItTakes: about as long as it is expected to, and then longer.
func TestReadingSaysHowLongItTakes(t *testing.T) {
	t.Parallel()
	for want, elapsed := range map[string]time.Duration{
		"reading about 1,234,567 waiting tasks, about 5s more":        0,
		"reading about 1,234,567 waiting tasks, about 2s more":        3 * time.Second,
		"reading about 1,234,567 waiting tasks, about 1s more":        4900 * time.Millisecond,
		"reading about 1,234,567 waiting tasks, longer than expected": 5 * time.Second,
	} {
		if got := readingText(1_234_567, 5*time.Second, elapsed); got != want {
			t.Errorf("after %v it says %q, want %q", elapsed, got, want)
		}
	}
}
