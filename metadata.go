package falldue

import (
	"database/sql"
	"fmt"

	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// maxMetadata is the greatest size of a task's metadata as JSON, in bytes. It has room for the trace
// context and the baggage of W3C, which are 512 and 8,192 bytes at most.
const maxMetadata = 10 << 10

// storedMetadata returns the JSON to store for the metadata of a task with marks of falldue's own,
// NULL if there is neither.
func storedMetadata(metadata map[string]string, marks []string) (stored sql.Null[string], err error) {
	for name := range metadata {
		if prefix, reserved := store.ReservedMetadata(name); reserved {
			return stored, invalid("metadata %.100q; allowed are names that do not begin with %q", name, prefix)
		}
	}
	if metadata = store.Marked(metadata, marks); len(metadata) == 0 {
		return stored, nil
	}
	text, err := storable.JSON(metadata)
	if err == nil && len(text) > maxMetadata {
		err = fmt.Errorf("%d bytes as JSON; allowed are %d", len(text), maxMetadata)
	}
	if err != nil {
		return stored, invalid("metadata: %w", err)
	}
	return store.NotNull(string(text)), nil
}
