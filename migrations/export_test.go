package migrations

import (
	"fmt"
	"maps"
)

// Add adds a migration to a migrator, as a later release may have it.
func (m *Migrator) Add(name, text string) error {
	files, ok := m.files.(textFS)
	if !ok {
		return fmt.Errorf("the files are a %T", m.files)
	}
	more := maps.Clone(files)
	more[name] = text
	m.files = more
	return nil
}
