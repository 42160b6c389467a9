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
