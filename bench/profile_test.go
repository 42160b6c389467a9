package main

import (
	"testing"
	"time"
)

// TestProfileReads240LanesOverADay looks at what profile_s has inserted.
func TestProfileReads240LanesOverADay(t *testing.T) {
	t.Parallel()
	db := database{server: &server{engine: sqlite}, dsn: "file:" + t.TempDir() + "/db"}
	s, err := openFalldue(tuned)(t.Context(), db, settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	f := s.(*falldueSubject)
	const day = 24 * time.Hour
	if err := f.insertOverADay(t.Context(), 90_000); err != nil {
		t.Fatal(err)
	}
	var lanes, seconds int
	var first, last int64
	if err := f.pools[0].QueryRowContext(t.Context(), `select count(distinct kind || ' ' || attempts), count(distinct updated_at / 1000000), min(updated_at), max(updated_at) from falldue_tasks`).
		Scan(&lanes, &seconds, &first, &last); err != nil {
		t.Fatal(err)
	}
	if span := time.Duration(last-first) * time.Microsecond; lanes != 240 || seconds < 86_000 || span > day || span < day-time.Minute {
		t.Errorf("%d lanes with anchors in %d seconds of %v, want 240 and a day", lanes, seconds, span)
	}
}
