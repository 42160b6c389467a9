package sqlgen

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// Tables says where falldue's tables are: Prefix, then tasks, attempts,
// policies; on PostgreSQL inside Schema.
type Tables struct {
	// Schema is a PostgreSQL schema, or empty for the connection's search
	// path. The other engines have no schemas inside a database.
	Schema string
	// Prefix starts the name of each table and index.
	Prefix string
}

var prefixPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$`)

// Validate reports a prefix or a schema that d cannot have.
func (t Tables) Validate(d dialect.Dialect) error {
	if !prefixPattern.MatchString(t.Prefix) {
		return fmt.Errorf("table prefix %q: allowed are 1 to 40 letters, digits and underscores, the first no digit", t.Prefix)
	}
	if t.Schema == "" {
		return nil
	}
	if d.Name() != dialect.Postgres {
		return fmt.Errorf("schema %q: only PostgreSQL has schemas, not %s", t.Schema, d.Name())
	}
	if len(t.Schema) > 63 || strings.ContainsRune(t.Schema, 0) {
		return fmt.Errorf("schema %q: at most 63 bytes are allowed, none of them NUL", t.Schema)
	}
	return nil
}

// Name is the quoted name of one of the tables, with its schema.
func (t Tables) Name(d dialect.Dialect, table string) string {
	name := d.Quote(t.Prefix + table)
	if t.Schema != "" {
		name = d.Quote(t.Schema) + "." + name
	}
	return name
}

func (t Tables) tasks(d dialect.Dialect) string    { return t.Name(d, "tasks") }
func (t Tables) attempts(d dialect.Dialect) string { return t.Name(d, "attempts") }
func (t Tables) policies(d dialect.Dialect) string { return t.Name(d, "policies") }
