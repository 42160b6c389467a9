package main

import (
	"strings"
	"testing"

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
		contains(t, s.run("pause", "charge", "--until", "2h", "--who", "ann", "--why", "the bank is down"), `^paused kind:charge, until \S+ \S+ UTC\n$`)
		contains(t, s.run("pause", "queue:default key:customer:7"), `^paused queue:default key:customer:7, until it is resumed\n$`)
		contains(t, s.run("pause"), `(?m)^\S+ \S+  kind:charge +\S+ \S+  ann +the bank is down$`, `(?m)^\S+ \S+  queue:default key:customer:7 `)
		contains(t, s.run("pause", "--json"), `^\{"subject":"kind:charge","at":"[^"]+","until":"[^"]+","who":"ann","why":"the bank is down"\}\n`)
		contains(t, s.run("ls"), ` paused `)
		if got := s.run("resume", "charge"); got != "resumed kind:charge\n" {
			t.Errorf("resume prints %q", got)
		}
		contains(t, s.run("ls"), ` due `)
		for _, c := range []struct {
			status int
			says   string
			args   []string
		}{
			{exitNotFound, `kind:charge is not paused; "falldue pause" lists what is`, []string{"resume", "charge"}},
			{exitUsage, "no task of kind chrage waits, and no live worker handles it; confirm with --yes", []string{"pause", "chrage"}},
			{exitUsage, `"noon" is not a time of day such as 09:00`, []string{"pause", "charge", "--until", "noon"}},
			{exitUsage, `kind "a b"; allowed are`, []string{"pause", "a b"}},
		} {
			if out, err := s.fails(c.status, c.args...); out != "" || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v printed %q, error %v, want %q", c.args, out, err, c.says)
			}
		}
	})
}
