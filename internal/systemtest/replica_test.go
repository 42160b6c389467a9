package systemtest

import (
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestInspectionNeedsNoWrites: whatever a person looks at can be asked of a server that
// refuses writes, as a read replica does, and an enqueue there is an error.
func TestInspectionNeedsNoWrites(t *testing.T) {
	t.Parallel()
	refuses := map[string]string{
		testdb.Postgres: "&default_transaction_read_only=on", testdb.MySQL: "transaction_read_only=1", testdb.MariaDB: "tx_read_only=1",
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		setting := refuses[engine]
		if setting == "" {
			t.Skip("it has no such sessions")
		}
		for _, driver := range testdb.Drivers(engine) {
			t.Run(driver, func(t *testing.T) {
				dsn := testdb.DSN(t, engine)
				open := func(dsn string) (*falldue.Queue, *ops.Ops) {
					db, err := testdb.OpenDSN(driver, dsn)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = db.Close() })
					q, err := falldue.New(db, falldue.Config{})
					if err != nil {
						t.Fatal(err)
					}
					return q, ops.New(q)
				}
				ctx := t.Context()
				primary, _ := open(dsn)
				if err := primary.Migrate(ctx); err != nil {
					t.Fatal(err)
				}
				kind := falldue.NewKind[int]("seen", falldue.KindConfig{})
				receipt, err := kind.Enqueue(ctx, primary, 1)
				if err != nil {
					t.Fatal(err)
				}
				setting := setting
				if !strings.HasPrefix(setting, "&") {
					setting = map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")] + setting
				}
				replica, o := open(dsn + setting)
				if _, err := kind.Enqueue(ctx, replica, 2); err == nil {
					t.Fatal("the session takes writes")
				}
				for name, look := range map[string]func() error{
					"Task":           func() error { _, err := replica.Task(ctx, receipt.ID); return err },
					"Attempts":       func() error { _, err := replica.Attempts(ctx, receipt.ID); return err },
					"Counts":         func() error { _, err := o.Counts(ctx); return err },
					"EstimateCounts": func() error { _, err := o.EstimateCounts(ctx); return err },
					"Tasks":          func() error { _, err := o.Tasks(ctx, ops.Filter{}); return err },
					"Match": func() error {
						_, err := o.Tasks(ctx, ops.Filter{Kind: "seen", Match: "1"})
						return err
					},
					"Overdue":   func() error { _, err := o.Overdue(ctx, 0); return err },
					"Pauses":    func() error { _, err := o.Pauses(ctx); return err },
					"Overrides": func() error { _, err := o.Overrides(ctx); return err },
					"Why":       func() error { _, err := o.Why(ctx, receipt.ID); return err },
					"Profile":   func() error { _, err := o.Profile(ctx); return err },
					"Queues":    func() error { _, err := o.Queues(ctx); return err },
					"Diagnose":  func() error { _, err := o.Diagnose(ctx); return err },
					"Workers":   func() error { _, err := o.Workers(ctx); return err },
				} {
					if err := look(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	})
}
