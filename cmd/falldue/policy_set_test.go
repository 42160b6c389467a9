package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestPoliciesAreSetAndCleared walks through an incident: what wakes or kills many tasks is
// refused without --yes, and no row of a task is written.
func TestPoliciesAreSetAndCleared(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.failed("mail", 400, 30*time.Minute)
		before := s.run("ls", "--kind", "mail", "--limit", "10000", "--json")

		if got := s.run("policy", "show"); got != "no override is set: the program's policies are in effect\n" {
			t.Errorf("show printed %q", got)
		}
		for _, c := range []struct {
			status int
			says   string
			args   []string
		}{
			{exitUsage, "makes 400 waiting tasks due immediately; confirm with --yes", []string{"set", "mail", "original / 4", "--policy", "mail=1h"}},
			{exitUsage, "leaves 400 waiting tasks with no attempt left, dead when due; confirm with --yes", []string{"set", "mail", "attempts 1", "--policy", "mail=1h"}},
			{exitUsage, "may make 400 waiting tasks under an unknown policy due immediately (set the policy with --policy); confirm with --yes", []string{"slow", "mail", "4x"}},
			{exitUsage, "and leaves 400 of these with no attempt left", []string{"set", "mail", "attempts 1"}},
			{exitUsage, `unknown name "mine"`, []string{"set", "mail", "4 * mine"}},
			{exitUsage, `kind "a b": must be`, []string{"set", "a b", "4 * original"}},
			{exitUsage, `"4": must be a factor above 0 and at most 1,000,000, such as 4x`, []string{"slow", "mail", "4"}},
			{exitUsage, `"0x": must be a factor above 0`, []string{"slow", "mail", "0x"}},
			{exitUsage, `"till 09:00": must be "until" and a time`, []string{"hold", "mail", "till", "09:00"}},
			{exitUsage, `"9 o'clock" is not a time of day such as 09:00`, []string{"hold", "mail", "until", "9 o'clock"}},
			{exitUsage, `over "lunch": must be a duration from 5s to 7d, such as 30m`, []string{"ramp", "mail", "over", "lunch"}},
			{exitUsage, `over "0s": must be a duration from 5s to 7d, such as 30m`, []string{"ramp", "mail", "over", "0s"}},
			{exitUsage, `over "4999ms": must be a duration from 5s to 7d, such as 30m`, []string{"ramp", "mail", "over", "4999ms"}},
			{exitUsage, `over "7d1s": must be a duration from 5s to 7d, such as 30m`, []string{"ramp", "mail", "over", "7d1s"}},
			{exitUsage, `the policy of kind mail is unknown, and the kind has waiting tasks: set it with --policy`, []string{"ramp", "mail", "over", "5s"}},
			{exitUsage, `the policy of kind mail is unknown, and the kind has waiting tasks`, []string{"ramp", "mail", "over", "7d"}},
			{exitUsage, `the policy of kind mail is unknown, and the kind has waiting tasks`, []string{"ramp", "mail", "over", "30m"}},
			{exitNotFound, `no override is set for kind:mail`, []string{"clear", "mail", "--yes"}},
		} {
			out, err := s.fails(c.status, append([]string{"policy"}, c.args...)...)
			if out != "" || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v printed %q, error %v, want %q", c.args, out, err, c.says)
			}
			if strings.HasPrefix(c.says, "over ") && err.Error() != c.says {
				t.Errorf("%v: error %v, want only %q", c.args, err, c.says)
			}
		}
		contains(t, s.run("policy", "set", "mail", "original / 4", "--policy", "mail=1h", "--dry-run"), `^would be set for kind:mail: original / 4, until it is cleared\n +400  tasks wait\n +400  become due immediately\ntasks with a per-task policy keep it\n$`)
		contains(t, s.run("policy", "history"), `^set \(UTC\)[^\n]*\n$`)

		contains(t, s.run("policy", "slow", "mail", "4x", "--policy", "mail=1h", "--until", "5h", "--who", "ann", "--why", "the provider is slow"),
			`^set for kind:mail: 4 \* original, until .* UTC\)?\n +400  tasks wait\n +400  become due later\ntasks with a per-task policy keep it\n$`)
		contains(t, s.run("ls", "--policy", "mail=1h", "--limit", "1"), ` in 3h(2\d|30)m`)
		found, _ := execute(t, "doctor", "--policy", "mail=1h", "--dsn", s.dsn)
		contains(t, found, `(?m)^ok +overrides +the policy "4 \* original" has been set for kind:mail since \S+ \S+ UTC by ann$`)
		contains(t, s.run("show", "1", "--policy", "mail=1h"), `(?m)^policy +of the kind: delay 1h; now delay 4 \* 1h by "4 \* original", set for kind:mail until .* UTC\)?$`, `(?m)^ +2  3h(2\d|30)m `)
		contains(t, s.run("forecast", "--policy", "mail=1h", "--for", "5h"), `(?m)^mail .* 400 a minute, in 3h(2\d|30)m`)
		clock := time.Now().Add(4 * time.Hour).Format("15:04") // after the tasks are due
		contains(t, s.run("policy", "hold", "queue:default kind:mail", "until", clock, "--policy", "mail=1h"), `^set for queue:default kind:mail: hold, until .*\d\d:\d\d:00 UTC\)?\n +400  tasks wait\n`, `(?m)^ +400  become due later$`)
		var shown struct {
			Subject, Policy, Who, Why string
			Until                     *time.Time
		}
		lines := strings.Split(s.run("policy", "show", "--json"), "\n")
		if err := json.Unmarshal([]byte(lines[1]), &shown); err != nil || len(lines) != 3 || shown.Subject != "kind:mail" || shown.Policy != "4 * original" || shown.Who != "ann" || shown.Until == nil {
			t.Errorf("show --json printed %q", lines)
		}
		contains(t, s.run("ls", "--policy", "mail=1h", "--limit", "1"), ` in \d+[hm]`)            // when the hold ends
		s.run("policy", "hold", "queue:default kind:mail", "until", "20h", "--policy", "mail=1h") // after what is set for the kind
		contains(t, s.run("policy", "clear", "queue:default kind:mail", "--policy", "mail=1h"), `^cleared for queue:default kind:mail\n +400  tasks wait\n +400  become due sooner\n$`)
		contains(t, s.run("policy", "show"), `(?m)^\S+ \S+  kind:mail  4 \* original +\S+ \S+  ann  the provider is slow  0 of 0$`)
		contains(t, s.run("policy", "history", "queue:default kind:mail"), `(?m)^\S+ \S+  queue:default kind:mail  hold `, `(?m)^\S+ \S+  queue:default kind:mail  cleared `)
		contains(t, s.run("policy", "ramp", "mail", "over", "10m", "--policy", "mail=10m", "--yes"), `^set for kind:mail: original \+ \d+s, and 9 more steps until original after 9m, until `, `(?m)^ +\d+  become due together, in the busiest of the 10 steps$`, `(?m)^ +\d+  become due sooner, spread over the steps$`)

		s.run("policy", "slow", "mail", "4x", "--policy", "mail=10m")
		out, err := s.fails(exitUsage, "policy", "clear", "mail", "--policy", "mail=10m")
		if out != "" || err == nil || !strings.Contains(err.Error(), "this makes 400 waiting tasks due immediately; confirm with --yes") {
			t.Errorf("clear printed %q, error %v", out, err)
		}
		contains(t, s.run("policy", "clear", "mail", "--policy", "mail=10m", "--dry-run"), `^would be cleared for kind:mail\n +400  tasks wait\n +400  become due immediately\n$`)
		contains(t, s.run("policy", "clear", "mail", "--policy", "mail=10m", "--ask-above", "400"), `^cleared for kind:mail\n`)
		out, err = s.fails(exitUsage, "policy", "set", "mial", "1h")
		if out != "" || err == nil || !strings.Contains(err.Error(), "no task of kind mial waits, and no live worker handles it; confirm with --yes") {
			t.Errorf("a kind that nobody knows: %q, error %v", out, err)
		}
		out, err = s.fails(exitUsage, "policy", "set", "queue:defalt", "1h")
		if out != "" || err == nil || !strings.Contains(err.Error(), "no task is in queue defalt, and no live worker runs the queue; confirm with --yes") {
			t.Errorf("a queue that nobody knows: %q, error %v", out, err)
		}

		s.run("policy", "set", "mial", "1h", "--yes")
		found, _ = execute(t, "doctor", "--dsn", s.dsn)
		contains(t, found, `(?m)^attention +overrides +the policy "1h" is set for kind:mial, and no live worker handles the kind$`)
		s.run("policy", "clear", "mial")
		contains(t, s.run("policy", "set", "mial", "1h", "--dry-run"), `\nno task of kind mial waits, and no live worker handles it\n$`)

		contains(t, s.run("policy", "set", "key:customer:7", "attempts 50", "--yes"), `^set for key:customer:7: attempts 50, until it is cleared\n +0  tasks wait\ntasks with a per-task policy keep it\n$`)
		contains(t, s.run("policy", "set", "mail", "2 * original", "--include-own", "--policy", "mail=10m", "--dry-run"), `\ntasks with a per-task policy follow the override, too\n$`)
		contains(t, s.run("policy", "set", "policy:0123456789abcdef", "2 * original", "--dry-run"), `\ntasks with that per-task policy follow the override\n$`)
		contains(t, s.run("policy", "set", "mail", "2 * original", "--policy", "mail=10m", "--dry-run", "--json"), `"own_follow":false`)
		for want, args := range map[string][]string{
			`--until: "2020-01-01T00:00:00Z" is in the past: must be after 20`: {"set", "mail", "2 * original", "--until", "2020-01-01T00:00:00Z"},
			`until: "2020-01-01T00:00:00Z" is in the past: must be after 20`:   {"hold", "mail", "until", "2020-01-01T00:00:00Z"},
			`--until: "-2h" is not a time of day such as 09:00`:                {"slow", "mail", "4x", "--until", "-2h"},
		} {
			if out, err := s.fails(exitUsage, append(append([]string{"policy"}, args...), "--policy", "mail=10m", "--yes")...); out != "" || err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v printed %q, error %v, want %q", args, out, err, want)
			}
		}
		contains(t, s.run("policy", "hold", "mail", "until", "2d", "--policy", "mail=10m", "--dry-run"), `(?m)^ +400  become due when the override ends at `)
		contains(t, s.run("show", "1", "--policy", "mail=10m"), `(?m)^policy +of the kind: delay 10m$`)
		s.run("policy", "hold", "mail", "until", "2d", "--policy", "mail=10m")
		contains(t, s.run("show", "1", "--policy", "mail=10m"), `(?m)^policy +of the kind: delay 10m; now on hold, set for kind:mail until .* UTC\)?$`)
		s.run("policy", "clear", "mail", "--policy", "mail=10m", "--yes")
		if after := s.run("ls", "--kind", "mail", "--limit", "10000", "--json"); withoutNow(after) != withoutNow(before) {
			t.Error("rows of tasks have been written")
		}
	})
}

var nowField = regexp.MustCompile(`"now":"[^"]*"`)

func withoutNow(lines string) string {
	return nowField.ReplaceAllString(lines, "")
}

// TestDiffAppliesARamp: its steps are set, and the last one is the new policy.
func TestDiffAppliesARamp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		for i := range 30 {
			s.failed("invoice", 20, time.Duration(2*i+1)*time.Minute)
		}
		out, err := s.fails(exitUsage, "policy", "diff", "invoice", "12m", "--from", "2h", "--ramp", "40", "--apply")
		if err == nil || !strings.Contains(err.Error(), "confirm with --yes") || !strings.Contains(out, "steps") {
			t.Errorf("printed %q, error %v", out, err)
		}
		if _, err := s.fails(exitUsage, "policy", "diff", "invoice", "12m", "--from", "2h", "--apply"); err == nil || !strings.Contains(err.Error(), "--apply needs --ramp") {
			t.Errorf("error %v", err)
		}
		for says, args := range map[string][]string{
			"--ramp takes one policy, and 2 are given": {"12m", "13m", "--ramp", "40"}, "--until and --dry-run need --apply": {"12m", "--until", "2h"},
		} {
			if _, err := s.fails(exitUsage, append([]string{"policy", "diff", "invoice", "--from", "2h"}, args...)...); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v: error %v", args, err)
			}
		}
		out, _ = s.fails(exitAttention, "policy", "diff", "invoice", "12m", "--from", "2h", "--ramp", "10")
		contains(t, out, `(?m)^warning: \d+ tasks fall due in a minute after \S+, more than 10: as many fall due without a ramp, under the policy in effect at that time; --ramp 10 is lower$`)
		out = s.run("policy", "diff", "invoice", "12m", "--from", "2h", "--ramp", "40", "--apply", "--yes", "--why", "a new provider")
		contains(t, out, `(?m)^set for kind:invoice: delay 0\.\d+ \* 2h \+ .*, and 1\d more steps until delay 12m; jitter 0; attempts 0; elapsed 0s; start 0s after \d+m, until it is cleared\n +600  tasks wait\n`)
		q, err := falldue.New(s.db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := ops.New(q).Overrides(t.Context())
		if err != nil || len(list) != 1 || len(list[0].Steps) < 10 || list[0].Why != "a new provider" {
			t.Fatalf("the overrides are %+v (error %v)", list, err)
		}
		if last := list[0].Steps[len(list[0].Steps)-1]; last.Formula.String() != "delay 12m; jitter 0; attempts 0; elapsed 0s; start 0s" || last.After < 5*time.Minute {
			t.Errorf("the last step is %+v", last)
		}
	})
}

// TestDiffOfWhatIsHeld: a hold is what holds. Its end is not mistaken for the code's policy, a
// ramp counts what it holds back, and the override that is replaced is named.
func TestDiffOfWhatIsHeld(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		for i := range 30 {
			s.failed("invoice", 20, time.Duration(2*i+1)*time.Minute)
		}
		s.run("policy", "hold", "invoice", "until", "6h", "--policy", "invoice=10m", "--who", "ann")
		diff := func(args ...string) []string {
			return append([]string{"policy", "diff", "invoice", "12m", "--from", "10m"}, args...)
		}
		held := `the hold, which is set for kind:invoice until .* UTC\)? by ann`
		out := s.run(diff()...)
		contains(t, out, `(?m)^ +480  would be due immediately$`, `(?m)^ +120  would be due sooner$`, `(?m)^this would replace `+held+`$`,
			`(?m)^before +delay 36500d +0 +600 a minute, in (6h|5h5\dm)$`, `(?m)^after +12m +480 +500 a minute, now$`)
		out = s.run("policy", "diff", "invoice", "12m", "1m * n", "1h", "--from", "10m")
		contains(t, out, `(?m)^before +delay 36500d +0 +600 a minute, in (6h|5h5\dm)$`, `(?m)^after +12m +480 +480 +120 +0 +0 +500 a minute, now$`, `(?m)^after +1m \* n +(580|600) `, `(?m)^after +1h +0 +0 +600 +0 +0 `)
		var lines []string
		for line := range strings.Lines(s.run("policy", "diff", "invoice", "12m", "1h", "--from", "10m", "--json")) {
			lines = append(lines, line)
		}
		if len(lines) != 2 || !strings.Contains(lines[1], `"to":"1h"`) || !strings.Contains(lines[1], `"replaces":{"subject":"kind:invoice","policy":"36500d; elapsed 0s"`) {
			t.Errorf("two policies as JSON: %q", lines)
		}

		out, err := s.fails(exitUsage, diff("--ramp", "50", "--apply")...)
		contains(t, out, `(?m)^1\d steps`)
		if err == nil {
			t.Fatal("nobody was asked")
		}
		contains(t, err.Error(), `^this changes the policy of invoice in 1\d steps, and replaces `+held+`; confirm with --yes$`)
		_, err = s.fails(exitUsage, diff("--ramp", "50", "--apply", "--ask-above", "10")...)
		if err == nil {
			t.Fatal("nobody was asked")
		}
		contains(t, err.Error(), `by ann, and makes [2-5]\d waiting tasks due together, in the busiest of \d+ steps; confirm with --yes$`)
		contains(t, s.run(diff("--ramp", "50", "--apply", "--dry-run")...), `(?m)^would be set for kind:invoice: `)
		contains(t, s.run("policy", "show"), `(?m)^\S+ \S+  kind:invoice  hold `)

		began := time.Now()
		out = s.run(diff("--ramp", "50", "--apply", "--yes", "--until", "3h", "--why", "slowly", "--json")...)
		contains(t, out, `^{"kind":"invoice","from":"delay 36500d",.*\n{"subject":"kind:invoice","policy":"delay \d\.\d+e-\d+ \* 36500d .*"until":".*"why":"slowly","tasks":600,.*\n$`)
		q, err := falldue.New(s.db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := ops.New(q).Overrides(t.Context())
		if err != nil || len(list) != 1 || len(list[0].Steps) < 10 || list[0].Until.Before(began.Add(3*time.Hour-time.Minute)) || time.Until(list[0].Until) > 3*time.Hour+time.Minute {
			t.Fatalf("the overrides are %+v (error %v)", list, err)
		}
		page, err := ops.New(q).Tasks(t.Context(), ops.Filter{}, ops.ListOptions{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		code, err := backoff.Parse("10m")
		if err != nil {
			t.Fatal(err)
		}
		due := 0
		for _, task := range page.Tasks {
			if !task.Due(list[0].Steps[0].Formula.Of(code)).After(task.Now) {
				due++
			}
		}
		if due > 50 {
			t.Errorf("%d tasks are due when the ramp begins, want at most 50", due)
		}
	})
}
