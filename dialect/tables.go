package dialect

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tables describes where falldue's tables are. The name of each table is Prefix and then tasks, attempts, policies,
// progress, steps, permits, uniques, changes, workers, schedules, flows, edges, minutes, sample, audit or migrations.
type Tables struct {
	// Schema is the schema of the tables, on engines with [Caps].Schemas. If Schema is "", the connection's search path
	// determines the schema.
	Schema string
	// Prefix is the beginning of the name of each table and index. Prefix is required: 1 to 40 letters, digits or
	// underscores, not starting with a digit.
	Prefix string
}

var prefixPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$`)

// Validate returns an error if s cannot have tables with this prefix or schema.
func (t Tables) Validate(s Server) error {
	if !prefixPattern.MatchString(t.Prefix) {
		return fmt.Errorf("table prefix %.100q: must be 1 to 40 letters, digits or underscores, and must not start with a digit", t.Prefix)
	}
	own := s.Caps.ReservedPrefix
	if own != "" && strings.HasPrefix(strings.ToLower(t.Prefix), own) {
		return fmt.Errorf("table prefix %q: must not start with %s, which %s reserves", t.Prefix, own, s.Name())
	}
	if t.Schema == "" {
		return nil
	}
	if !s.Caps.Schemas {
		return fmt.Errorf("schema %.100q: must be empty: only PostgreSQL supports it, not %s", t.Schema, s.Name())
	}
	// Tools that run migrations split them at semicolons and look for comments
	// and lines of their own, even inside quotes.
	cut := strings.Contains(t.Schema, ";") || strings.Contains(t.Schema, "--") || strings.ContainsFunc(t.Schema, unicode.IsControl)
	if len(t.Schema) > 63 || cut || !utf8.ValidString(t.Schema) || own != "" && strings.HasPrefix(t.Schema, own) {
		return fmt.Errorf("schema %.100q: must be 1 to 63 bytes of UTF-8 without control characters, semicolons or --, and must not start with %q", t.Schema, own)
	}
	return nil
}

// Name returns the quoted name of a table, such as "tasks", with its prefix and schema.
func (t Tables) Name(d Dialect, table string) string {
	name := d.Quote(t.Prefix + table)
	if t.Schema != "" {
		name = d.Quote(t.Schema) + "." + name
	}
	return name
}
