package periodic

import (
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// The range of times that a row can have. Beyond this range, engines round times or cannot store them.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// problem returns why the row of a schedule cannot be used, or nil. No release has stored such a
// row: a person has edited it.
func problem(row store.Schedule) error {
	if row.Corrupt != nil {
		return row.Corrupt
	}
	for _, c := range []struct {
		column string
		at     int64
	}{{"started_at", row.Started}, {"next_at", row.Next}, {"defined_at", row.Defined}} {
		if at := store.Time(c.at); at.Before(earliest) || at.After(latest) {
			return fmt.Errorf("column %s is %s: must be between the years %d and %d", c.column, at.Format(time.RFC3339), earliest.Year(), latest.Year())
		}
	}
	for _, c := range []struct {
		column         string
		n, least, most int
	}{{"missed", row.Missed, int(None), maxMissed}, {"alone", row.Alone, 0, 1}, {"per_tick", row.PerTick, 0, 1}, {"paused", row.Paused, 0, 1}} {
		if c.n < c.least || c.n > c.most {
			return fmt.Errorf("column %s is %d: must be between %d and %d", c.column, c.n, c.least, c.most)
		}
	}
	return nil
}

// unusable is problem as an error of a call that names the schedule.
func unusable(row store.Schedule) error {
	if err := problem(row); err != nil {
		return fmt.Errorf("falldue: the row of schedule %s cannot be used: %w; correct it, or remove the schedule", row.Name, err)
	}
	return nil
}
