package promfalldue

import "github.com/falldue/falldue/signals"

// Recorder returns the recorder of the metrics.
func (m *Metrics) Recorder() *signals.Recorder { return m.recorder }
