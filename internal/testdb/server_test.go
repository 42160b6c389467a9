package testdb

import (
	"slices"
	"strings"
	"testing"
)

func TestServerThatDoesNotAnswerFailsByNameOfItsVariable(t *testing.T) {
	for engine, dsn := range map[string]string{
		Postgres: "postgres://nobody@127.0.0.1:1/none?sslmode=disable",
		MySQL:    "nobody@tcp(127.0.0.1:1)/none",
		MariaDB:  "nobody@tcp(127.0.0.1:1)/none",
		TiDB:     "nobody@tcp(127.0.0.1:1)/none",
	} {
		t.Setenv(ServerVariable(engine), dsn)
		_, err := findServer(engine)
		if err == nil || !strings.Contains(err.Error(), ServerVariable(engine)) || !strings.Contains(err.Error(), "unset the variable") {
			t.Errorf("%s: got %v, want an error that names %s and says what to do", engine, err, ServerVariable(engine))
		}
	}
}

func TestPostgresDSNMustBeAURL(t *testing.T) {
	t.Setenv(ServerVariable(Postgres), "host=127.0.0.1 user=postgres")
	_, err := findServer(Postgres)
	if err == nil || !strings.Contains(err.Error(), "postgres://user:password@") {
		t.Errorf("got %v, want an error that shows the form of the DSN", err)
	}
}

func TestMariaDBDoesNotPassForMySQL(t *testing.T) {
	t.Parallel()
	other := map[string]string{MySQL: MariaDB, MariaDB: TiDB, TiDB: MySQL}
	for _, engine := range Engines(t) {
		if other[engine] == "" {
			continue
		}
		dsn := DSN(t, engine)
		if _, err := Check(t.Context(), engine, dsn); err != nil {
			t.Error(err)
		}
		if version, err := Check(t.Context(), other[engine], dsn); err == nil {
			t.Errorf("%s passed for %s", version, other[engine])
		}
	}
}

func TestParseEngines(t *testing.T) {
	t.Parallel()
	got, err := ParseEngines("mysql, sqlite,mysql")
	if want := []string{MySQL, SQLite}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, value := range []string{"oracle", "postgres,", ""} {
		if engines, err := ParseEngines(value); err == nil || !strings.Contains(err.Error(), "the engines are") {
			t.Errorf("ParseEngines(%q) = %v, %v, want an error that lists the engines", value, engines, err)
		}
	}
}
