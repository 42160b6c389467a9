package ops_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestMeasure: all measures are reported, and no table is left, also after an error and when the
// context ends.
func TestMeasure(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		query := "select count(*) from information_schema.tables where table_name like 'falldue_bench%' and table_schema = database()"
		switch engine {
		case testdb.SQLite:
			query = "select count(*) from sqlite_schema where name like 'falldue_bench%'"
		case testdb.Postgres:
			query = "select count(*) from information_schema.tables where table_name like 'falldue_bench%'"
		}
		count := func() (n int) {
			t.Helper()
			if err := db.Get(&n, query); err != nil {
				t.Fatal(err)
			}
			return n
		}
		b := ops.Benchmark{Tasks: 20, Handlers: 5, Starts: 3}
		var got []string
		during := 0
		if err := ops.Measure(t.Context(), db, b, func(m ops.Measurement) error {
			got = append(got, fmt.Sprint(m.Measure, " ", m.Tasks))
			during = count()
			if start := m.Measure == "start"; start != (m.Median > 0 && m.P99 >= m.Median) || start == (m.PerSecond > 0) {
				t.Errorf("%+v", m)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if want := "enqueue_one 5, enqueue_many 15, run 20, start 3"; strings.Join(got, ", ") != want {
			t.Errorf("measured %q, want %s", got, want)
		}
		full := errors.New("the disk is full")
		if err := ops.Measure(t.Context(), db, b, func(ops.Measurement) error { return full }); !errors.Is(err, full) {
			t.Errorf("error %v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if err := ops.Measure(ctx, db, b, func(ops.Measurement) error { stop(); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if n := count(); n != 0 || during == 0 {
			t.Errorf("%d tables while it measured, and %d are left", during, n)
		}
		for _, wrong := range []ops.Benchmark{{Tasks: -1}, {Handlers: -1}, {Starts: ops.MaxMeasured + 1}, {Tasks: ops.MaxMeasured + 1}} {
			if err := ops.Measure(t.Context(), db, wrong, nil); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), ": must be 1 ") {
				t.Errorf("%+v: error %v", wrong, err)
			}
		}
	})
}

func ExampleMeasure() {
	ctx := context.Background()
	db, closeDB := openDB()
	defer closeDB()
	err := ops.Measure(ctx, db, ops.Benchmark{Tasks: 40, Starts: 3}, func(m ops.Measurement) error {
		fmt.Println(m.Measure, m.Tasks) // and m.PerSecond, or m.Median and m.P99
		return nil
	})
	if err != nil {
		log.Panic(err)
	}
	// Output:
	// enqueue_one 10
	// enqueue_many 30
	// run 40
	// start 3
}
