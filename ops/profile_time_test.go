package ops

import (
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestProfileTime: about how long a profile takes depends on how many tasks wait, and on how
// long the last one took for each.
func TestProfileTime(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := falldue.New(db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := falldue.NewKind[int]("mail", falldue.KindConfig{}).EnqueueMany(t.Context(), q, make([]int, 1000)); err != nil {
			t.Fatal(err)
		}
		db.MustExec("update falldue_tasks set state = 'done' where id % 2 = 0")
		i := New(q)
		check := func(least, most time.Duration) {
			t.Helper()
			if tasks, takes, err := i.ProfileTime(t.Context()); err != nil || tasks != 500 || takes < least || takes > most {
				t.Errorf("%d tasks, %v, error %v; want 500, and from %v to %v", tasks, takes, err, least, most)
			}
		}
		check(900*time.Microsecond, 3*time.Millisecond)
		i.took(fewProfiled-1, time.Hour)
		check(900*time.Microsecond, 3*time.Millisecond)
		i.took(20_000, 2*time.Second)
		check(50*time.Millisecond, 50*time.Millisecond)
	})
}
