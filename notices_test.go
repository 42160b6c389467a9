package falldue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/testdb"
)

// TestNoticesAreFew: however many tasks a process stores, it sends a notice each 10
// milliseconds at most, each task is followed by one soon, and a notice that hangs holds
// back no more than the next.
func TestNoticesAreFew(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{0, time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			sent, noticed := 0, map[string]time.Time{}
			n := &notices{send: func(ctx context.Context, notice string) error {
				err := retry.Pause(ctx, takes)
				mu.Lock()
				defer mu.Unlock()
				sent++
				for queue := range strings.FieldsSeq(notice) {
					noticed[queue] = time.Now()
				}
				return err
			}}
			begin := time.Now()
			for i := range 10_000 { // in 10 seconds
				n.Add(fmt.Sprint("queue", i%3))
				time.Sleep(time.Millisecond)
			}
			n.Add("last")
			added := time.Now()
			time.Sleep(2*min(takes, noticeTimeout) + noticePause)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if most := int(added.Sub(begin)/noticePause) + 2; sent > most || takes < time.Second && sent < most*3/4 {
				t.Errorf("notices that take %v: %d were sent, want %d", takes, sent, most)
			}
			if len(noticed) != 4 || noticed["last"].Before(added) {
				t.Errorf("notices that take %v named the queues %v", takes, noticed)
			}
		})
	}
}

// TestNoticesOfManyQueues name none, which stands for all.
func TestNoticesOfManyQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := make(chan string, 10)
		n := &notices{send: func(_ context.Context, notice string) error { sent <- notice; return nil }}
		for _, queues := range []int{0, 1, 3, maxNoticed, maxNoticed + 1} {
			n.mu.Lock()
			n.next = time.Now().Add(noticePause) // one notice for all
			n.mu.Unlock()
			for i := range queues {
				n.Add(fmt.Sprintf("%0100d", i))
			}
			if queues == 0 {
				n.Add("")
			}
			time.Sleep(time.Second)
		}
		for _, want := range []int{0, 1, 3, maxNoticed, 0} {
			notice := <-sent
			if got := len(strings.Fields(notice)); got != want || len(notice) > 7999 {
				t.Errorf("a notice names %d queues in %d bytes, want %d", got, len(notice), want)
			}
		}
	})
}

// TestEnqueuesAndWakeNotify: without any setting, notices follow an enqueue at once, and a
// task of a transaction when Wake is called.
func TestEnqueuesAndWakeNotify(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q, err := New(db, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !q.store.Server().Caps.Notify {
			if q.Wake(); q.notices != nil {
				t.Error("notices are sent to a server that has none")
			}
			return
		}
		sent, send := make(chan string, 10), q.notices.send
		q.notices.send = func(ctx context.Context, notice string) error {
			err := send(ctx, notice)
			if err != nil {
				t.Error(err)
			}
			sent <- notice
			return err
		}
		k := NewKind[int]("k", KindConfig{Queue: "mail"})
		if _, err := k.Enqueue(t.Context(), q, 1); err != nil {
			t.Fatal(err)
		}
		if notice := <-sent; notice != "mail" {
			t.Errorf("an enqueue was followed by the notice %q", notice)
		}
		tx := db.MustBegin()
		if _, err := k.EnqueueTx(t.Context(), q, tx, 1); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if q.Wake(); <-sent != "" {
			t.Error("Wake did not notify all queues")
		}
		if len(sent) > 0 {
			t.Errorf("another notice was sent: %q", <-sent)
		}
	})
}
