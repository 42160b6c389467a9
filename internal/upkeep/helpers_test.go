package upkeep

import (
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/store"
)

// head returns the head of a lane whose first task has an anchor that long ago.
func head(kind string, attempts int, ago time.Duration) store.Head {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	lane := store.Lane{State: statements.StateOpen, Kind: kind, Attempts: attempts}
	return store.Head{Head: statements.Head{Lane: lane, Anchor: now - ago.Microseconds(), Now: now}}
}
