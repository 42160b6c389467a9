package falldue

import (
	"cmp"
	"math"
	"time"

	"github.com/falldue/falldue/internal/run"
)

// Retentions of [Config] and [KindConfig] other than a time.
const (
	// Forever keeps finished tasks until they are deleted by hand ([Queue.Delete]).
	Forever time.Duration = math.MaxInt64
	// DeleteImmediately keeps no finished tasks. Done tasks are deleted by the statement that
	// records their end, with their results. Workers delete dead and cancelled ones within
	// about a second.
	DeleteImmediately time.Duration = -1
)

// validRetentions checks the retentions of owner.
func validRetentions(owner string, done, dead, cancelled time.Duration) error {
	for _, r := range []struct {
		field string
		value time.Duration
	}{{"DoneRetention", done}, {"DeadRetention", dead}, {"CancelledRetention", cancelled}} {
		if d := r.value; d != Forever && d != DeleteImmediately && (d < 0 || d > maxDelay) {
			return invalid("%s %v of %s: must be Forever, DeleteImmediately, or a duration up to %s", r.field, d, owner, longestDelay)
		}
	}
	return nil
}

// retention returns how long finished tasks of the kind stay in the table.
func (k KindConfig) retention(c Config) run.Retention {
	return run.Retention{
		Done:      kept(cmp.Or(k.DoneRetention, c.DoneRetention, DeleteImmediately)),
		Dead:      kept(cmp.Or(k.DeadRetention, c.DeadRetention, Forever)),
		Cancelled: kept(cmp.Or(k.CancelledRetention, k.DeadRetention, c.CancelledRetention, c.DeadRetention, Forever)),
	}
}

// retentionOfOthers returns how long finished tasks stay in the table whose kinds the worker does
// not handle. A worker that handles them may keep the done ones.
func (c Config) retentionOfOthers() run.Retention {
	r := KindConfig{}.retention(c)
	if c.DoneRetention == 0 {
		r.Done = run.Forever
	}
	return r
}

// kept returns a retention as the cleaner takes it.
func kept(d time.Duration) time.Duration {
	switch d {
	case Forever:
		return run.Forever
	case DeleteImmediately:
		return 0
	}
	return d
}
