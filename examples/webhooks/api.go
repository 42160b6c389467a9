package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/signals"
)

// API returns the routes of the API. A real service signs tenants and operators in before them.
func (s *Service) API() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tenants/{tenant}/endpoints", s.answer(s.postEndpoint))
	mux.HandleFunc("DELETE /tenants/{tenant}/endpoints/{id}", s.answer(s.deleteEndpoint))
	mux.HandleFunc("POST /tenants/{tenant}/events", s.answer(s.postEvent))
	mux.HandleFunc("GET /tenants/{tenant}/dead", s.answer(s.getDead))
	mux.HandleFunc("POST /tenants/{tenant}/dead/replay", s.answer(s.replay))
	mux.Handle("/ops/", http.StripPrefix("/ops", s.page))
	mux.Handle("/", s.Probes())
	return mux
}

// Probes returns the routes for Kubernetes and Prometheus, of the API and of workers.
func (s *Service) Probes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/health/", signals.Health(s.queue))
	mux.Handle("/metrics", promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}

// answer returns a handler that writes the value of get as JSON, within a span.
func (s *Service) answer(get func(r *http.Request, tenant string) (body any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, span := s.tracer.Start(r.Context(), r.Pattern, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		r.Body = http.MaxBytesReader(w, r.Body, 60_000)
		tenant := r.PathValue("tenant")
		body, err := any(nil), error(nil)
		if len(tenant) > 100 {
			err = fmt.Errorf("%w: tenant %q: must have up to 100 bytes", errInput, tenant)
		} else {
			body, err = get(r.WithContext(ctx), tenant)
		}
		status := http.StatusOK
		switch {
		case errors.Is(err, errInput) || errors.Is(err, falldue.ErrInvalid):
			status, body = http.StatusUnprocessableEntity, map[string]string{"error": err.Error()}
		case err != nil:
			slog.ErrorContext(ctx, "request failed", "request", r.Pattern, "error", err)
			status, body = http.StatusInternalServerError, map[string]string{"error": "try again later"}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

func (s *Service) postEndpoint(r *http.Request, tenant string) (any, error) {
	var e Endpoint
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	e.Tenant = tenant
	return s.register(r.Context(), e)
}

func (s *Service) deleteEndpoint(r *http.Request, tenant string) (any, error) {
	report, err := s.remove(r.Context(), tenant, r.PathValue("id"))
	return map[string]int64{"cancelled": report.Changed}, err
}

func (s *Service) postEvent(r *http.Request, tenant string) (any, error) {
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	event, deliveries, err := s.publish(r.Context(), tenant, body)
	return map[string]any{"event": event, "deliveries": deliveries}, err
}

// dead matches the dead deliveries of a tenant.
func dead(tenant string) ops.Filter {
	return ops.Filter{Kind: deliver.Name(), Key: falldue.KeyOf("tenant", tenant), State: falldue.StateDead}
}

// getDead lists the dead deliveries of a tenant, by pages: after=ID has the next one.
func (s *Service) getDead(r *http.Request, tenant string) (any, error) {
	after, err := strconv.ParseInt("0"+r.FormValue("after"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	page, err := s.ops.Tasks(r.Context(), dead(tenant), ops.ListOptions{After: after})
	list := []map[string]any{}
	for _, t := range page.Tasks {
		list = append(list, map[string]any{"id": t.ID, "delivery": t.Payload, "attempts": t.Attempts, "error": t.LastError, "at": t.UpdatedAt})
	}
	return map[string]any{"dead": list, "more": page.More, "after": page.Next}, err
}

// replay retries the dead deliveries of a tenant, ten a second, in their order.
func (s *Service) replay(r *http.Request, tenant string) (any, error) {
	report, err := s.ops.RetryMany(r.Context(), dead(tenant), ops.BulkOptions{Spread: ops.Spread{Rate: 10}})
	return map[string]int64{"replayed": report.Changed}, err
}

// Serve answers requests until ctx ends, and finishes those that have begun.
func Serve(ctx context.Context, listener net.Listener, routes http.Handler) error {
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-stopped
}
