// Package otelfalldue exports falldue's traces and metrics to OpenTelemetry. Three lines add them to
// a program:
//
//	s, err := otelfalldue.New(otelfalldue.Config{})
//	q, err := falldue.New(db, falldue.Config{Hooks: s.Hooks()})
//	err = s.Observe(q)
//
// An enqueue call within a trace creates a span, and the metadata of the tasks stores the span's context. Each run
// creates the root span of a new trace, with a link to the enqueue's span. Package signals lists all metrics.
package otelfalldue

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/signals"
)

// scope is the name of the tracer and the meter.
const scope = "github.com/falldue/falldue/otelfalldue"

// Config contains the settings of [Signals]. The zero value is ready for use.
type Config struct {
	// TracerProvider and MeterProvider default to the global providers of package otel.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Propagator writes the context of an enqueue into metadata and reads it. Defaults to W3C trace context. A propagator
	// for baggage also stores the baggage, unencrypted.
	Propagator propagation.TextMapPropagator
	// Child reports whether a run's span is a child of the enqueue's span, in the same trace, instead of the root of a new
	// trace with a link. Defaults to nil: never. A sampler decides for each new root separately, and can use the links.
	Child func(*falldue.Run) bool
	// Keys adds the keys of tasks to spans (messaging.falldue.key). Keys may contain personal data.
	Keys bool
	// MaxKinds is the maximum number of kinds with separate attribute values in metrics. Further kinds count as "other".
	// Defaults to 200.
	MaxKinds int
	// Sampler configures the reads of the database's state.
	Sampler signals.SamplerConfig
}

// Signals are the traces and metrics of one process.
type Signals struct {
	cfg      Config
	tracer   trace.Tracer
	meter    metric.Meter
	recorder *signals.Recorder
}

// New returns the Signals of a process. It returns an error if the meter cannot create an instrument.
func New(cfg Config) (*Signals, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.TraceContext{}
	}
	s := &Signals{cfg: cfg, tracer: cfg.TracerProvider.Tracer(scope), meter: cfg.MeterProvider.Meter(scope)}
	b := backend{}
	for _, m := range signals.Metrics() {
		if !m.Sampled() {
			if err := b.add(s.meter, m); err != nil {
				return nil, fmt.Errorf("otelfalldue: make the instrument %s: %w", m.OTel, err)
			}
		}
	}
	s.recorder = signals.NewRecorder(b, signals.RecorderConfig{MaxKinds: cfg.MaxKinds})
	return s, nil
}

// Hooks returns the hooks for [falldue.Config]. [signals.JoinHooks] joins these hooks with your own.
func (s *Signals) Hooks() falldue.Hooks { return s.recorder.Hooks() }

// Observe adds the middleware that makes spans and measures enqueues and runs to a queue, and exports
// the state of its database. Call it once, before [falldue.Queue.Run], and before other middleware
// that should run inside the spans, such as [signals.LogRuns].
func (s *Signals) Observe(q *falldue.Queue) error {
	q.Use(s.runSpan, s.recorder.Run())
	q.UseEnqueue(s.enqueueSpan, s.recorder.Enqueue())
	sampler := signals.NewSampler(q, s.cfg.Sampler)
	gauges := map[*signals.Metric]metric.Float64Observable{}
	var all []metric.Observable
	for _, m := range signals.Metrics() {
		if !m.Sampled() {
			continue
		}
		var err error
		if m.Type == signals.Counter {
			gauges[m], err = s.meter.Float64ObservableCounter(m.OTel, metric.WithUnit(m.Unit), metric.WithDescription(m.Help))
		} else {
			gauges[m], err = s.meter.Float64ObservableGauge(m.OTel, metric.WithUnit(m.Unit), metric.WithDescription(m.Help))
		}
		if err != nil {
			return fmt.Errorf("otelfalldue: make the instrument %s: %w", m.OTel, err)
		}
		all = append(all, gauges[m])
	}
	_, err := s.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		s.recorder.Begin(q)
		sampler.Collect(ctx, func(m *signals.Metric, v float64, values ...string) {
			o.ObserveFloat64(gauges[m], v, metric.WithAttributes(attributes(m, values)...))
		})
		return nil
	}, all...)
	if err != nil {
		return fmt.Errorf("otelfalldue: register the callback that reads the state: %w", err)
	}
	return nil
}

// attributes returns the attributes of a series.
func attributes(m *signals.Metric, values []string) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, len(values)+2)
	if m.OfMessaging() {
		list = append(list, attribute.String("messaging.system", system))
	}
	if m.Operation != "" {
		list = append(list, attribute.String("messaging.operation.name", m.Operation))
	}
	for i, label := range m.Labels {
		if values[i] != "" {
			list = append(list, attribute.String(signals.Attribute(label), values[i]))
		}
	}
	return list
}

// backend makes series of instruments.
type backend map[*signals.Metric]func(set metric.MeasurementOption) signals.Series

// Series implements [signals.Backend].
func (b backend) Series(m *signals.Metric, values ...string) signals.Series {
	return b[m](metric.WithAttributeSet(attribute.NewSet(attributes(m, values)...)))
}

// add makes an instrument for a metric.
func (b backend) add(meter metric.Meter, m *signals.Metric) error {
	switch m.Type {
	case signals.Counter:
		c, err := meter.Int64Counter(m.OTel, metric.WithUnit(m.Unit), metric.WithDescription(m.Help))
		b[m] = func(set metric.MeasurementOption) signals.Series { return counter{c, []metric.AddOption{set}} }
		return err
	case signals.Gauge:
		g, err := meter.Float64Gauge(m.OTel, metric.WithUnit(m.Unit), metric.WithDescription(m.Help))
		b[m] = func(set metric.MeasurementOption) signals.Series { return gauge{g, []metric.RecordOption{set}} }
		return err
	default:
		h, err := meter.Float64Histogram(m.OTel, metric.WithUnit(m.Unit), metric.WithDescription(m.Help), metric.WithExplicitBucketBoundaries(m.Buckets...))
		b[m] = func(set metric.MeasurementOption) signals.Series { return gauge{h, []metric.RecordOption{set}} }
		return err
	}
}

type counter struct {
	metric.Int64Counter
	set []metric.AddOption
}

func (c counter) Record(ctx context.Context, v float64) { c.Add(ctx, int64(v), c.set...) }

// gauge is a gauge or a histogram.
type gauge struct {
	instrument interface {
		Record(ctx context.Context, v float64, options ...metric.RecordOption)
	}
	set []metric.RecordOption
}

func (g gauge) Record(ctx context.Context, v float64) { g.instrument.Record(ctx, v, g.set...) }
