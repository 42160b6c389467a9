// Package promfalldue exports falldue's metrics to Prometheus. Three lines add them to a program:
//
//	m, err := promfalldue.New(prometheus.DefaultRegisterer, promfalldue.Config{})
//	q, err := falldue.New(db, falldue.Config{Hooks: m.Hooks()})
//	m.Observe(q)
//
// Serve the metrics with promhttp. Exemplars need promhttp's option EnableOpenMetrics. Package signals lists all
// metrics.
package promfalldue

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/signals"
)

// Config contains the settings of [Metrics]. The zero value is ready for use.
type Config struct {
	// MaxKinds is the maximum number of kinds with separate label values. Further kinds count as "other". Defaults to 200.
	MaxKinds int
	// Exemplar returns the labels of an exemplar, such as trace_id, from the context of a handler or an enqueue, or nil
	// for no exemplar. Defaults to nil: no exemplars.
	Exemplar func(context.Context) prometheus.Labels
	// Sampler configures the reads of the database's state.
	Sampler signals.SamplerConfig
}

// Metrics are falldue's metrics in one process. They are a [prometheus.Collector].
type Metrics struct {
	cfg      Config
	recorder *signals.Recorder
	vectors  []prometheus.Collector
	descs    map[*signals.Metric]*prometheus.Desc // of the state
	queue    atomic.Pointer[observed]
}

// observed is a queue and its sampler.
type observed struct {
	queue   *falldue.Queue
	sampler *signals.Sampler
}

// New returns metrics that are registered with reg, or with no registry if reg is nil. It returns the error of
// reg.Register, wrapped, for example if metrics with the same names are already registered.
func New(reg prometheus.Registerer, cfg Config) (*Metrics, error) {
	m := &Metrics{cfg: cfg, descs: map[*signals.Metric]*prometheus.Desc{}}
	b := backend{exemplar: cfg.Exemplar, of: map[*signals.Metric]func(...string) signals.Series{}}
	for _, metric := range signals.Metrics() {
		if metric.Sampled() {
			m.descs[metric] = prometheus.NewDesc(metric.Name, metric.Help, metric.Labels, nil)
		} else {
			m.vectors = append(m.vectors, b.add(metric))
		}
	}
	m.recorder = signals.NewRecorder(b, signals.RecorderConfig{MaxKinds: cfg.MaxKinds})
	if reg == nil {
		return m, nil
	}
	if err := reg.Register(m); err != nil {
		return m, fmt.Errorf("promfalldue: register the metrics: %w", err)
	}
	return m, nil
}

// Hooks returns the hooks for [falldue.Config]. [signals.JoinHooks] joins these hooks with your own.
func (m *Metrics) Hooks() falldue.Hooks { return m.recorder.Hooks() }

// Observe adds the middleware that measures enqueues and runs to a queue, and exports the state of
// its database. Call it once, before [falldue.Queue.Run].
func (m *Metrics) Observe(q *falldue.Queue) {
	q.Use(m.recorder.Run())
	q.UseEnqueue(m.recorder.Enqueue())
	m.queue.Store(&observed{q, signals.NewSampler(q, m.cfg.Sampler)})
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	for _, v := range m.vectors {
		v.Describe(descs)
	}
	for _, metric := range signals.Metrics() {
		if d := m.descs[metric]; d != nil {
			descs <- d
		}
	}
}

// Collect implements [prometheus.Collector]. It waits for the database for up to
// [signals.SamplerConfig].Timeout, and only if the last sample is old.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	o := m.queue.Load()
	if o != nil {
		m.recorder.Begin(o.queue)
	}
	for _, v := range m.vectors {
		v.Collect(metrics)
	}
	if o == nil {
		return
	}
	o.sampler.Collect(context.Background(), func(metric *signals.Metric, v float64, values ...string) {
		kind := prometheus.GaugeValue
		if metric.Type == signals.Counter {
			kind = prometheus.CounterValue
		}
		metrics <- prometheus.MustNewConstMetric(m.descs[metric], kind, v, values...)
	})
}

// backend makes series of vectors.
type backend struct {
	exemplar func(context.Context) prometheus.Labels
	of       map[*signals.Metric]func(values ...string) signals.Series
}

// Series implements [signals.Backend].
func (b backend) Series(m *signals.Metric, values ...string) signals.Series {
	return b.of[m](values...)
}

// nativeFactor is the factor between native buckets, for servers that take native histograms.
const nativeFactor = 1.1

// add makes a vector for a metric.
func (b backend) add(m *signals.Metric) prometheus.Collector {
	switch m.Type {
	case signals.Counter:
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
		b.of[m] = func(values ...string) signals.Series { return counter{v.WithLabelValues(values...)} }
		return v
	case signals.Gauge:
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
		b.of[m] = func(values ...string) signals.Series { return gauge{v.WithLabelValues(values...)} }
		return v
	default:
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: m.Name, Help: m.Help, Buckets: m.Buckets, NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: 160,
		}, m.Labels)
		b.of[m] = func(values ...string) signals.Series {
			return histogram{v.WithLabelValues(values...), b.exemplar}
		}
		return v
	}
}

type counter struct{ prometheus.Counter }

func (c counter) Record(_ context.Context, v float64) { c.Add(v) }

type gauge struct{ prometheus.Gauge }

func (g gauge) Record(_ context.Context, v float64) { g.Set(v) }

type histogram struct {
	prometheus.Observer
	exemplar func(context.Context) prometheus.Labels
}

func (h histogram) Record(ctx context.Context, v float64) {
	if h.exemplar != nil {
		if labels := h.exemplar(ctx); labels != nil {
			h.Observer.(prometheus.ExemplarObserver).ObserveWithExemplar(v, labels) // histograms of the client are such observers
			return
		}
	}
	h.Observe(v)
}
