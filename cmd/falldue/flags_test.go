package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakesNameTheFlag: not the field of the library that has the value.
func TestMistakesNameTheFlag(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	if _, err := execute(t, "migrate", "up", "--dsn", "sqlite:"+file); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string]string{
		`--delay "-5m": must be a duration from 0s to 36500d`:                        "enqueue a --delay -5m",
		`--delay "40000d": must be a duration from 0s to 36500d`:                     "enqueue a --delay 40000d",
		`--delay and --at: set only one`:                                             "enqueue a --delay 5m --at 2026-12-11T14:02:00Z",
		`--at "9999-12-11T14:02:00Z": must be in the years 1970 to 9000`:             "enqueue a --at 9999-12-11T14:02:00Z",
		`--at "x": must be a time such as 2026-12-11T14:02:00Z`:                      "enqueue a --at x",
		`--expire-at 2026-12-31T00:00:00Z: must be after --at 2027-01-01T00:00:00Z`:  "enqueue a --at 2027-01-01T00:00:00Z --expire-at 2026-12-31T00:00:00Z",
		`--timeout "-1s": must be a duration from 0s to 36500d`:                      "enqueue a --timeout -1s",
		`--priority "99999": must be a whole number from -32,768 to 32,767`:          "enqueue a --priority 99999",
		`--max-attempts "-1": must be a whole number from 0 to 2,147,483,647`:        "enqueue a --max-attempts -1",
		`--fence "-1": must be a whole number from 0 to 9,223,372,036,854,775,807`:   "change 1 --fence -1 --priority 1",
		`--now and --at: set only one`:                                               "change 1 --now --at 2027-01-01T00:00:00Z",
		`--now and --fence: set only one`:                                            "change 1 --now --fence 0",
		`--rate and --over: set only one`:                                            "retry --kind a --over 5m --rate 3",
		`--limit "-1": must be a whole number from 0 to 2,147,483,647`:               "cancel --kind a --limit -1",
		`--older-than "-1h": must be a duration from 0s to 36500d`:                   "ls --older-than -1h",
		`--ask-above "-1": must be a whole number from 0 to 9,223,372,036,854,775,8`: "policy set a 1h --ask-above -1",
		`--tasks "0": must be a whole number from 1 to 10,000,000`:                   "bench --tasks 0",
		`--handlers "-1": must be a whole number from 1 to 100,000`:                  "bench --handlers -1",
		`--starts "99999999999": must be a whole number from 1 to 10,000,000`:        "bench --starts 99999999999",
		`--count "-1": must be a whole number from 0 to 2,147,483,647`:               "tail --count -1",
	} {
		_, err := execute(t, append(strings.Fields(args), "--dsn", file)...)
		if err == nil || !strings.HasPrefix(err.Error(), want) || exitStatus(err) != exitUsage {
			t.Errorf("%s: error %v with status %d, want %s…", args, err, exitStatus(err), want)
		}
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
