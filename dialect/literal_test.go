package dialect_test

import (
	"math"
	"testing"

	"github.com/falldue/falldue/dialect"
)

// A literal must be of the engine's double type: a bare 15 divides as an
// integer on PostgreSQL and SQLite, a bare 1.5 is a slow numeric on PostgreSQL
// and a DECIMAL with four digits of quotient on MySQL.
func TestLiteralIsADouble(t *testing.T) {
	t.Parallel()
	cases := []struct {
		v                       float64
		postgres, mysql, sqlite string
	}{
		{0, "0::float8", "0e0", "0.0"},
		{15, "15::float8", "15e0", "15.0"},
		{1.5, "1.5::float8", "1.5e0", "1.5"},
		{-2, "(-2::float8)", "(-2e0)", "(-2.0)"},
		{math.Copysign(0, -1), "(-0::float8)", "(-0e0)", "(-0.0)"},
		{3153600000, "3153600000::float8", "3153600000e0", "3153600000.0"},
		{1e-6, "0.000001::float8", "0.000001e0", "0.000001"},
		{1e-100, "1e-100::float8", "1e-100", "1e-100"},
		{1e100, "1e+100::float8", "1e+100", "1e+100"},
		{1.0 / 3, "0.3333333333333333::float8", "0.3333333333333333e0", "0.3333333333333333"},
	}
	for _, c := range cases {
		want := map[dialect.Name]string{
			dialect.Postgres: c.postgres, dialect.MySQL: c.mysql, dialect.MariaDB: c.mysql, dialect.TiDB: c.mysql, dialect.SQLite: c.sqlite,
		}
		for _, name := range dialect.Names {
			d, err := dialect.Of(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Literal(c.v); got != want[name] {
				t.Errorf("%s: Literal(%v) = %s, want %s", name, c.v, got, want[name])
			}
		}
	}
}
