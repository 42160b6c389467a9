package ops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestMonitorsReadLanesInParts: a monitor that reads few lanes a time knows a part of them, says so, knows all after
// some reads, and drops those that have gone. A queue with many lanes hides no other queue.
func TestMonitorsReadLanesInParts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.add("charge", 19, 1, 48*time.Hour)
		b.add("mail", 3, 1, 48*time.Hour, falldue.EnqueueOptions{Queue: "other"})
		key := "concat('key:', id)"
		if engine == testdb.SQLite {
			key = "'key:' || id"
		}
		b.db.MustExec("update falldue_tasks set last_error = 'timeout', task_key = " + key)
		b.db.MustExec("update falldue_tasks set state = 'dead' where kind = 'charge' and id in (select id from (select id from falldue_tasks where kind = 'charge' order by id limit 7) x)")

		m := b.ops(map[string]backoff.Policy{"": backoff.Constant(time.Hour)}).NewSmallMonitor(5, 2)
		read := func() (p ops.Pulse, kinds string) {
			t.Helper()
			p, err := m.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range p.Queues {
				kinds += q.Name + ": " + strings.Join(q.Kinds, " ") + "; "
			}
			return p, kinds
		}
		p, kinds := read()
		if want := "default: charge; other: mail; "; !p.More || p.Lanes() >= 15 || kinds != want {
			t.Errorf("a first read knows more %v, %d lanes, %s", p.More, p.Lanes(), kinds)
		}
		if late, err := m.Overdue(t.Context(), 0); err != nil || len(late) != 2 || !late[0].More || late[0].Tasks >= 12 {
			t.Errorf("after a first read, overdue are %+v, error %v", late, err)
		}
		if f, err := m.Failures(t.Context()); err != nil || !f.More || f.Tasks == 0 || !f.Groups[0].Earlier {
			t.Errorf("after a first read, failures are %+v, error %v", f, err)
		}
		for n := 0; p.More; n++ {
			if p, _ = read(); n > 10 {
				t.Fatal("the monitor never knows all lanes")
			}
		}
		if first, ok := p.First(); p.Lanes() != 15 || !ok || p.At.Sub(first.FirstDue) < time.Hour {
			t.Errorf("the monitor knows %d lanes, and %+v falls due first", p.Lanes(), first)
		}
		late, err := m.Overdue(t.Context(), 0)
		if err != nil || len(late) != 2 || late[0].Tasks != 12 || late[1].Tasks != 3 || late[0].More || !late[0].DueSince.Equal(late[1].DueSince) && late[0].DueSince.IsZero() {
			t.Errorf("overdue are %+v, error %v", late, err)
		}
		f, err := m.Failures(t.Context())
		if err != nil || f.More || f.Tasks != 22 || len(f.Groups) != 2 || f.Groups[0].Waiting != 12 || f.Groups[0].Dead != 7 || f.Groups[0].Earlier {
			t.Errorf("failures are %+v, error %v", f, err)
		}
		b.db.MustExec("delete from falldue_tasks where kind = 'charge' and state = 'open'")
		for n := 0; p.Lanes() != 3; n++ {
			if p, _ = read(); n > 10 {
				t.Fatalf("the monitor knows %d lanes, although tasks have gone", p.Lanes())
			}
		}
	})
}

// TestFailuresBeganWithTheOldest: of a lane with more tasks than are read, the oldest are read too, so that the
// failures are not said to have begun with the newest tasks.
func TestFailuresBeganWithTheOldest(t *testing.T) {
	t.Parallel()
	b := newBacklog(t, testdb.SQLite)
	b.add("webhook", 11_000, 1, time.Minute)
	b.db.MustExec("update falldue_tasks set last_error = 'unavailable'")
	b.add("webhook", 1, 1, 5*time.Hour)
	b.db.MustExec("update falldue_tasks set last_error = 'unavailable' where last_error is null")
	f, err := b.ops(nil).Failures(t.Context())
	if err != nil || !f.More || len(f.Groups) != 1 || f.At.Sub(f.Groups[0].First) < 5*time.Hour || f.Groups[0].Earlier {
		t.Errorf("failures are %+v, error %v", f, err)
	}
	b.add("webhook", 1, 1, 6*time.Hour)
	b.db.MustExec("update falldue_tasks set last_error = 'unauthorized' where last_error is null")
	b.db.MustExec("update falldue_tasks set updated_at = updated_at - 21600000000 where id in (select id from falldue_tasks where last_error = 'unavailable' order by id limit 20)")
	b.db.MustExec("update falldue_tasks set last_error = 'unauthorized' where id in (select id from falldue_tasks order by updated_at limit 12)")
	if f, err = b.ops(nil).Failures(t.Context()); err != nil || !f.Groups[0].Earlier {
		t.Errorf("failures whose first ones are not read are %+v, error %v", f, err)
	}
}
