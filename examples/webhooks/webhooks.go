package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/signals"
)

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

// migrate creates all tables: the service's own, and falldue's.
func (s *service) migrate(ctx context.Context) error {
	for _, table := range []string{
		"create table if not exists endpoints (id varchar(26) not null primary key, tenant text not null, url text not null, secret text not null, policy text not null)",
		"create table if not exists events (id varchar(26) not null primary key, tenant text not null, body text not null)",
	} {
		if _, err := s.pool.ExecContext(ctx, table); err != nil {
			return err
		}
	}
	return s.queue.Migrate(ctx)
}

// deliver sends an event to an endpoint.
func (s *service) deliver(ctx context.Context, t falldue.Task[delivery]) error {
	var d struct{ URL, Secret, Body string }
	const query = "select url, secret, body from endpoints p, events e where p.id = ? and e.id = ?"
	err := s.pool.GetContext(ctx, &d, s.pool.Rebind(query), t.Args.Endpoint, t.Args.Event)
	if errors.Is(err, sql.ErrNoRows) {
		return falldue.Discard(errors.New("the endpoint was removed"))
	}
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, strings.NewReader(d.Body))
	if err != nil {
		return falldue.Discard(err)
	}
	id := strconv.FormatInt(t.ID, 10) // the same in every attempt: an endpoint ignores those that it has accepted
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Signature", signature(d.Secret, id, d.Body))
	response, err := s.client.Do(request)
	if err != nil {
		return err // retried under the policy
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16) // so that the connection can be used again
	if response.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("the endpoint answers %s", response.Status)
	if response.StatusCode == http.StatusGone {
		return falldue.Discard(err)
	}
	// The header's other form, a date, is rare, and the policy serves it, too.
	if seconds, invalid := strconv.Atoi(response.Header.Get("Retry-After")); invalid == nil {
		return falldue.RetryAfter(time.Duration(min(seconds, 24*60*60))*time.Second, err)
	}
	return err
}

// signature returns the signature of a delivery.
func signature(secret, id, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(id + "." + body))
	return hex.EncodeToString(mac.Sum(nil))
}
