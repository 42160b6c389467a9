package ops

import (
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
)

// TestWhatHasChanged follows a task from look to look.
func TestWhatHasChanged(t *testing.T) {
	t.Parallel()
	w, now := watch{known: map[int64]*watched{}}, time.Now()
	row := func(state falldue.State, fence int64, attempts int, worker, text string) store.Watched {
		return store.Watched{ID: 1, State: string(state), Fence: fence, Attempts: attempts, ClaimedBy: worker, LastError: text}
	}
	for i, c := range []struct {
		row  store.Watched
		want What
	}{
		{row(falldue.StateOpen, 1, 1, "w", ""), Started},
		{row(falldue.StateOpen, 1, 1, "w", ""), ""},
		{row(falldue.StateOpen, 1, 1, "", "no"), Failed},
		{row(falldue.StateOpen, 2, 2, "w", "no"), Started},
		{row(falldue.StateOpen, 2, 1, "", "no"), ""},     // given back
		{row(falldue.StateOpen, 4, 3, "", "no"), Failed}, // claimed and failed between two looks
		{row(falldue.StateSnoozed, 5, 2, "", "no"), Snoozed},
		{row(falldue.StateOpen, 6, 3, "w", "no"), Started},
		{row(falldue.StateDead, 6, 3, "", "never"), Dead},
		{row(falldue.StateDead, 6, 3, "", "never"), ""},
		{row(falldue.StateOpen, 6, 0, "", "never"), ""}, // retried
		{row(falldue.StateCancelled, 6, 0, "", "never"), Cancelled},
	} {
		if got := w.changed(c.row, now); got != c.want {
			t.Errorf("%d: %+v is %q, want %q", i, c.row, got, c.want)
		}
	}
	for id := range int64(mostWatched + 10) {
		w.known[id+2] = &watched{}
	}
	w.forget(now.Add(2 * rememberFor))
	if n := len(w.known); n != mostWatched || w.known[1] != nil {
		t.Errorf("%d tasks are known", n)
	}
}
