package lease

import (
	"log/slog"

	"github.com/falldue/falldue/internal/retry"
	"github.com/falldue/falldue/internal/store"
)

// events logs failures to extend leases. It has one method for each log line.
type events struct{ log *slog.Logger }

func (e events) extendFailed(tasks int, err error) {
	e.log.Warn("falldue: cannot extend leases", "tasks", tasks, retry.Failed(err))
}

// extendRefused reports a lease that the database refuses to extend.
func (e events) extendRefused(c *store.Claim, err error) {
	e.log.Warn("falldue: cannot extend leases", "task", c.ID, "kind", c.From.Kind, "error", err)
}
