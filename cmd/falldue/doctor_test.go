package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

func TestDoctorAndExplain(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		if got := s.run("explain"); got != "no task waits in queue default\n" {
			t.Errorf("explain printed %q", got)
		}
		s.run("enqueue", "mail", "--delay", "1h")
		s.serve("mail")
		out, err := execute(t, "doctor", "--dsn", s.dsn)
		contains(t, out, `(?m)^ok +tables +the tables exist and are up to date$`, `(?m)^ok +overdue +no task has been due`)
		if status := exitStatus(err); status != 0 && !strings.Contains(out, "the oldest transaction is") { // of another test
			t.Errorf("status %d of\n%s", status, out)
		}
		s.run("enqueue", "mail", "--queue", "images")
		s.age(time.Hour, "id = 2")
		out, _ = s.fails(exitAttention, "doctor")
		contains(t, out, `(?m)^attention +overdue +1 task of kind mail in queue images overdue, the first since .* UTC\n +→ run more workers`)
		out, _ = s.fails(exitAttention, "doctor", "--json")
		contains(t, out, `(?m)^{"check":"overdue","level":"attention","text":"1 task .*","advice":"run more workers.*"}$`)

		out, _ = execute(t, "explain", "default", "--dsn", s.dsn)
		contains(t, out, `(?m)^sweep:\n(select|with) `, `(?m)^claim:\n(select|with) `, `(?m)^settle_each:\nupdate `, `falldue_tasks`, `(?m)^verdict: the statement reads `, `(?m)^of \d+ statements (none reads|these read) the whole table`)
		out, _ = execute(t, "explain", "--json", "--dsn", s.dsn)
		contains(t, out, `^({"statement":"[a-z_]+","sql":".*","plan":\[".*\],"whole_table":(true|false)}\n)+$`, `(?m)^{"statement":"settle_done",`)
	})
}

func TestDoctorsStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		levels []ops.Level
		want   int
	}{
		{nil, 0}, {[]ops.Level{ops.Fine, ops.Unchecked}, 0}, {[]ops.Level{ops.Attention, ops.Unchecked}, exitAttention}, {[]ops.Level{ops.Broken, ops.Attention}, exitBroken},
	} {
		var findings []ops.Finding
		for _, l := range c.levels {
			findings = append(findings, ops.Finding{Level: l})
		}
		if got := exitStatus(verdict(findings)); got != c.want {
			t.Errorf("%v: status %d, want %d", c.levels, got, c.want)
		}
	}
}

func TestFindingsFitTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := ops.Finding{Check: "overdue", Level: ops.Attention, Text: "3 tasks of kind invoice.send are overdue", Advice: "run workers with a handler of the kind"}
	if err := printFindings(screen{Writer: &out, width: 50}, []ops.Finding{f}); err != nil {
		t.Fatal(err)
	}
	want := `attention  overdue       3 tasks of kind
                         invoice.send are overdue
                         → run workers with a
                           handler of the kind
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
}
