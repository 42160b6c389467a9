package systemtest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestCorruptPayloadDelaysNoOtherTask: PostgreSQL cannot read the payload of one task,
// since parts of it are gone. The others run, and later ones too.
func TestCorruptPayloadDelaysNoOtherTask(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine != testdb.Postgres {
			t.Skip("it has no statement that damages a table")
		}
		db := testdb.Open(t, engine)
		var version int
		if err := db.Get(&version, "select current_setting('server_version_num')::int / 10000"); err != nil {
			t.Fatal(err)
		}
		if version < 14 {
			t.Skip("pg_surgery is there since PostgreSQL 14")
		}
		var log lockedBuilder
		q, err := falldue.New(db, falldue.Config{PollInterval: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		db.MustExec("alter table falldue_tasks alter column payload set storage external")
		kind := falldue.NewKind[string]("k", falldue.KindConfig{})
		var ran atomic.Int64
		falldue.Handle(q, kind, func(context.Context, falldue.Task[string]) error {
			ran.Add(1)
			return nil
		})
		args := make([]string, 1000)
		args[300] = strings.Repeat("x", 20_000) // the only one that is stored beside its row
		receipts, err := kind.EnqueueMany(t.Context(), q, args)
		if err != nil {
			t.Fatal(err)
		}
		var parts string
		if err := db.Get(&parts, "select reltoastrelid::regclass::text from pg_class where oid = 'falldue_tasks'::regclass"); err != nil {
			t.Fatal(err)
		}
		db.MustExec("create extension pg_surgery")
		db.MustExec(fmt.Sprintf("select heap_force_kill('%s'::regclass, array(select ctid from %[1]s))", parts))
		if _, err := q.Task(t.Context(), receipts[300].ID); err == nil {
			t.Fatal("the payload can be read")
		}

		defer runUntil(t, q)()
		waitFor(t, "the others to run", func() bool { return ran.Load() == 999 })
		if _, err := kind.Enqueue(t.Context(), q, "later"); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "a later task to run", func() bool { return ran.Load() == 1000 })
		waitFor(t, "the log to name the task", func() bool {
			return strings.Contains(log.String(), "refuses the claims of some tasks") && strings.Contains(log.String(), fmt.Sprintf(" task=%d ", receipts[300].ID))
		})
	})
}
