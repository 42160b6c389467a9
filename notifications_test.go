package falldue

import (
	"context"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/upkeep"
)

// notifyFunc sends notifications.
type notifyFunc func(ctx context.Context, text string) error

func (f notifyFunc) Notify(ctx context.Context, text string) error { return f(ctx, text) }

// TestEnqueuesAndWakeNotify: without any setting, notices follow an enqueue immediately, and a
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
			if q.Wake(); q.notifier != nil {
				t.Error("notices are sent to a server that has none")
			}
			return
		}
		sent := make(chan string, 10)
		q.notifier = upkeep.NewNotifier(notifyFunc(func(ctx context.Context, notice string) error {
			err := q.store.Notify(ctx, notice)
			if err != nil {
				t.Error(err)
			}
			sent <- notice
			return err
		}))
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
