package testdb

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// EnginesVariable names the environment variable that chooses the engines of
// a run.
const EnginesVariable = "FALLDUE_TEST_ENGINES"

// ServerVariable is the name of the environment variable that holds the DSN
// of a running server of the engine, for a user who may create databases.
func ServerVariable(engine string) string {
	return "FALLDUE_TEST_" + strings.ToUpper(engine)
}

// ParseEngines reads the value of [EnginesVariable]: engines separated by
// commas.
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

// wanted returns the engines of this run. Which they are by default depends
// on what is at hand, which the program serve knows.
var wanted = sync.OnceValues(func() ([]string, error) {
	value := os.Getenv(EnginesVariable)
	if value == "" {
		var err error
		if value, err = serve("engines"); err != nil {
			return nil, err
		}
	}
	return ParseEngines(value)
})
