package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// findings returns what Diagnose finds, by the names of the checks.
func (b backlog) findings(i *ops.Ops) map[string][]ops.Finding {
	b.t.Helper()
	list, err := i.Diagnose(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	byCheck := map[string][]ops.Finding{}
	for _, f := range list {
		if (f.Level == ops.Fine) != (f.Advice == "") || f.Text == "" {
			b.t.Errorf("a finding without a text, or whose advice does not fit: %+v", f)
		}
		byCheck[f.Check] = append(byCheck[f.Check], f)
	}
	return byCheck
}

func TestDiagnose(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(map[string]backoff.Policy{"mail": parse(t, "zizq")})
		b.add("mail", 10, 1, time.Second)
		found := b.findings(i)
		for _, name := range []string{"server", "tables", "clock", "policies", "claims", "overdue", "leases", "runs"} {
			if f := found[name]; len(f) != 1 || f[0].Level != ops.Fine {
				t.Errorf("%s: %+v, want one finding that is fine", name, f)
			}
		}
		for name, engines := range map[string][]string{
			"bloat": {testdb.Postgres, testdb.MySQL, testdb.MariaDB}, "log": {testdb.Postgres, testdb.SQLite},
			"dead_rows": {testdb.Postgres, testdb.SQLite}, "history": {testdb.MySQL, testdb.MariaDB}, "transactions": {testdb.Postgres, testdb.MySQL, testdb.MariaDB},
		} {
			want := 0
			if slices.Contains(engines, engine) {
				want = 1
			}
			switch {
			case name == "log" && engine == testdb.Postgres:
				want = 2 // of slots, and of all of it
			case name == "log" && engine != testdb.SQLite:
				want = min(len(found[name]), 1) // if the server has binary logs
			}
			if f := found[name]; len(f) != want || want > 0 && f[0].Level != ops.Fine && name != "transactions" { // of other tests
				t.Errorf("%s: %+v, want %d findings", name, f, want)
			}
		}

		own := parse(t, "delay 1s")
		b.add("report", 3, 0, 2*time.Minute, falldue.EnqueueOptions{Policy: own})
		b.db.MustExec("insert into falldue_policies (" + column(b.db, "key") + ", policy, created_at) select 'broken', '1s + nonsense', created_at from falldue_policies")
		b.add("charge", 2, 1, 2*time.Hour)
		b.db.MustExec("update falldue_tasks set claimed_by = 'gone' where kind = 'charge'")
		found = b.findings(i)
		for name, want := range map[string]struct {
			level ops.Level
			text  string
		}{
			"policies": {ops.Broken, "a per-task policy cannot be read: policy broken: backoff: "},
			"overdue":  {ops.Attention, "3 tasks of kind report in queue default overdue, the first since "},
			"leases":   {ops.Attention, "the leases of 2 tasks ended more than an hour ago, and no worker has claimed them since"},
		} {
			if f := found[name]; len(f) != 1 || f[0].Level != want.level || !strings.HasPrefix(f[0].Text, want.text) {
				t.Errorf("%s: %+v, want level %v, %s", name, f, want.level, want.text)
			}
		}
	})
}

// TestDiagnoseWorkers: what no live worker handles, what two releases know differently, and
// runs that do not end.
func TestDiagnoseWorkers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		started, end := make(chan struct{}), make(chan struct{})
		block := func(context.Context, falldue.Task[json.RawMessage]) error {
			close(started)
			<-end
			return nil
		}
		defer b.start(falldue.Config{Name: "old"}, handle(falldue.KindConfig{Policy: backoff.Constant(time.Hour)}, block, "mail", "charge"))()
		defer close(end)
		b.workers(i, "the worker", announced(1))
		id := b.enqueue("mail")
		<-started
		found := b.findings(i)
		if f := found["workers"]; len(f) != 1 || f[0].Level != ops.Fine || f[0].Text != "1 live worker with 10 handlers, which handle all waiting tasks" {
			t.Errorf("workers: %+v", f)
		}
		if f := found["policies"]; len(f) != 1 || f[0].Level != ops.Fine || !strings.Contains(f[0].Text, "3 policies of kinds") {
			t.Errorf("policies: %+v", f)
		}

		defer b.start(falldue.Config{Name: "new"}, handle(falldue.KindConfig{Policy: backoff.Constant(time.Minute)}, succeed, "charge"))()
		b.workers(i, "both workers", announced(2))
		b.enqueue("charge", falldue.EnqueueOptions{Queue: "images", Delay: time.Hour})
		b.db.MustExec(`insert into falldue_workers (id, started_at, seen_at, info) select 'dead', started_at, seen_at, '{}' from falldue_workers where id like 'old/%'`)
		b.shift("workers", "seen_at", 2*time.Minute, "id = 'dead'")
		b.shift("tasks", "attempted_at", 26*time.Hour, fmt.Sprintf("id = %d", id))
		found = b.findings(i)
		texts := ""
		for _, f := range found["workers"] {
			if f.Level != ops.Attention {
				t.Errorf("workers: %+v", f)
			}
			texts += f.Text + "\n"
		}
		for _, want := range []string{
			"worker dead was last seen 2m", "tasks of kind charge wait in queue images, and no live worker handles them there\n",
			"workers have 2 policies for kind charge: \"delay 1", " (1 worker",
		} {
			if !strings.Contains(texts, want) {
				t.Errorf("workers: lacks %q:\n%s", want, texts)
			}
		}
		if f := found["runs"]; len(f) != 1 || f[0].Level != ops.Attention || !strings.HasPrefix(f[0].Text, fmt.Sprintf("running for more than a day, or with a lease that long: 1 task (%d on old/", id)) {
			t.Errorf("runs: %+v", f)
		}
	})
}

func TestDiagnoseWithoutTables(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := backlog{t, db, q, time.Now()}
		found := b.findings(b.ops(nil))
		if f := found["tables"]; len(f) != 1 || f[0].Level != ops.Broken {
			t.Errorf("tables: %+v", f)
		}
		for name, list := range found {
			for _, f := range list {
				if name != "tables" && f.Level == ops.Unchecked {
					t.Errorf("%s: %+v", name, f)
				}
			}
		}
	})
}
