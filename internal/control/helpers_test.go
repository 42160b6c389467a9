package control

import (
	"log/slog"

	"github.com/falldue/falldue/internal/control/controltest"
)

// readerOf returns a reader of changes.
func readerOf(table changesTable, effects effects, log *slog.Logger) *ChangeReader {
	health := NewHealthReport()
	return NewChangeReader(table, NewOverrides(controltest.Database{}, nil, effects, health, log), effects, health, log)
}
