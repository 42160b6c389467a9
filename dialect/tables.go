package dialect

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
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
func (t Tables) Validate(d Dialect) error {
	if !prefixPattern.MatchString(t.Prefix) {
		return fmt.Errorf("table prefix %.100q: allowed are 1 to 40 letters, digits and underscores, the first no digit", t.Prefix)
	}
	// PostgreSQL would take a table called pg_policies for its own.
	own := map[Name]string{Postgres: "pg_", SQLite: "sqlite_"}[d.Name()]
	if own != "" && strings.HasPrefix(strings.ToLower(t.Prefix), own) {
		return fmt.Errorf("table prefix %q: allowed on %s are all that do not begin with %s, which is the engine's own", t.Prefix, d.Name(), own)
	}
	if t.Schema == "" {
		return nil
	}
	if d.Name() != Postgres {
		return fmt.Errorf("schema %.100q: only PostgreSQL has schemas, not %s", t.Schema, d.Name())
	}
	// A tool that runs migrations cuts them into statements at a semicolon, and
	// looks for comments and lines of its own, without regard to quotes.
	cut := strings.Contains(t.Schema, ";") || strings.Contains(t.Schema, "--") || strings.ContainsFunc(t.Schema, unicode.IsControl)
	if len(t.Schema) > 63 || cut || !utf8.ValidString(t.Schema) || strings.HasPrefix(t.Schema, own) {
		return fmt.Errorf("schema %.100q: allowed are 1 to 63 bytes of UTF-8, without control characters, semicolons and --, not beginning with pg_", t.Schema)
	}
	return nil
}

// Name is the quoted name of one of the tables, with its schema.
func (t Tables) Name(d Dialect, table string) string {
	name := d.Quote(t.Prefix + table)
	if t.Schema != "" {
		name = d.Quote(t.Schema) + "." + name
	}
	return name
}
