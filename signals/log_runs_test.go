package signals_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/signalstest"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/signals"
)

// traced adds a text of the context, as handlers of slog that know traces do.
type traced struct{ slog.Handler }

type traceKey struct{}

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		r.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, r)
}

func TestEachRunHasALine(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		q, _ := signalstest.Queue(t, engine, falldue.Config{Logger: slog.New(slog.DiscardHandler)})
		var text bytes.Buffer
		q.Use(func(next falldue.HandlerFunc) falldue.HandlerFunc {
			return func(ctx context.Context, r *falldue.Run) error {
				return next(context.WithValue(ctx, traceKey{}, "4bf9"), r)
			}
		}, signals.LogRuns(slog.New(traced{slog.NewJSONHandler(&text, nil)}), signals.LogOptions{}))
		signalstest.RunAll(t, q)
		got := map[string]int{}
		for lines := json.NewDecoder(&text); lines.More(); {
			var line map[string]any
			if err := lines.Decode(&line); err != nil {
				t.Fatal(err)
			}
			outcome, level := falldue.Outcome(line["outcome"].(string)), line["level"].(string)
			got[string(outcome)]++
			want := "INFO"
			switch {
			case outcome == falldue.OutcomeDead, outcome == falldue.OutcomeDiscarded:
				want = "ERROR"
			case signals.Failed(outcome):
				want = "WARN"
			}
			_, failed := line["error"]
			unfailed := []falldue.Outcome{falldue.OutcomeDone, falldue.OutcomeSnoozed, falldue.OutcomeRepeated}
			if level != want || line["msg"] != "falldue: run" || line["kind"] != "pay" || line["queue"] != "default" || line["attempt"] != 1.0 ||
				line["task"] == nil || line["took"] == nil || line["lag"] == nil || failed == slices.Contains(unfailed, outcome) || line["trace_id"] != "4bf9" {
				t.Errorf("a line is %v", line)
			}
			if stack, ok := line["stack"].(string); ok {
				got["stack"]++
				if stack == "" {
					t.Error("a stack is empty")
				}
			}
		}
		want := map[string]int{"done": 2, "retried": 2, "dead": 1, "discarded": 1, "snoozed": 1, "repeated": 1, "retried_after": 1, "cancelled": 1, "stack": 1}
		for name, n := range want {
			if got[name] != n {
				t.Errorf("lines are %v, want %v", got, want)
			}
		}
	})
}

func TestLinesOfSuccessesMayBeLeftOut(t *testing.T) {
	t.Parallel()
	q, _ := signalstest.Queue(t, testdb.SQLite, falldue.Config{Logger: slog.New(slog.DiscardHandler)})
	var text bytes.Buffer
	q.Use(signals.LogRuns(slog.New(slog.NewJSONHandler(&text, nil)), signals.LogOptions{SampleDone: -1}))
	signalstest.RunAll(t, q)
	if bytes.Contains(text.Bytes(), []byte(`"outcome":"done"`)) || bytes.Count(text.Bytes(), []byte("\n")) != len(signalstest.Outcomes)-2 {
		t.Errorf("the log has\n%s", text.Bytes())
	}
}
