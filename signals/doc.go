// Package signals provides metrics, log lines and health checks for falldue. It links only the
// standard library. Modules otelfalldue and promfalldue export the metrics to OpenTelemetry and
// Prometheus:
//
//	m, err := promfalldue.New(prometheus.DefaultRegisterer, promfalldue.Config{})
//	q, err := falldue.New(db, falldue.Config{Hooks: m.Hooks()})
//	m.Observe(q)
//
// [Metrics] is the table of all metrics. A [Recorder] measures what this process does, a [Sampler]
// reads the state of the database, [LogRuns] writes a line for each run, and [Health] answers the
// probes of Kubernetes. [JoinHooks] adds your own hooks.
package signals
