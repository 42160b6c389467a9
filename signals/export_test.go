package signals

import (
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/hooks"
)

// What livez and readyz decide.
var (
	NotLive  = notLive
	NotReady = notReady
)

// SetNow sets the clock of a sampler.
func SetNow(s *Sampler, now func() time.Time) { s.now = now }

// Statements returns how many statements a queue has sent.
func Statements(q *falldue.Queue) int64 { return hooks.StoreOf(q).Statements() }
