package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/signals"
)

// tables are the service's own tables. falldue's tables are alongside them.
var tables = []string{
	"create table if not exists endpoints (id varchar(26) not null primary key, tenant text not null, url text not null, secret text not null, policy text not null)",
	"create table if not exists events (id varchar(26) not null primary key, tenant text not null, body text not null)",
}

// endpoint is a URL of a tenant that gets all events of the tenant.
type endpoint struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	URL    string `json:"url"`
	Secret string `json:"secret"` // signs deliveries
	Policy string `json:"policy"` // of its deliveries, or the empty text for the service's
}

// delivery has the arguments of a task: the event to send to an endpoint.
type delivery struct{ Tenant, Endpoint, Event string }

// key is the task key of the deliveries to an endpoint.
func key(tenant, endpoint string) string {
	return falldue.KeyOf("tenant", tenant, "endpoint", endpoint)
}

// deliver is the kind of the deliveries. Retries end after three days. Then the delivery is dead, and the tenant can
// replay it for a month.
var deliver = falldue.NewKind[delivery]("webhook.deliver", falldue.KindConfig{
	Policy:        backoff.Geometric(5*time.Second, 6*time.Hour, 12).WithJitter("0.2 * delay").WithMaxAttempts(100).WithMaxElapsed(72 * time.Hour),
	Timeout:       15 * time.Second,
	DeadRetention: 30 * 24 * time.Hour,
	Limits: []falldue.Limit{
		falldue.AtMost(2).PerKey("tenant"),
		falldue.Rate(100, time.Minute).PerKey("tenant"),
		falldue.InOrder(), // of each endpoint
	},
}).KeyedBy(func(d delivery) string { return key(d.Tenant, d.Endpoint) })

// service is what the API and the workers share.
type service struct {
	pool   *pool
	queue  *falldue.Queue
	ops    *ops.Ops
	page   *dash.Handler // for operators
	client *http.Client
}

// newService returns a service on a pool.
func newService(pool *pool) (*service, error) {
	queue, err := pool.newQueue(falldue.Config{Concurrency: 50})
	if err != nil {
		return nil, err
	}
	queue.Use(signals.LogRuns(nil, signals.LogOptions{}))
	page, err := dash.New(queue, dash.Options{Title: "webhooks"}) // shows everything, and changes nothing
	if err != nil {
		return nil, err
	}
	s := &service{pool, queue, ops.New(queue), page, &http.Client{
		// An endpoint that has moved fails until its tenant registers the new one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	falldue.Handle(queue, deliver, s.deliver)
	return s, nil
}

// migrate creates all tables.
func (s *service) migrate(ctx context.Context) error {
	for _, table := range tables {
		if _, err := s.pool.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	return s.queue.Migrate(ctx)
}

// register stores an endpoint with a new secret.
func (s *service) register(ctx context.Context, e endpoint) (endpoint, error) {
	e.ID, e.Secret = rand.Text(), rand.Text()
	if u, err := url.Parse(e.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return e, fmt.Errorf("%w: url %q: must be a URL of http or https", errInput, e.URL)
	}
	if err := policyOf(e.Policy).Err(); err != nil || len(e.Policy) > 1000 {
		return e, fmt.Errorf("%w: policy %q: must be a policy of up to 1,000 characters, such as delay 1m; attempts 20: %w", errInput, e.Policy, err)
	}
	_, err := s.pool.NamedExecContext(ctx, "insert into endpoints (id, tenant, url, secret, policy) values (:id, :tenant, :url, :secret, :policy)", e)
	return e, err
}

// policyOf returns the policy of the deliveries to an endpoint. The zero policy stands for the kind's.
func policyOf(text string) backoff.Policy {
	if text == "" {
		return backoff.Policy{}
	}
	return backoff.ParseDeferred(text)
}

// remove deletes an endpoint and cancels its deliveries.
func (s *service) remove(ctx context.Context, tenant, id string) (ops.BulkReport, error) {
	if _, err := s.pool.ExecContext(ctx, s.pool.Rebind("delete from endpoints where tenant = ? and id = ?"), tenant, id); err != nil {
		return ops.BulkReport{}, err
	}
	return s.ops.CancelMany(ctx, ops.Filter{Kind: deliver.Name(), Key: key(tenant, id)})
}

// publish stores an event together with a delivery to each endpoint of the tenant, or nothing.
func (s *service) publish(ctx context.Context, tenant string, body json.RawMessage) ([]falldue.Receipt, error) {
	tx, err := s.pool.BeginTxx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	event := rand.Text()
	if _, err := tx.ExecContext(ctx, tx.Rebind("insert into events (id, tenant, body) values (?, ?, ?)"), event, tenant, string(body)); err != nil {
		return nil, err
	}
	var endpoints []endpoint
	if err := tx.SelectContext(ctx, &endpoints, tx.Rebind("select * from endpoints where tenant = ? order by id"), tenant); err != nil {
		return nil, err
	}
	var tasks []falldue.EnqueueParams
	for _, e := range endpoints {
		tasks = append(tasks, deliver.Params(delivery{tenant, e.ID, event}, falldue.EnqueueOptions{Policy: policyOf(e.Policy)}))
	}
	receipts, err := s.queue.EnqueueManyTx(ctx, tx, tasks...)
	if err != nil {
		return nil, err
	}
	return receipts, tx.Commit()
}
