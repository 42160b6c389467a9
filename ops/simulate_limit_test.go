package ops

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
)

func TestSimulateGivesUp(t *testing.T) {
	t.Parallel()
	spins, err := backoff.Parse("0s")
	if err != nil {
		t.Fatal(err)
	}
	_, err = simulate(t.Context(), spins, Scenario{Outage: time.Hour, PerSecond: 1, Workers: 1}, 1000)
	if err == nil || !strings.Contains(err.Error(), "has not recovered after 1000 attempts") {
		t.Errorf("error %v", err)
	}
}
