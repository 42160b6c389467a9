package upkeep

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/retry"
)

// notifyFunc is a notifyTable.
type notifyFunc func(ctx context.Context, text string) error

func (f notifyFunc) Notify(ctx context.Context, text string) error { return f(ctx, text) }

// TestNoticesAreFew: however many tasks a process stores, it sends a notice each 10
// milliseconds at most. A notice soon follows each task, and a notice that hangs delays only
// the next one.
func TestNoticesAreFew(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			sent, noticed := 0, map[string]time.Time{}
			n := NewNotifier(notifyFunc(func(ctx context.Context, notice string) error {
				err := retry.Pause(ctx, takes)
				mu.Lock()
				defer mu.Unlock()
				sent++
				for queue := range strings.FieldsSeq(notice) {
					noticed[queue] = time.Now()
				}
				return err
			}))
			begin := time.Now()
			for i := range 10_000 { // in 10 seconds
				n.Add(fmt.Sprint("queue", i%3))
				time.Sleep(time.Millisecond)
			}
			n.Add("last")
			added := time.Now()
			time.Sleep(2*min(takes, notifyTimeout) + notifyPause)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if most := int(added.Sub(begin)/notifyPause) + 2; sent > most || takes < time.Second && sent < most*3/4 {
				t.Errorf("notices that take %v: %d were sent, want %d", takes, sent, most)
			}
			if len(noticed) != 4 || noticed["last"].Before(added) {
				t.Errorf("notices that take %v named the queues %v", takes, noticed)
			}
		})
	}
}

// TestNoticesOfManyQueues: a notice of many queues names none, which stands for all.
func TestNoticesOfManyQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := make(chan string, 10)
		n := NewNotifier(notifyFunc(func(_ context.Context, notice string) error { sent <- notice; return nil }))
		for _, queues := range []int{0, 1, 3, maxNotified, maxNotified + 1} {
			n.mu.Lock()
			n.next = time.Now().Add(notifyPause) // one notice for all
			n.mu.Unlock()
			for i := range queues {
				n.Add(fmt.Sprintf("%0100d", i))
			}
			if queues == 0 {
				n.Add("")
			}
			time.Sleep(time.Second)
		}
		for _, want := range []int{0, 1, 3, maxNotified, 0} {
			notice := <-sent
			if got := len(strings.Fields(notice)); got != want || len(notice) > 7999 {
				t.Errorf("a notice names %d queues in %d bytes, want %d", got, len(notice), want)
			}
		}
	})
}
