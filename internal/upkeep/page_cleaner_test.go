package upkeep

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/store"
)

// TestPagesAreCleanedAsFastAsRowsAreMade: however many keys come in a second, a table has few more than
// the kept ones. A table whose rows are all in use is read seldom, and an empty table hardly at all.
func TestPagesAreCleanedAsFastAsRowsAreMade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		perSecond, used    int
		mostRows, mostLook int
	}{
		"many":    {perSecond: 150, used: 2_000, mostRows: 150*60*20 + 2_000, mostLook: 3600 * 20},
		"some":    {perSecond: 20, used: 10_000, mostRows: 20*60*20 + 10_000, mostLook: 3600 * 5},
		"in use":  {used: 50_000, mostRows: 50_000, mostLook: 10 * 300},
		"nothing": {mostLook: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				table, start, looks, most, next := map[int]time.Time{}, time.Now(), 0, 0, 0
				var ids []int // in their order
				for range c.used {
					table[next] = start.Add(1000 * time.Hour) // it is in use
					ids, next = append(ids, next), next+1
				}
				made := time.Now()
				drop := func(_ context.Context, after int, keep time.Duration) (last, dropped int, err error) {
					looks++
					for ; made.Before(time.Now()) && c.perSecond > 0; made = made.Add(time.Second / time.Duration(c.perSecond)) {
						table[next] = made
						ids, next = append(ids, next), next+1
					}
					most = max(most, len(table))
					first, _ := slices.BinarySearch(ids, after+1)
					if after == 0 {
						first = 0
					}
					end := min(first+store.MaxBatch, len(ids))
					page := slices.Clone(ids[first:end])
					if len(page) == store.MaxBatch {
						last = page[len(page)-1]
					}
					ids = slices.Delete(ids, first, end)
					kept := slices.DeleteFunc(page, func(id int) bool {
						free := time.Since(table[id]) > keep
						if free {
							delete(table, id)
						}
						return free
					})
					dropped = end - first - len(kept)
					ids = slices.Insert(ids, first, kept...)
					time.Sleep(3 * time.Millisecond) // by the clock of the bubble
					return last, dropped, nil
				}
				cleaner := &PageCleaner[int]{drop: drop, keep: keepUniques, failed: func(err error) { t.Error(err) }}
				cleaner.Work(ctx)
				if most > c.mostRows || looks > c.mostLook {
					t.Errorf("the table had up to %d rows, want %d at most, and in an hour was looked at %d times, want %d at most", most, c.mostRows, looks, c.mostLook)
				}
				t.Logf("up to %d rows, %d looks", most, looks)
			})
		})
	}
}
