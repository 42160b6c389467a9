package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/internal/testdb"
)

// TestMistakesNameTheFlag: not the field of the library that has the value. The context has ended, so that a command whose
// mistake is not found fails and does not run.
func TestMistakesNameTheFlag(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	if _, err := execute(t, "migrate", "up", "--dsn", "sqlite:"+file); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for want, args := range map[string]string{
		`--delay "-5m": must be a duration from 0s to 36500d`:                          "enqueue a --delay -5m",
		`--delay "40000d": must be a duration from 0s to 36500d`:                       "enqueue a --delay 40000d",
		`--metadata "=b": the name before the = is missing`:                            "enqueue a --metadata =b",
		`--delay and --at: set only one`:                                               "enqueue a --delay 5m --at 2026-12-11T14:02:00Z",
		`--at "9999-12-11T14:02:00Z": must be in the years 1970 to 9000`:               "enqueue a --at 9999-12-11T14:02:00Z",
		`--at "x": must be a time such as 2026-12-11T14:02:00Z`:                        "enqueue a --at x",
		`--expire-at 2026-12-31T00:00:00Z: must be after --at 2027-01-01T00:00:00Z`:    "enqueue a --at 2027-01-01T00:00:00Z --expire-at 2026-12-31T00:00:00Z",
		`--timeout "-1s": must be a duration from 0s to 36500d`:                        "enqueue a --timeout -1s",
		`--priority "99999": must be a whole number from -32,768 to 32,767`:            "enqueue a --priority 99999",
		`--max-attempts "-1": must be a whole number from 0 to 2,147,483,647`:          "enqueue a --max-attempts -1",
		`--fence "-1": must be a whole number from 0 to 9,223,372,036,854,775,807`:     "change 1 --fence -1 --priority 1",
		`--now and --at: set only one`:                                                 "change 1 --now --at 2027-01-01T00:00:00Z",
		`--now and --fence: set only one`:                                              "change 1 --now --fence 0",
		`--rate and --over: set only one`:                                              "retry --kind a --over 5m --rate 3",
		`--limit "-1": must be a whole number from 0 to 2,147,483,647`:                 "cancel --kind a --limit -1",
		`--older-than "-1h": must be a duration from 0s to 36500d`:                     "ls --older-than -1h",
		`--ask-above "-1": must be a whole number from 0 to 9,223,372,036,854,775,8`:   "policy set a 1h --ask-above -1",
		`--tasks "0": must be a whole number from 1 to 10,000,000`:                     "bench --tasks 0",
		`--handlers "-1": must be a whole number from 1 to 100,000`:                    "bench --handlers -1",
		`--starts "99999999999": must be a whole number from 1 to 10,000,000`:          "bench --starts 99999999999",
		`--count "-1": must be a whole number from 0 to 2,147,483,647`:                 "tail --count -1",
		`--state "x": must be blocked, open, snoozed, dead, cancelled or done`:         "ls --state x",
		`--state "open": must be done, dead or cancelled`:                              "retry 1 --state open",
		`--phase "dead": must be blocked, running, due, scheduled`:                     "cancel --kind a --phase dead",
		`--in-place and --rate: set only one`:                                          "retry --kind a --in-place --rate 3",
		`--match "` + strings.Repeat("m", 100) + `": has 70,000 bytes: must have at m`: "ls --match " + strings.Repeat("m", 70_000),
		`--why "` + strings.Repeat("w", 100) + `": has 20,000 bytes: must have at m`:   "pause a --why " + strings.Repeat("w", 20_000),
		`unknown flag --nix; "falldue policy eval --help" lists the flags`:             "policy eval 5m --nix",
		`unknown flag -j; "falldue policy eval --help" lists the flags`:                "policy eval -j",
		`"-1x": must be a factor above 0 and at most 1,000,000, such as 4x`:            "policy slow a -1x",
		`"-5m": must be a duration from 5s to 7d, such as 30m`:                         "policy ramp a over -5m",
		`"-5m": must be a time of day such as 09:00, a duration from now`:              "policy hold a until -5m",
		`"-5m": begins with a minus sign: write -- before a FORMULA that does`:         "policy set a -5m",
		`"-n": begins with a minus sign: write -- before a FORMULA that does`:          "simulate -n",
		`"-1": must be the ID of a task, a whole number above 0`:                       "cancel -1",
	} {
		_, err := executeIn(ended, t, append(strings.Fields(args), "--dsn", file)...)
		if err == nil || !strings.HasPrefix(err.Error(), want) || exitStatus(err) != exitUsage {
			t.Errorf("%s: error %v with status %d, want %s…", args, err, exitStatus(err), want)
		}
	}
}

// TestErrorsOfTheLibraryNameTheFlag: and no field, setting or package of Go.
func TestErrorsOfTheLibraryNameTheFlag(t *testing.T) {
	t.Parallel()
	s := openOn(t, testdb.DSN(t, testdb.SQLite))
	s.failed("mail", 1, time.Minute)
	for want, args := range map[string]string{
		`--from 8000-01-01 00:00:00 +0000 UTC: must not be before 1970, nor more than 36,500 days in the future`: "retry --kind mail --from 8000-01-01T00:00:00Z --rate 1",
		`payload: 1048578 bytes: must be at most 1048576`:                                                        `change 1 --payload "` + strings.Repeat("x", 1<<20) + `"`,
		`enqueue "mail": queue "a/b%": must be 1 to 100 of`:                                                      "enqueue mail --queue a/b%",
		`--until: "9200-01-01T00:00:00Z": must be before the year 9100`:                                          "pause mail --until 9200-01-01T00:00:00Z",
		`until: "9200-01-01T00:00:00Z": must be before the year`:                                                 "policy hold mail until 9200-01-01T00:00:00Z",
	} {
		_, err := s.fails(exitUsage, strings.Fields(args)...)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.80s: error %v, want %s…", args, err, want)
		}
	}
}

// TestQuestionsComeAfterChecks: a command asks nothing if a mistake keeps it from acting.
func TestQuestionsComeAfterChecks(t *testing.T) {
	t.Parallel()
	s := openOn(t, testdb.DSN(t, testdb.SQLite))
	s.run("enqueue", "mail")
	s.run("enqueue", "mail")
	s.run("cancel", "2", "--yes")
	for _, c := range []struct {
		status     int
		args, want string
	}{
		{exitNotFound, "schedules remove nix", `no schedule "nix"; "falldue schedules" lists the schedules`},
		{exitNotFound, "cancel 99 98", "no such task: 99; done tasks"},
		{exitNotFound, "delete 99", "no such task: 99; done tasks"},
		{exitNotFound, "cancel 2", "wrong state: task 2 is cancelled; expected blocked, open or snoozed"},
		{exitUsage, "cancel 2 1", "cancel tasks: 2, 1; confirm with --yes"},
		{exitUsage, "delete 2", "delete tasks: 2; confirm with --yes"},
		{exitUsage, "policy set nix 5m --until yesterday", `--until: "yesterday" is not a time of day`},
		{exitUsage, "migrate down --schema nix", `schema "nix": must be empty: only PostgreSQL supports it, not sqlite`},
		{exitUsage, "bench --driver nix", `unknown driver "nix"`},
	} {
		_, err := s.fails(c.status, strings.Fields(c.args)...)
		if err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "falldue: "), c.want) {
			t.Errorf("%s: error %v, want %s…", c.args, err, c.want)
		}
	}
	if got := s.run("cancel", "--kind", "nix"); got != "cancelled 0 tasks\n" {
		t.Errorf("cancel of no task prints %q", got)
	}
}

// TestPolicyShowOfAKind: the argument is the key of a per-task policy, and a kind is none.
func TestPolicyShowOfAKind(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	if _, err := execute(t, "migrate", "up", "--dsn", "sqlite:"+file); err != nil {
		t.Fatal(err)
	}
	_, err := execute(t, "policy", "show", "mail", "--dsn", file)
	if exitStatus(err) != exitNotFound || !strings.HasPrefix(err.Error(), `no per-task policy has the key "mail"; "falldue policy list --own" lists the keys`) {
		t.Errorf("error %v", err)
	}
}

// TestShortenedKeysDiffer: two keys that have the same beginning.
func TestShortenedKeysDiffer(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"customer:4711/invoice:0001": "customer…ce:0001",
		"customer:4711/invoice:0002": "customer…ce:0002",
		"customer:4711/☃☃☃☃界界界界":     "customer:…界界界",
		"short":                      "short",
	} {
		if got := shortenName(s, 16); got != want {
			t.Errorf("shortenName(%q) = %q, want %q", s, got, want)
		}
	}
}

// TestHelpShowsOneDefault: where the usage of a flag names its default, help adds no other one.
func TestHelpShowsOneDefault(t *testing.T) {
	t.Parallel()
	var commands func(cmd *cobra.Command) int
	commands = func(cmd *cobra.Command) (n int) {
		for line := range strings.Lines(cmd.UsageString()) {
			if strings.Count(line, "(default") > 1 || strings.Contains(line, "(default 0s)") {
				t.Errorf("%s: %s", cmd.CommandPath(), line)
			}
		}
		for _, sub := range cmd.Commands() {
			n += commands(sub)
		}
		return n + 1
	}
	if n := commands(root()); n < 20 {
		t.Errorf("%d commands were looked at", n)
	}
}
