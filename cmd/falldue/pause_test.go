package main

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestPauseAndResume: a kind is paused until a time, listed, and resumed once.
func TestPauseAndResume(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.run("enqueue", "charge")
		if got := s.run("pause"); got != "nothing is paused\n" {
			t.Errorf("pause without a subject prints %q", got)
		}
		contains(t, s.run("pause", "charge", "--until", "2h", "--who", "ann", "--why", "the bank is down"), `^paused kind:charge, until .* UTC\)?\n$`)
		contains(t, s.run("pause", "queue:default key:customer:7", "--yes"), `^paused queue:default key:customer:7, until it is resumed\n$`)
		contains(t, s.run("pause"), `(?m)^\S+ \S+  kind:charge +\S+ \S+  ann +the bank is down$`, `(?m)^\S+ \S+  queue:default key:customer:7 `)
		contains(t, s.run("pause", "--json"), `^\{"subject":"kind:charge","at":"[^"]+","until":"[^"]+","who":"ann","why":"the bank is down"\}\n`)
		contains(t, s.run("ls"), ` paused `)
		if got := s.run("resume", "charge"); got != "resumed kind:charge\n           1  tasks are due now\n" {
			t.Errorf("resume prints %q", got)
		}
		contains(t, s.run("ls"), ` due `)
		s.run("enqueue", "mail", "--key", "order:9")
		s.run("cancel", "--kind", "mail", "--yes")
		contains(t, s.run("pause", "key:order:9"), `^paused key:order:9, `)
		for _, c := range []struct {
			status int
			says   string
			args   []string
		}{
			{exitNotFound, `kind:charge is not paused; "falldue pause" lists the pauses`, []string{"resume", "charge"}},
			{exitUsage, "no task of kind chrage waits, and no live worker handles it; confirm with --yes", []string{"pause", "chrage"}},
			{exitUsage, "no task is in queue defalt, and no live worker runs the queue; confirm with --yes", []string{"pause", "queue:defalt"}},
			{exitUsage, "no stored task has the key customer:8; done tasks may have been deleted; confirm with --yes", []string{"pause", "key:customer:8"}},
			{exitUsage, "no stored task of kind charge has the key order:9; done tasks may have been deleted; confirm with --yes", []string{"pause", "kind:charge key:order:9"}},
			{exitUsage, `--until: "2020-01-01T00:00:00Z" is in the past: must be after 20`, []string{"pause", "charge", "--until", "2020-01-01T00:00:00Z"}},
			{exitUsage, `"noon" is not a time of day such as 09:00`, []string{"pause", "charge", "--until", "noon"}},
			{exitUsage, `kind "a b": must be`, []string{"pause", "a b"}},
		} {
			if out, err := s.fails(c.status, c.args...); out != "" || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v printed %q, error %v, want %q", c.args, out, err, c.says)
			}
		}
	})
}

// TestResumeSaysWhatItWakes: it counts what is due, without what another pause holds back or
// waits for its policy, and asks.
func TestResumeSaysWhatItWakes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.failed("mail", 150, time.Hour)
		s.failed("mail", 7, time.Minute)
		s.failed("charge", 3, time.Hour)
		s.run("enqueue", "charge")
		s.run("pause", "queue:default")
		s.run("pause", "charge")
		for args, says := range map[string]string{
			"--policy=mail=30m": "this makes 150 waiting tasks due immediately; confirm with --yes",
			"--policy=x=30m":    "this may make 157 waiting tasks under an unknown policy due immediately (set the policy with --policy); confirm with --yes",
		} {
			if out, err := s.fails(exitUsage, "resume", "queue:default", args); out != "" || !strings.Contains(err.Error(), says) {
				t.Errorf("resume %s printed %q, error %v", args, out, err)
			}
		}
		contains(t, s.run("pause"), `queue:default`)
		want := "resumed queue:default\n         150  tasks are due now\n"
		if got := s.run("resume", "queue:default", "--policy", "mail=30m", "--ask-above", "150"); got != want {
			t.Errorf("resume printed %q, want %q", got, want)
		}
		s.run("pause", "queue:default")
		if got := s.run("resume", "queue:default", "--policy", "mail=30m", "--yes"); got != want {
			t.Errorf("resume printed %q, want %q", got, want)
		}
		if got := s.run("resume", "charge", "--policy", "30m", "--json"); got != `{"subject":"kind:charge","change":"resumed","due":4,"unknown":0}`+"\n" {
			t.Errorf("resume printed %q", got)
		}
	})
}

// TestPauseNamesWhatWorkersCannotObey: with the reason, and a status for monitoring.
func TestPauseNamesWhatWorkersCannotObey(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.serve("mail")
		s.run("pause", "mail")
		contains(t, s.run("pause"), `kind:mail`)
		s.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info, done, failed, running) select 'web-1', started_at, seen_at, " +
			`'{"queues":{"default":{"concurrency":1}},"kinds":{"mail":{"policy":"1h"}},"refused_pauses":{"shard:3":"not known here"}}'` +
			", 0, 0, 0 from falldue_workers")
		out, _ := s.fails(exitAttention, "pause")
		contains(t, out, `(?m)^\S+ \S+  kind:mail `, `(?m)^1 worker cannot apply the pause of shard:3, so its tasks still run there \(web-1\): not known here$`)
		out, _ = s.fails(exitAttention, "pause", "--json")
		if lines := strings.Split(out, "\n"); len(lines) != 3 || lines[1] != `{"refused":"shard:3","workers":["web-1"],"error":"not known here"}` {
			t.Errorf("pause --json printed %q", lines)
		}
		out, _ = s.fails(exitAttention, "workers", "--json")
		contains(t, out, `"refused_pauses":\{"shard:3":"not known here"\}`)
	})
}
