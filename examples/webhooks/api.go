package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/signals"
)

// routes returns the routes of the API. A real service signs tenants and operators in before them.
func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tenants/{tenant}/endpoints", answer(s.postEndpoint))
	mux.HandleFunc("DELETE /tenants/{tenant}/endpoints/{id}", answer(s.deleteEndpoint))
	mux.HandleFunc("POST /tenants/{tenant}/events", answer(s.postEvent))
	mux.HandleFunc("GET /tenants/{tenant}/dead", answer(s.getDead))
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

// read decodes the body of a request.
func read(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errInput, err)
	}
	return nil
}

func (s *service) postEndpoint(ctx context.Context, r *http.Request, tenant string) (any, error) {
	var e endpoint
	if err := read(r, &e); err != nil {
		return nil, err
	}
	e.Tenant = tenant
	return s.register(ctx, e)
}

func (s *service) deleteEndpoint(ctx context.Context, r *http.Request, tenant string) (any, error) {
	report, err := s.remove(ctx, tenant, r.PathValue("id"))
	return map[string]int64{"cancelled": report.Changed}, err
}

func (s *service) postEvent(ctx context.Context, r *http.Request, tenant string) (any, error) {
	var body json.RawMessage
	if err := read(r, &body); err != nil {
		return nil, err
	}
	receipts, err := s.publish(ctx, tenant, body)
	return map[string]int{"deliveries": len(receipts)}, err
}

// dead matches the dead deliveries of a tenant.
func dead(tenant string) ops.Filter {
	return ops.Filter{Kind: deliver.Name(), Key: falldue.KeyOf("tenant", tenant), State: falldue.StateDead}
}

// getDead lists the first dead deliveries of a tenant.
func (s *service) getDead(ctx context.Context, _ *http.Request, tenant string) (any, error) {
	page, err := s.ops.Tasks(ctx, dead(tenant), ops.ListOptions{})
	list := []map[string]any{}
	for _, t := range page.Tasks {
		list = append(list, map[string]any{"id": t.ID, "delivery": t.Payload, "attempts": t.Attempts, "error": t.LastError, "at": t.UpdatedAt})
	}
	return map[string]any{"dead": list, "more": page.More}, err
}

// replay retries the dead deliveries of a tenant, ten a second, in their order.
func (s *service) replay(ctx context.Context, _ *http.Request, tenant string) (any, error) {
	report, err := s.ops.RetryMany(ctx, dead(tenant), ops.BulkOptions{Spread: ops.Spread{Rate: 10}})
	return map[string]int64{"replayed": report.Changed}, err
}
