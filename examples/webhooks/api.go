package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/signals"
)

// routes returns the routes of the API. A real service signs tenants and operators in before them.
func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tenants/{tenant}/endpoints", answer(s.register))
	mux.HandleFunc("DELETE /tenants/{tenant}/endpoints/{id}", answer(s.remove))
	mux.HandleFunc("POST /tenants/{tenant}/events", answer(s.publish))
	mux.HandleFunc("GET /tenants/{tenant}/dead", answer(s.dead))
	mux.HandleFunc("POST /tenants/{tenant}/dead/replay", answer(s.replay))
	mux.Handle("/ops/", http.StripPrefix("/ops", s.page))
	mux.Handle("/health/", signals.Health(s.queue))
	return mux
}

// answer returns a handler that writes the value of get as JSON.
func answer(get func(ctx context.Context, r *http.Request, tenant string) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 60_000)
		status := http.StatusOK
		body, err := get(r.Context(), r, r.PathValue("tenant"))
		switch {
		case errors.Is(err, errInput) || errors.Is(err, falldue.ErrInvalid):
			status, body = http.StatusUnprocessableEntity, map[string]string{"error": err.Error()}
		case err != nil:
			slog.ErrorContext(r.Context(), "request failed", "request", r.Pattern, "error", err)
			status, body = http.StatusInternalServerError, map[string]string{"error": "try again later"}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

// errInput is wrapped by errors about the input of a tenant.
var errInput = errors.New("invalid")

// endpoint is a URL of a tenant that gets all events of the tenant.
type endpoint struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	URL    string `json:"url"`
	Secret string `json:"secret"` // signs deliveries
	Policy string `json:"policy"` // of its deliveries, or the empty text for the kind's
}

// policy returns the policy of the deliveries to an endpoint.
func (e endpoint) policy() backoff.Policy {
	if e.Policy == "" {
		return backoff.Policy{}
	}
	return backoff.ParseDeferred(e.Policy)
}

// register stores an endpoint with a new secret.
func (s *service) register(ctx context.Context, r *http.Request, tenant string) (any, error) {
	var e endpoint
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	e.ID, e.Tenant, e.Secret = rand.Text(), tenant, rand.Text()
	if u, err := url.Parse(e.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: url %q: must be a URL of http or https", errInput, e.URL)
	}
	if err := e.policy().Err(); err != nil || len(e.Policy) > 1000 {
		return nil, fmt.Errorf("%w: policy %q: must be a policy of up to 1,000 characters, such as delay 1m; attempts 20: %w", errInput, e.Policy, err)
	}
	_, err := s.pool.NamedExecContext(ctx, "insert into endpoints (id, tenant, url, secret, policy) values (:id, :tenant, :url, :secret, :policy)", e)
	return e, err
}

// remove deletes an endpoint and cancels its deliveries.
func (s *service) remove(ctx context.Context, r *http.Request, tenant string) (any, error) {
	id := r.PathValue("id")
	if _, err := s.pool.ExecContext(ctx, s.pool.Rebind("delete from endpoints where tenant = ? and id = ?"), tenant, id); err != nil {
		return nil, err
	}
	report, err := s.ops.CancelMany(ctx, ops.Filter{Kind: deliver.Name(), Key: key(tenant, id)})
	return map[string]int64{"cancelled": report.Changed}, err
}

// publish stores an event together with a delivery to each endpoint of the tenant, or nothing.
func (s *service) publish(ctx context.Context, r *http.Request, tenant string) (any, error) {
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
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
		tasks = append(tasks, deliver.Params(delivery{tenant, e.ID, event}, falldue.EnqueueOptions{Policy: e.policy()}))
	}
	if _, err := s.queue.EnqueueManyTx(ctx, tx, tasks...); err != nil {
		return nil, err
	}
	return map[string]int{"deliveries": len(tasks)}, tx.Commit()
}

// deadOf matches the dead deliveries of a tenant.
func deadOf(tenant string) ops.Filter {
	return ops.Filter{Kind: deliver.Name(), Key: falldue.KeyOf("tenant", tenant), State: falldue.StateDead}
}

// dead lists the first dead deliveries of a tenant.
func (s *service) dead(ctx context.Context, _ *http.Request, tenant string) (any, error) {
	page, err := s.ops.Tasks(ctx, deadOf(tenant), ops.ListOptions{})
	list := []map[string]any{}
	for _, t := range page.Tasks {
		list = append(list, map[string]any{"id": t.ID, "delivery": t.Payload, "attempts": t.Attempts, "error": t.LastError, "at": t.UpdatedAt})
	}
	return map[string]any{"dead": list, "more": page.More}, err
}

// replay retries the dead deliveries of a tenant, ten a second, in their order.
func (s *service) replay(ctx context.Context, _ *http.Request, tenant string) (any, error) {
	report, err := s.ops.RetryMany(ctx, deadOf(tenant), ops.BulkOptions{Spread: ops.Spread{Rate: 10}})
	return map[string]int64{"replayed": report.Changed}, err
}
