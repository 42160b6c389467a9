package systemtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
)

// TestKeysAreStored: a key of visible ASCII characters is stored as it is, any other as
// its hash, and tasks with keys run.
func TestKeysAreStored(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q := migrated(t, testdb.Open(t, engine))
		k := falldue.NewKind[int]("keyed", falldue.KindConfig{})
		ran := make(chan int, 10)
		falldue.Handle(q, k, func(_ context.Context, t falldue.Task[int]) error {
			ran <- t.Args
			return nil
		})
		stored := map[string]string{}
		for i, key := range []string{"", "customer:42", strings.Repeat("x", 128), strings.Repeat("x", 129), "two words", "Zoë", "#1", "Customer:42", "customer:42 "} {
			receipt, err := k.Enqueue(t.Context(), q, i, falldue.EnqueueOptions{Key: key})
			if err != nil {
				t.Fatal(err)
			}
			info, err := q.Task(t.Context(), receipt.ID)
			if err != nil {
				t.Fatal(err)
			}
			if asIs := i < 3 || key == "Customer:42"; asIs != (info.Key == key) || len(info.Key) > 128 || strings.Contains(info.Key, " ") {
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

// TestKindsMakeKeysOfArguments: however a task is enqueued. A key in the options comes first.
func TestKindsMakeKeysOfArguments(t *testing.T) {
	type order struct{ Customer string }
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		q := migrated(t, db)
		k := falldue.NewKind[order]("order", falldue.KindConfig{}).KeyedBy(func(o order) string { return o.Customer })
		named := falldue.NewKind[fmt.Stringer]("named", falldue.KindConfig{}).KeyedBy(func(s fmt.Stringer) string {
			if s == nil {
				return "nobody"
			}
			return s.String()
		})
		ada, bob := order{"ada"}, order{"bob"}
		want := func(keys ...string) func([]falldue.Receipt, error) {
			return func(receipts []falldue.Receipt, err error) {
				t.Helper()
				if err != nil || len(receipts) != len(keys) {
					t.Fatalf("receipts %v, error %v, want %d", receipts, err, len(keys))
				}
				for i, r := range receipts {
					if info, err := q.Task(t.Context(), r.ID); err != nil || info.Key != keys[i] {
						t.Errorf("task %d has the key %q (error %v), want %q", i, info.Key, err, keys[i])
					}
				}
			}
		}
		one := func(r falldue.Receipt, err error) ([]falldue.Receipt, error) { return []falldue.Receipt{r}, err }
		want("ada")(one(k.Enqueue(t.Context(), q, ada)))
		want("eve")(one(k.Enqueue(t.Context(), q, ada, falldue.EnqueueOptions{Key: "eve"})))
		want("")(one(k.Enqueue(t.Context(), q, order{})))
		want("ada", "bob")(k.EnqueueMany(t.Context(), q, []order{ada, bob}, falldue.EnqueueOptions{Priority: new(1)}))
		want("bob", "nobody", "ada")(q.EnqueueMany(t.Context(), k.Params(bob), named.Params(nil), k.Params(ada)))
		chained, err := flow.Chain(k.Params(ada), k.Params(bob)).Enqueue(t.Context(), q)
		want("ada", "bob")([]falldue.Receipt{{ID: chained[0]}, {ID: chained[1]}}, err)
		want("bob")(one(k.Enqueue(t.Context(), q, bob, falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}})))
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := k.EnqueueTx(t.Context(), q, tx, bob)
		if err := errors.Join(err, tx.Commit()); err != nil {
			t.Fatal(err)
		}
		want("bob")(one(receipt, nil))
	})
}
