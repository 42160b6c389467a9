package main

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/promfalldue"
	"github.com/falldue/falldue/signals"
)

// machines returns a handler that answers Kubernetes' probes and, with --metrics, Prometheus. These programs know
// neither the page's names nor its users. The page answers all other requests.
func (d *dashboard) machines(q *falldue.Queue, page http.Handler) (http.Handler, error) {
	health, metrics := signals.Health(q), page
	if d.metrics {
		reg := prometheus.NewRegistry()
		m, err := promfalldue.New(reg, promfalldue.Config{})
		if err != nil {
			return nil, err
		}
		m.Observe(q)
		metrics = promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/metrics":
			metrics.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/health/"):
			health.ServeHTTP(w, r)
		default:
			page.ServeHTTP(w, r)
		}
	}), nil
}
