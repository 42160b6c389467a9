package systemtest

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// TestTenantsTakeTurns: a campaign of a tenant with many endpoints is at work when another tenant, with one endpoint,
// enqueues some tasks. A task of that tenant is next, and then both tenants' tasks alternate, with and without limits.
func TestTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	type delivery struct{ Tenant, Endpoint string }
	const endpoints, each, others = 60, 2, 10
	for name, limits := range map[string][]falldue.Limit{"free": nil, "limited": {falldue.AtMost(1000).PerKey("tenant")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, engine string) {
				q := migratedQueue(t, testdb.Open(t, engine), falldue.Config{Concurrency: 1})
				deliver := falldue.NewKind[delivery]("deliver", falldue.KindConfig{
					Policy: backoff.Constant(time.Hour).WithMaxAttempts(1), // no claims ahead
					Limits: limits,
				}).KeyedBy(func(d delivery) string { return falldue.KeyOf("tenant", d.Tenant, "endpoint", d.Endpoint) })
				started, proceed := make(chan string, endpoints*each+others), make(chan struct{}, endpoints*each+others)
				falldue.Handle(q, deliver, func(ctx context.Context, task falldue.Task[delivery]) error {
					started <- task.Args.Tenant
					select {
					case <-proceed:
					case <-ctx.Done():
					}
					return ctx.Err()
				})
				enqueue := func(list []delivery) {
					if _, err := deliver.EnqueueMany(t.Context(), q, list); err != nil {
						t.Fatal(err)
					}
				}
				var campaign []delivery
				for i := range endpoints * each {
					campaign = append(campaign, delivery{"large", strconv.Itoa(i % endpoints)})
				}
				enqueue(campaign)
				defer runUntil(t, q)()
				for range 5 {
					if first := <-started; first != "large" {
						t.Fatalf("a task of %q runs", first)
					}
					proceed <- struct{}{}
				}
				<-started
				enqueue(slices.Repeat([]delivery{{"small", "1"}}, others))
				proceed <- struct{}{}
				var order []string
				for small := 0; small < others; {
					tenant := <-started
					if order = append(order, tenant); tenant == "small" {
						small++
					}
					if len(order) > 2*small+2 {
						t.Fatalf("after the tasks of the small tenant came, tasks of %q run", order)
					}
					proceed <- struct{}{}
				}
				close(proceed)
			})
		})
	}
}

// TestTenantsHaveWeights: while two tenants wait, the one with weight 3 has three of four tasks, and alone each has
// all. Kinds have limits or not, and handlers are few or many.
func TestTenantsHaveWeights(t *testing.T) {
	t.Parallel()
	const tasks = 400 // of each tenant
	for _, c := range []struct {
		name        string
		limits      []falldue.Limit
		concurrency int
	}{{"one handler", nil, 1}, {"many handlers", nil, 40}, {"limited", []falldue.Limit{falldue.AtMost(1000).PerKey("tenant")}, 40}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, engine string) {
				q := migratedQueue(t, testdb.Open(t, engine), falldue.Config{Concurrency: c.concurrency, MaxPrefetch: -1})
				deliver := falldue.NewKind[string]("deliver", falldue.KindConfig{
					Limits: c.limits,
					Weight: func(tenant string) int {
						if tenant == "tenant=large" {
							return 3
						}
						return 1
					},
				}).KeyedBy(func(tenant string) string { return falldue.KeyOf("tenant", tenant, "endpoint", "1") })
				ran := make(chan string, 2*tasks)
				falldue.Handle(q, deliver, func(_ context.Context, task falldue.Task[string]) error {
					ran <- task.Args
					return nil
				})
				for _, tenant := range []string{"small", "large"} {
					if _, err := deliver.EnqueueMany(t.Context(), q, slices.Repeat([]string{tenant}, tasks)); err != nil {
						t.Fatal(err)
					}
				}
				defer runUntil(t, q)()
				counts, large := map[string]int{}, 0
				for range 2 * tasks {
					counts[<-ran]++
					if counts["large"]+counts["small"] == tasks {
						large = counts["large"]
					}
				}
				if large < tasks*70/100 || large > tasks*80/100 {
					t.Errorf("of the first %d tasks %d are of the tenant with weight 3, want three of four", tasks, large)
				}
				if counts["large"] != tasks || counts["small"] != tasks {
					t.Errorf("tasks of %v ran, want %d of each", counts, tasks)
				}
			})
		})
	}
}
