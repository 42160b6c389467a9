package otelfalldue

import "github.com/falldue/falldue/signals"

// Recorder returns the recorder of the signals.
func (s *Signals) Recorder() *signals.Recorder { return s.recorder }
