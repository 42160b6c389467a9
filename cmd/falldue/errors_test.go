package main

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestErrorsAndTopNameFailingKinds: with the most frequent error and a task that has it.
func TestErrorsAndTopNameFailingKinds(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		if got := s.run("errors"); got != "no failed task is waiting for a retry, and no task is dead\n" {
			t.Errorf("errors prints %q", got)
		}
		s.serve("other") // which leaves the failed tasks as they are
		s.failed("charge", 2, time.Minute)
		s.failed("mail", 1, time.Minute)
		s.db.MustExec("update falldue_tasks set last_error = 'no \u202eroute to 10.0.0.7' where kind = 'charge'")
		s.db.MustExec("update falldue_tasks set last_error = 'no such user' where kind = 'mail'")
		announce := func() { // the worker itself does so every 15 seconds
			s.db.MustExec(`update falldue_workers set recent = '{"over":300000000000,"kinds":{"charge":{"done":1,"failed":9},"mail":{"done":9,"failed":1}}}'`)
		}
		announce()
		contains(t, s.run("errors"), `^kind charge fails: 9 of 10 attempts \(90%\) failed in the last 5m\n\nkind `, `(?m)^charge +2 +0 +\S+ ago +\d+, \d+ +no .?route to ….….….…$`, `(?m)^mail +1 +0 .* no such user$`)
		if got := s.run("errors", "--kind", "mail", "--limit", "1"); strings.Contains(got, "charge") {
			t.Errorf("errors of kind mail are %q", got)
		}
		contains(t, s.run("errors", "--kind", "mail", "--json"), `^{"queue":"default","kind":"mail","error":"no such user","waiting":1,"dead":0,"first":".*","last":".*","examples":\[\d+\]}\n$`)
		announce()
		contains(t, s.run("top", "--count", "1"), `  charge fails \(90%\)\n$`)
		announce()
		contains(t, s.run("top", "--count", "1", "--json"), `"failed_kinds":\[{"kind":"charge","done":1,"failed":9,"seconds":300,"failing":true,"error":"no .*route to ….….….…","task":\d+},{"kind":"mail",`)
		if _, err := s.fails(exitUsage, "errors", "--limit", "0"); err == nil {
			t.Error("a limit of 0 is accepted")
		}
	})
}

// TestTopShowsFailingKinds: under the workers.
func TestTopShowsFailingKinds(t *testing.T) {
	t.Parallel()
	m := topScreen{frames: 1, screen: screen{width: 80}, pulse: pulse{
		kinds:  []ops.KindRuns{{Kind: "charge", Runs: ops.Runs{Done: 1, Failed: 9}, Over: time.Minute}},
		errors: ops.Failures{Groups: []ops.FailureGroup{{Kind: "charge", Error: "no route", Waiting: 2, Newest: 7}}},
	}}
	contains(t, m.text(), `(?m)^kind +fails +done +failed +in +most often$`, `(?m)^charge +90% +1 +9 +1m +task 7: no route$`)
}
