package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/internal/chart/charttest"
)

// TestPictureIsUpToDate compares docs/concepts/life.svg with the picture that the command draws.
func TestPictureIsUpToDate(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "..", "docs", "concepts", "life.svg")
	if got, err := os.ReadFile(file); err != nil || string(got) != life().SVG(chart.Auto) {
		t.Errorf("%s is not the command's picture (error %v): go run ./internal/chart/life > docs/concepts/life.svg draws it", file, err)
	}
}

func TestPictureHasRoomForItsTexts(t *testing.T) {
	t.Parallel()
	for _, fault := range charttest.Faults(life()) {
		t.Error(fault)
	}
}

// TestPictureShowsThePhases: each phase that a task passes on its way has a box.
func TestPictureShowsThePhases(t *testing.T) {
	t.Parallel()
	svg := life().SVG(chart.Light)
	for _, phase := range []falldue.Phase{
		falldue.PhaseBlocked, falldue.PhaseScheduled, falldue.PhaseDue, falldue.PhaseRunning, falldue.PhaseBackingOff,
		falldue.PhaseSnoozed, falldue.PhaseDone, falldue.PhaseDead, falldue.PhaseCancelled,
	} {
		if !strings.Contains(svg, ">"+string(phase)+"<") {
			t.Errorf("the picture has no box for the phase %s", phase)
		}
	}
}
