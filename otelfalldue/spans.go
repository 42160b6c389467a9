package otelfalldue

import (
	"context"
	"encoding/json"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/signals"
)

// system is the value of messaging.system.
const system = "falldue"

// enqueueSpan makes a span for a call that enqueues within a trace. If the span is sampled, its
// context is stored in the metadata of the tasks. A call outside of a trace makes no span:
// otherwise each process would begin a trace for the same tick of a schedule.
func (s *Signals) enqueueSpan(next falldue.EnqueueFunc) falldue.EnqueueFunc {
	return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
		if len(tasks) == 0 || !trace.SpanContextFromContext(ctx).IsValid() {
			return next(ctx, tx, tasks)
		}
		queue, kind := signals.QueueOf(&tasks[0]), tasks[0].Kind()
		for i := range tasks {
			if signals.QueueOf(&tasks[i]) != queue {
				queue = ""
			}
			if tasks[i].Kind() != kind {
				kind = ""
			}
		}
		list := []attribute.KeyValue{
			attribute.String("messaging.system", system), attribute.String("messaging.operation.name", "enqueue"), attribute.String("messaging.operation.type", "send"),
		}
		list = addText(list, "messaging.destination.name", queue)
		list = addText(list, "messaging.falldue.kind", kind)
		if len(tasks) > 1 {
			list = append(list, attribute.Int("messaging.batch.message_count", len(tasks)))
		}
		if tx != nil { // which may still roll back
			list = append(list, attribute.Bool("messaging.falldue.transaction", true))
		}
		name := "enqueue"
		if kind != "" {
			name += " " + kind
		} else if queue != "" {
			name += " " + queue
		}
		ctx, span := s.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(list...))
		defer span.End()
		if span.SpanContext().IsSampled() {
			s.inject(ctx, tasks)
		}
		receipts, err := next(ctx, tx, tasks)
		if err != nil {
			fail(span, err)
		} else if len(receipts) == 1 {
			span.SetAttributes(attribute.Int64("messaging.message.id", receipts[0].ID), attribute.Bool("messaging.falldue.existed", receipts[0].Existed))
		}
		return receipts, err
	}
}

// maxMetadata is the greatest size of a task's metadata as JSON.
const maxMetadata = 10 << 10

// inject puts the context of a span into the metadata of tasks. A task that has no room for it, or
// that has a context already, stays as it is.
func (s *Signals) inject(ctx context.Context, tasks []falldue.EnqueueParams) {
	carrier := propagation.MapCarrier{}
	s.cfg.Propagator.Inject(ctx, carrier)
	added, err := json.Marshal(carrier)
	if err != nil || len(carrier) == 0 {
		return
	}
	for i := range tasks {
		own := tasks[i].Options().Metadata
		if _, has := own["traceparent"]; has {
			continue
		}
		if len(own) > 0 {
			if stored, err := json.Marshal(own); err != nil || len(stored)+len(added) > maxMetadata {
				continue
			}
		}
		for name, text := range carrier {
			tasks[i].AddMetadata(name, text)
		}
	}
}

// runSpan makes a span of each run.
func (s *Signals) runSpan(next falldue.HandlerFunc) falldue.HandlerFunc {
	return func(ctx context.Context, run *falldue.Run) error {
		from := s.cfg.Propagator.Extract(ctx, propagation.MapCarrier(run.Metadata))
		list := []attribute.KeyValue{
			attribute.String("messaging.system", system), attribute.String("messaging.operation.name", "process"), attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.destination.name", run.Queue), attribute.Int64("messaging.message.id", run.ID), attribute.String("messaging.client.id", run.Worker),
			attribute.String("messaging.falldue.kind", run.Kind), attribute.Int("messaging.falldue.attempt", run.Attempt), attribute.Int("messaging.falldue.max_attempts", run.MaxAttempts),
			attribute.Int("messaging.falldue.priority", run.Priority), attribute.Int64("messaging.falldue.fence", run.Fence),
			attribute.Float64("messaging.falldue.lag_seconds", max(run.StartedAt.Sub(run.DueAt), 0).Seconds()),
			attribute.Float64("messaging.falldue.limit_wait_seconds", max(run.ReadyAt.Sub(run.DueAt), 0).Seconds()),
		}
		if s.cfg.Keys {
			list = addText(list, "messaging.falldue.key", run.Key)
		}
		options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(list...)}
		if s.cfg.Child == nil || !s.cfg.Child(run) {
			options = append(options, trace.WithNewRoot())
			if creation := trace.SpanContextFromContext(from); creation.IsValid() {
				options = append(options, trace.WithLinks(trace.Link{SpanContext: creation}))
			}
		}
		ctx, span := s.tracer.Start(from, "process "+run.Kind, options...)
		defer span.End()
		err := next(ctx, run)
		outcome := run.Outcome(err)
		span.SetAttributes(attribute.String("messaging.falldue.outcome", string(outcome)))
		if signals.Failed(outcome) {
			fail(span, err)
		}
		return err
	}
}

// fail marks a span as failed. A lost run may have no error.
func fail(span trace.Span, err error) {
	if !span.IsRecording() {
		return
	}
	if err == nil {
		err = falldue.ErrLeaseLost
	}
	span.SetStatus(codes.Error, err.Error())
	span.SetAttributes(attribute.String("error.type", signals.ErrorType(err)))
	if p, ok := errors.AsType[*falldue.PanicError](err); ok {
		span.RecordError(err, trace.WithAttributes(attribute.String("exception.stacktrace", p.Stack)))
		return
	}
	span.RecordError(err)
}

// addText adds an attribute, unless its text is empty.
func addText(list []attribute.KeyValue, key, text string) []attribute.KeyValue {
	if text == "" {
		return list
	}
	return append(list, attribute.String(key, text))
}
