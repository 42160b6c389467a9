package claim

import (
	"time"

	"github.com/falldue/falldue/internal/store"
)

// Observer is told of statements that find and claim tasks. The errors come from the database.
type Observer interface {
	// Swept is told how many lanes a search that began at start has found.
	Swept(queue string, lanes int, start time.Time, err error)
	// Claimed is told of a claim of up to wanted tasks, which began at start.
	Claimed(queue string, wanted int, claims []*store.Claim, start time.Time, err error)
}
