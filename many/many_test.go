package many_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/many"
	"github.com/falldue/falldue/tasktest"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestInvalidConfigs: Run returns an error that names the value and the limit.
func TestInvalidConfigs(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.SQLite)
	do := func(context.Context, *many.Batch[int]) error { return nil }
	for _, c := range []struct {
		cfg  many.Config[int]
		fn   func(context.Context, *many.Batch[int]) error
		want string
	}{
		{many.Config[int]{Most: 1}, do, `Most 1 of kind "rows": must be 2 to 1,000`},
		{many.Config[int]{Most: 1001}, do, `Most 1001 of kind "rows": must be 2 to 1,000`},
		{many.Config[int]{Wait: -1}, do, `Wait -1ns of kind "rows": must be at most an hour`},
		{many.Config[int]{Wait: time.Hour + 1}, do, `Wait 1h0m0.000000001s of kind "rows": must be at most an hour`},
		{many.Config[int]{Most: 6}, do, `Most 6 of kind "rows": must be no more than the Concurrency of queue "default", which is 5`},
		{many.Config[int]{}, nil, `handler of kind "rows" is nil`},
	} {
		q, err := falldue.New(db, falldue.Config{Concurrency: 5})
		if err != nil {
			t.Fatal(err)
		}
		many.Handle(q, falldue.NewKind[int]("rows", falldue.KindConfig{}), c.cfg, c.fn)
		if err := q.Run(t.Context()); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Run returned %v, want %s", err, c.want)
		}
	}
}

// TestTasktestRunsBatchesOfOne: and does not wait for more.
func TestTasktestRunsBatchesOfOne(t *testing.T) {
	t.Parallel()
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{})
	if err == nil {
		err = q.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	kind, sizes := falldue.NewKind[int]("rows", falldue.KindConfig{}), []int(nil)
	many.Handle(q, kind, many.Config[int]{Wait: time.Hour}, func(_ context.Context, b *many.Batch[int]) error {
		sizes = append(sizes, len(b.Tasks))
		b.Errs[0] = falldue.Snooze(time.Hour)
		return nil
	})
	if _, err := kind.EnqueueMany(t.Context(), q, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	for _, ran := range tasktest.Drain(t, q) {
		if ran.State != falldue.StateSnoozed {
			t.Errorf("a task has ended as %+v", ran)
		}
	}
	if len(sizes) != 2 || sizes[0] != 1 || sizes[1] != 1 {
		t.Errorf("the batches have %d tasks, want 1 and 1", sizes)
	}
}
