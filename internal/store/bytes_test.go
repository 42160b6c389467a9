package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// TestLongTextsFitIntoStatements: 500 rows of 36,000 bytes are more than MariaDB takes in one
// statement by default. It would end the session, and with it the caller's transaction.
func TestLongTextsFitIntoStatements(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		long := func(i int) string { return fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", 36_000)) }
		entries := make([]Entry, MaxBatch)
		for i := range entries {
			entries[i] = Entry{Queue: "default", Kind: "k", Payload: long(i)}
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if ids, err := s.Enqueue(t.Context(), tx, entries); err != nil || len(ids) != len(entries) {
			t.Fatalf("in a transaction %d tasks are stored, error %v", len(ids), err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		ids, err := s.Enqueue(t.Context(), nil, entries)
		if err != nil {
			t.Fatal(err)
		}
		source := Source{Lane: Lane{State: statements.StateOpen, Kind: "k"}, Running: statements.StateOpen}
		claims, err := s.Claim(t.Context(), ClaimParams{Queue: "default", Worker: "w", Lease: time.Hour, Limit: MaxBatch, Sources: []Source{source}})
		if err != nil || len(claims) != len(ids) {
			t.Fatalf("claimed %d tasks, error %v", len(claims), err)
		}
		reports := make([]Progress, len(claims))
		ends := make([]*Settlement, len(claims))
		for i, c := range claims {
			key := Key{TaskID: c.ID, Fence: c.Fence}
			reports[i] = Progress{Key: key, Message: long(i)}
			ends[i] = &Settlement{
				Settlement: statements.Settlement{Key: key, State: statements.StateDone, Result: NotNull(long(i)), Error: NotNull(long(i))}, RetainDone: true,
				Records: []Record{{Key: key, Outcome: statements.OutcomeRetried, Worker: "w", Error: long(i), Stack: NotNull(long(i))}},
			}
		}
		if stored, err := s.WriteProgress(t.Context(), "w", reports); err != nil || len(stored) != len(reports) {
			t.Fatalf("the progress of %d tasks is stored, error %v", len(stored), err)
		}
		if rest, err := s.Settle(t.Context(), "w", ends); err != nil || len(rest.Lost)+len(rest.Locked) > 0 {
			t.Fatalf("%+v are not settled, error %v", rest, err)
		}
		for i, id := range []int64{ids[0], ids[len(ids)-1]} {
			i *= len(ids) - 1
			task, err := s.Task(t.Context(), id)
			attempts, failed := s.Attempts(t.Context(), id)
			if err != nil || failed != nil || string(task.Payload) != long(i) || len(task.Result) == 0 || len(attempts) != 1 || len(attempts[0].Error) != len(task.Result) {
				t.Errorf("task %d has %d bytes, a result of %d and %d attempts, errors %v and %v", id, len(task.Payload), len(task.Result), len(attempts), err, failed)
			}
		}
	})
}

// TestFitting: a row that is longer than all that fits has a statement for itself.
func TestFitting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lengths []int
		want    int
	}{
		{nil, 0}, {[]int{2 * maxBytes}, 1}, {[]int{2 * maxBytes, 1}, 1}, {[]int{1, maxBytes - 1, 1}, 2}, {[]int{1, maxBytes}, 1}, {make([]int, MaxBatch+1), MaxBatch},
	} {
		row := func(i int) *Entry { return &Entry{Payload: strings.Repeat("x", c.lengths[i])} }
		if n := fitting(&Store{}, statements.LongColumns, len(c.lengths), row); n != c.want {
			t.Errorf("of rows of %v bytes %d fit, want %d", c.lengths[:min(len(c.lengths), 4)], n, c.want)
		}
	}
}

// TestFittingIntoPackets: a server that takes smaller statements gets smaller ones, and refuses no text that CheckSize
// has let pass.
func TestFittingIntoPackets(t *testing.T) {
	t.Parallel()
	const packet = 1 << 20
	s := &Store{}
	s.server.Caps.MaxPacket = packet
	row := func(int) *Entry { return &Entry{Payload: strings.Repeat("x", packet/10)} }
	if n := fitting(s, statements.LongColumns, 10, row); n != 2 {
		t.Errorf("%d rows of a tenth of a packet fit, want 2", n)
	}
	for bytes, fits := range map[int]bool{1: true, packet - 64<<10: true, packet - 64<<10 + 1: false} {
		if err := s.CheckSize(bytes); (err == nil) != fits {
			t.Errorf("a text of %d bytes: error %v", bytes, err)
		}
	}
}

// TestManyDelaysAreChecked: a result has a limited number of columns.
func TestManyDelaysAreChecked(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := migrated(t, testdb.Open(t, engine))
		formulas := make([]sqlgen.Formula, 2500)
		for i := range formulas {
			e, err := sqlgen.Parse(fmt.Sprintf("%d + n", i+1))
			if err != nil {
				t.Fatal(err)
			}
			if formulas[i], err = sqlgen.Compile(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.CheckDelays(t.Context(), formulas); err != nil {
			t.Error(err)
		}
	})
}
