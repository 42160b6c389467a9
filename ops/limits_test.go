package ops_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestFullestKeys: limits per key list the keys with the most tasks that count, by whole keys and by parts of them.
func TestFullestKeys(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		o := ops.New(b.queue)
		began, end := make(chan int64, 10), make(chan struct{})
		perQueue := falldue.QueueConfig{Limits: []falldue.Limit{falldue.AtMost(1).PerKey()}}
		limits := []falldue.Limit{falldue.AtMost(3).PerKey("tenant"), falldue.Rate(5, time.Hour).PerKey("tenant"), falldue.AtMost(2).PerKey()}
		defer b.start(falldue.Config{Concurrency: 20, Queues: map[string]falldue.QueueConfig{"default": {}, "customer:*": perQueue}}, func(q *falldue.Queue) {
			handle(falldue.KindConfig{Limits: limits}, blocking(began, end), "hook")(q)
			handle(falldue.KindConfig{Limits: limits}, succeed, "hook2")(q)
		})()
		defer close(end)
		workers := b.workers(o, "the worker", announced(1))
		for i, tenant := range []string{"a", "b", "b", "c", "c", "c"} {
			if _, err := falldue.NewKind[json.RawMessage]("hook", falldue.KindConfig{}).Enqueue(t.Context(), b.queue, json.RawMessage("{}"),
				falldue.EnqueueOptions{Key: falldue.KeyOf("tenant", tenant, "endpoint", fmt.Sprint(i/2))}); err != nil {
				t.Fatal(err)
			}
			<-began
		}
		list, err := o.Limits(t.Context(), workers)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, l := range list {
			keys, bounded, err := o.FullestKeys(t.Context(), l, 2)
			if l.HasKeys() == (l.Owner == "queue customer:*") {
				t.Errorf("HasKeys of %s of %s is %v", l.Text, l.Owner, l.HasKeys())
			}
			if err != nil || bounded {
				t.Fatalf("%s of %s: bounded %v, error %v", l.Text, l.Owner, bounded, err)
			}
			for _, k := range keys {
				if k.Most-k.Room != k.Taken() || len(k.Tasks) != k.Taken() {
					t.Errorf("%s of %s: %+v", l.Text, l.Owner, k)
				}
				got[l.Owner+" "+l.Text] = append(got[l.Owner+" "+l.Text], fmt.Sprintf("%s %d of %d", k.Key, k.Taken(), k.Most))
			}
		}
		for limit, want := range map[string][]string{
			`kind hook AtMost(3).PerKey("tenant")`:       {"tenant=c 3 of 3", "tenant=b 2 of 3"},
			`kind hook Rate(5, 1h0m0s).PerKey("tenant")`: {"tenant=c 3 of 5", "tenant=b 2 of 5"},
			`kind hook AtMost(2).PerKey()`:               {"tenant=c/endpoint=2 2 of 2", "tenant=a/endpoint=0 1 of 2"},
			`kind hook2 AtMost(3).PerKey("tenant")`:      nil,
		} {
			if !slices.Equal(got[limit], want) {
				t.Errorf("%s: the fullest keys are %q, want %q", limit, got[limit], want)
			}
		}
	})
}
