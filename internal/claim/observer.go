package claim

import (
	"time"

	"github.com/falldue/falldue/internal/store"
)

// Observer is told of statements that find and claim tasks. Errors are those of the
// database.
type Observer interface {
	// Swept is told how many lanes a search of a queue found that began at start.
	Swept(queue string, lanes int, start time.Time, err error)
	// Claimed is told what a claim of up to wanted tasks took.
	Claimed(queue string, wanted int, claims []*store.Claim, start time.Time, err error)
}
