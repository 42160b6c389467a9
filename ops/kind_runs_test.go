package ops_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestDoctorNamesFailingKinds: a kind most of whose attempts failed in five minutes or in the last 30
// seconds, with its most frequent errors and ids of tasks.
func TestDoctorNamesFailingKinds(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		b.fleet(i, falldue.Config{}, handle(falldue.KindConfig{}, succeed, "mail", "charge", "report"))
		if f := b.findings(i)["failures"]; len(f) != 1 || f[0].Level != ops.Fine {
			t.Errorf("%+v", f)
		}
		b.add("charge", 3, 1, time.Minute)
		b.db.MustExec("update falldue_tasks set last_error = 'the bank: 503 Service Unavailable'")
		b.db.MustExec(`update falldue_workers set recent = '{"over":300000000000,"latest_over":30000000000,` +
			`"kinds":{"charge":{"done":900,"failed":100},"mail":{"done":10,"failed":4},"report":{"done":6,"failed":6}},` +
			`"latest":{"charge":{"done":1,"failed":99},"mail":{"failed":4}}}'`)
		f := b.findings(i)["failures"]
		if len(f) != 2 || f[0].Level != ops.Attention || f[1].Level != ops.Attention {
			t.Fatalf("%+v", f)
		}
		want := `kind charge fails: 99 of 100 attempts (99%) failed in the last 30s; "the bank: 503 Service Unavailable" (3 tasks, such as `
		if !strings.HasPrefix(f[0].Text, want) || !strings.Contains(f[0].Advice, "falldue errors --kind charge") {
			t.Errorf("%+v", f[0])
		}
		if f[1].Text != "kind report fails: 6 of 12 attempts (50%) failed in the last 5m" {
			t.Errorf("%+v", f[1])
		}
		failures, err := i.Failures(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		g := failures.Of("charge").Top(5)
		if len(g) != 1 || len(g[0].Examples) != 3 || g[0].Examples[0] != g[0].Newest || len(slices.Compact(slices.Sorted(slices.Values(g[0].Examples)))) != 3 {
			t.Errorf("%+v", g)
		}
		if none := failures.Of("mail"); len(none.Groups) > 0 || none.Tasks != 0 {
			t.Errorf("%+v", none)
		}
	})
}
