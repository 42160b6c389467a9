package falldue_test

import (
	"context"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestKeysAreStored: a key of visible ASCII characters is stored as it is, any other as
// its hash, and tasks with keys run.
func TestKeysAreStored(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q, err := falldue.New(testdb.Open(t, engine), falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := falldue.NewKind[int]("keyed", falldue.KindConfig{})
		ran := make(chan int, 10)
		falldue.Handle(q, k, func(_ context.Context, t falldue.Task[int]) error {
			ran <- t.Args
			return nil
		})
		stored := map[string]string{}
		for i, key := range []string{"", "customer:42", strings.Repeat("x", 64), strings.Repeat("x", 65), "two words", "Zoë", "#1", "Customer:42", "customer:42 "} {
			id, err := k.Enqueue(t.Context(), q, i, &falldue.EnqueueOptions{Key: key})
			if err != nil {
				t.Fatal(err)
			}
			info, err := q.Task(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if asIs := i < 3 || key == "Customer:42"; asIs != (info.Key == key) || len(info.Key) > 64 || strings.Contains(info.Key, " ") {
				t.Errorf("key %q is stored as %q", key, info.Key)
			}
			if other, ok := stored[info.Key]; ok {
				t.Errorf("keys %q and %q are the same", key, other)
			}
			stored[info.Key] = key
		}
		defer runUntil(t, q)()
		for range stored {
			<-ran
		}
	})
}
