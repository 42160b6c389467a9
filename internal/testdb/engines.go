package testdb

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// EnginesVariable is the name of the environment variable that lists the engines
// of a run.
const EnginesVariable = "FALLDUE_TEST_ENGINES"

// ServerVariable returns the name of the environment variable that holds the DSN of
// a running server of the engine, for a user who may create databases.
func ServerVariable(engine string) string {
	return "FALLDUE_TEST_" + strings.ToUpper(engine)
}

// ParseEngines parses the value of [EnginesVariable]: engines separated by commas.
func ParseEngines(value string) ([]string, error) {
	var engines []string
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if _, known := drivers[name]; !known {
			return nil, fmt.Errorf("%s=%s: %w", EnginesVariable, value, unknownEngine(name))
		}
		if !slices.Contains(engines, name) {
			engines = append(engines, name)
		}
	}
	return engines, nil
}

func unknownEngine(name string) error {
	return fmt.Errorf("testdb: unknown engine %q; the engines are %s, %s, %s, %s, %s, %s", name, Postgres, MySQL, MariaDB, SQLite, TiDB, Galera)
}

// DefaultEngines are the engines of a run for which [EnginesVariable] is not set.
var DefaultEngines = []string{Postgres, MySQL, MariaDB, SQLite}

// RunEngines returns the engines of this run.
func RunEngines() ([]string, error) {
	if value := os.Getenv(EnginesVariable); value != "" {
		return ParseEngines(value)
	}
	return DefaultEngines, nil
}
