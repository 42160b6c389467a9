package promfalldue_test

import (
	"log"
	"net/http"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/promfalldue"
	"github.com/falldue/falldue/signals"
)

func Example() {
	var db *sqlx.DB

	m, err := promfalldue.New(prometheus.DefaultRegisterer, promfalldue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	q, err := falldue.New(db, falldue.Config{Hooks: m.Hooks()})
	if err != nil {
		log.Fatal(err)
	}
	m.Observe(q)

	http.Handle("/metrics", promhttp.HandlerFor(prometheus.DefaultGatherer, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	http.Handle("/health/", signals.Health(q))
}
