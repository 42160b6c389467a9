package systemtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestSequencesOfBlueReachGreen runs the statement of docs/failover.md on a database whose
// tasks are all done and deleted, and what it prints on another one, whose next ids are
// then greater than all that the first has given out.
func TestSequencesOfBlueReachGreen(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(readFile(t, "docs/failover.md"), "   ```sql\n")
	statement, _, ends := strings.Cut(rest, "   ```\n")
	if !found || !ends {
		t.Fatal("docs/failover.md has no statement")
	}
	kind := falldue.NewKind[int]("k", falldue.KindConfig{})
	enqueue := func(q *falldue.Queue) int64 {
		receipt, err := kind.Enqueue(t.Context(), q, 1)
		if err != nil {
			t.Fatal(err)
		}
		return receipt.ID
	}
	blue, green := testdb.Open(t, testdb.Postgres), testdb.Open(t, testdb.Postgres)
	var queues []*falldue.Queue
	for _, db := range []*sqlx.DB{blue, green} {
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		queues = append(queues, q)
	}
	var last int64
	for range 10 {
		last = enqueue(queues[0])
		if err := queues[0].Delete(t.Context(), last); err != nil {
			t.Fatal(err)
		}
	}
	if err := queues[0].Pause(t.Context(), falldue.Subject{Queue: "default"}); err != nil { // a change
		t.Fatal(err)
	}
	var printed []string
	if err := blue.Select(&printed, statement); err != nil || len(printed) != 2 {
		t.Fatalf("%d statements for 2 sequences that were used (error %v): %q", len(printed), err, printed)
	}
	for _, s := range printed {
		green.MustExec(s)
	}
	if id := enqueue(queues[1]); id != last+1_000_001 {
		t.Errorf("the first task of green is %d, want %d", id, last+1_000_001)
	}
	if !slices.ContainsFunc(printed, func(s string) bool { return strings.Contains(s, "falldue_changes_id_seq") }) {
		t.Errorf("no statement is for changes: %q", printed)
	}
}
