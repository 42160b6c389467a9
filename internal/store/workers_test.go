package store

import (
	"maps"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// TestAnnouncedKinds: the announced kinds are the kinds of all workers, and unknown if the info of one worker
// cannot be read.
func TestAnnouncedKinds(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		s := migrated(t, db)
		if got, err := s.AnnouncedKinds(t.Context()); err != nil || got == nil || len(got) != 0 {
			t.Errorf("without workers the kinds are %v, error %v", got, err)
		}
		for id, kind := range map[string]string{"a": "mail", "b": "charge"} {
			if err := s.Announce(t.Context(), Worker{ID: id}, Recent{}, WorkerInfo{Kinds: map[string]WorkerKind{kind: {}, "note": {}}}); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]bool{"mail": true, "charge": true, "note": true}
		if got, err := s.AnnouncedKinds(t.Context()); err != nil || !maps.Equal(got, want) {
			t.Errorf("the kinds are %v, error %v, want %v", got, err, want)
		}
		db.MustExec("update falldue_workers set info = '[]' where id = 'a'")
		if got, err := s.AnnouncedKinds(t.Context()); err == nil {
			t.Errorf("the kinds are %v although those of a worker cannot be read", got)
		}
	})
}
