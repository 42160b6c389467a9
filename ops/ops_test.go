package ops_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// backlog is a database with tasks.
type backlog struct {
	t     *testing.T
	db    *sqlx.DB
	queue *falldue.Queue
	began time.Time // the test
}

func newBacklog(t *testing.T, engine string) backlog {
	t.Helper()
	return backlogIn(t, testdb.Open(t, engine))
}

// backlogIn returns the backlog of a database without falldue's tables, which it makes.
func backlogIn(t *testing.T, db *sqlx.DB) backlog {
	t.Helper()
	q, err := falldue.New(db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return backlog{t, db, q, time.Now()}
}

// ops returns an Ops that assumes the policies of kinds.
func (b backlog) ops(policies map[string]backoff.Policy) *ops.Ops {
	b.t.Helper()
	o, err := ops.New(b.queue).WithPolicies(policies)
	if err != nil {
		b.t.Fatal(err)
	}
	o.AllowChecks(testdb.Patience)
	return o
}

// add stores n tasks that have failed so many times, the last time so long ago.
func (b backlog) add(kind string, n, attempts int, ago time.Duration, opts ...falldue.EnqueueOptions) {
	b.t.Helper()
	b.addEach(kind, n, attempts, func(int64) string { return fmt.Sprint(ago.Microseconds()) }, opts...)
}

// addEach adds tasks that failed microseconds ago. Those are SQL that may have the column id, of
// which the first is given.
func (b backlog) addEach(kind string, n, attempts int, ago func(first int64) string, opts ...falldue.EnqueueOptions) {
	b.t.Helper()
	receipts, err := falldue.NewKind[json.RawMessage](kind, falldue.KindConfig{}).EnqueueMany(b.t.Context(), b.queue, make([]json.RawMessage, n), opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	server, err := dialect.Probe(b.t.Context(), b.db)
	if err != nil {
		b.t.Fatal(err)
	}
	clock := server.Clock()
	b.db.MustExec(fmt.Sprintf("update falldue_tasks set attempts = %d, fence = %[1]d, updated_at = %s where id between %d and %d",
		attempts, clock.Shift(clock.Now, "-("+ago(receipts[0].ID)+")"), receipts[0].ID, receipts[len(receipts)-1].ID))
}

func TestQueues(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		if list, err := b.ops(nil).Queues(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("an empty table has the queues %+v, error %v", list, err)
		}
		own := parse(t, "delay 30m")
		b.add("mail", 3, 0, -time.Hour)
		b.add("charge", 2, 1, time.Minute)
		b.add("report", 1, 2, time.Minute, falldue.EnqueueOptions{Queue: "slow", Policy: own})
		for name, c := range map[string]struct {
			policies map[string]backoff.Policy
			first    time.Duration
		}{
			"without policies":          {nil, time.Hour},
			"with the policy of a kind": {map[string]backoff.Policy{"charge": parse(t, "10m")}, 9 * time.Minute},
			"with one for all kinds":    {map[string]backoff.Policy{"": parse(t, "10m")}, 9 * time.Minute},
		} {
			list, err := b.ops(c.policies).Queues(t.Context())
			if err != nil || len(list) != 2 {
				t.Fatalf("%s: %+v, error %v", name, list, err)
			}
			for i, want := range []struct {
				name  string
				kinds []string
				lanes int
				first time.Duration
			}{{"default", []string{"charge", "mail"}, 2, c.first}, {"slow", []string{"report"}, 1, 29 * time.Minute}} {
				got := list[i]
				if got.Name != want.name || fmt.Sprint(got.Kinds) != fmt.Sprint(want.kinds) || got.Lanes != want.lanes {
					t.Errorf("%s: queue %+v, want %+v", name, got, want)
				}
				if wait := got.FirstDue.Sub(got.Now); wait > want.first || wait < want.first-time.Minute {
					t.Errorf("%s: the first task of %s is due in %v, want %v", name, got.Name, wait, want.first)
				}
			}
		}
	})
}

// TestPoliciesOfTasks: those of their own come from the table, and one that cannot be read
// keeps the others from nothing.
func TestPoliciesOfTasks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		own := parse(t, "delay 30m")
		b.add("report", 1, 2, 0, falldue.EnqueueOptions{Policy: own})
		b.db.MustExec("insert into falldue_policies (" + column(b.db, "key") + ", policy, created_at) select 'broken', '1s + nonsense', created_at from falldue_policies")
		known, err := b.ops(map[string]backoff.Policy{"mail": parse(t, "1m")}).Policies(t.Context(), own.Key(), "", "broken", "missing", own.Key())
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := known.Of(falldue.TaskInfo{Kind: "report", Policy: own.Key()}); !ok || p.String() != own.String() {
			t.Errorf("the task's own policy is %v, known %v", p, ok)
		}
		if p, ok := known.Of(falldue.TaskInfo{Kind: "mail"}); !ok || p.String() != "delay 1m" {
			t.Errorf("the policy of mail is %v, known %v", p, ok)
		}
		for _, key := range []string{"broken", "missing"} {
			if _, ok := known.Of(falldue.TaskInfo{Kind: "report", Policy: key}); ok || known.Unreadable[key] == nil {
				t.Errorf("policy %s is known %v, with the error %v", key, ok, known.Unreadable[key])
			}
		}
		if _, ok := known.Of(falldue.TaskInfo{Kind: "report"}); ok {
			t.Error("the policy of a kind is known that nobody gave")
		}
		task, err := b.queue.Task(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if wait := known.Due(task).Sub(task.UpdatedAt); wait != 30*time.Minute {
			t.Errorf("the task is due %v after its failure, want 30m", wait)
		}
		task.Policy = ""
		if due := known.Due(task); !due.IsZero() {
			t.Errorf("a task with an unknown policy is due at %v", due)
		}
	})
}

// column quotes the name of a column as the engine of db does.
func column(db *sqlx.DB, name string) string {
	if db.DriverName() == "mysql" {
		return "`" + name + "`"
	}
	return `"` + name + `"`
}

// listed returns the tasks of a page.
func listed(p ops.Page, err error) ([]falldue.TaskInfo, error) { return p.Tasks, err }
