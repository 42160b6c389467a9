package ops_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue/ops"
)

// TestSimulationsEndWithTheirContext: those of an outage that lasts and of many failures.
func TestSimulationsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := ops.Simulate(ctx, parse(t, "10s"), ops.Scenario{Outage: time.Hour, PerSecond: 1, Workers: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("Simulate: error %v", err)
	}
	if _, err := ops.Stampede(ctx, parse(t, "10s"), ops.Outage{Failures: 1000, Retries: 5}); !errors.Is(err, context.Canceled) {
		t.Errorf("Stampede: error %v", err)
	}
}
