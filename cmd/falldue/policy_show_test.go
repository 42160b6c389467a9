package main

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestPolicyShowNamesWhatWorkersCannotObey: with the reason, and a status for monitoring.
func TestPolicyShowNamesWhatWorkersCannotObey(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.run("policy", "set", "mail", "4 * original", "--yes")
		s.serve("mail")
		s.db.MustExec("insert into falldue_workers (id, started_at, seen_at, info, done, failed, running) select 'web-1', started_at, seen_at, " +
			`'{"queues":{"default":{"concurrency":1}},"kinds":{"mail":{"policy":"1h"}},"refused":[{"subject":"kind:mail","own":"1h","holds":"1h","error":"too large"}]}'` +
			", 0, 0, 0 from falldue_workers")
		out, _ := s.fails(exitAttention, "policy", "show")
		for deadline := time.Now().Add(testdb.Patience); !strings.Contains(out, "  1 of 2\n"); { // until the worker announces it
			if time.Now().After(deadline) {
				t.Fatalf("no worker applies the policy:\n%s", out)
			}
			out, _ = s.fails(exitAttention, "policy", "show")
		}
		contains(t, out, `(?m)^\S+ \S+  kind:mail  4 \* original .*  1 of 2$`, `(?m)^1 worker cannot apply the policy override for kind:mail, so "1h" stays in effect there \(web-1\): too large$`)
		out, _ = s.fails(exitAttention, "policy", "show", "--json")
		contains(t, out, `(?m)^{"subject":"kind:mail",.*"applied_by_workers":1,"live_workers":2}$`)
		if lines := strings.Split(out, "\n"); len(lines) != 3 || lines[1] != `{"refused":"kind:mail","workers":["web-1"],"error":"too large"}` {
			t.Errorf("show --json printed %q", lines)
		}
	})
}
