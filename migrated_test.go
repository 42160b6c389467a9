package falldue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestRunRefusesTablesOfAReleaseBefore: its claims would read all tasks, for want
// of the index that they go by.
func TestRunRefusesTablesOfAReleaseBefore(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine != testdb.Postgres {
			t.Skip("its index is the same in all releases")
		}
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{Schema: "odd Schema", Prefix: "Shop_"})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := falldue.NewKind[string]("k", falldue.KindConfig{})
		ctx, stop := context.WithCancel(t.Context())
		falldue.Handle(q, k, func(context.Context, falldue.Task[string]) error { stop(); return nil })
		if _, err := k.Enqueue(ctx, q, "", nil); err != nil {
			t.Fatal(err)
		}
		if err := q.Run(ctx); err != nil {
			t.Fatalf("on the tables of this release Run returned %v", err)
		}
		for _, statement := range []string{
			`drop index "odd Schema"."Shop_lane"`,
			`create index "Shop_lane" on "odd Schema"."Shop_tasks" (queue, state, priority, kind, policy, attempts, updated_at)`,
		} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Run(t.Context()); !errors.Is(err, falldue.ErrNotMigrated) {
			t.Errorf("on those of a release before Run returned %v, want ErrNotMigrated", err)
		}
	})
}
