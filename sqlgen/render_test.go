package sqlgen

import (
	"fmt"
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/jmoiron/sqlx"
)

func dialectOf(t testing.TB, name dialect.Name) dialect.Dialect {
	t.Helper()
	d, err := dialect.Of(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What people read in explain, and paste into queries of their own, has no
// more in it than the formula needs.
func TestSQLIsReadable(t *testing.T) {
	t.Parallel()
	const arms = `case when "n" between 1 and 2147483647 then %s when "n" > 2147483647 then %s::float8 else 0::float8 end`
	for text, want := range map[string]string{
		"5m":                           `case when "n" >= 1 then 300::float8 else 0::float8 end`,
		"15s + n^4":                    fmt.Sprintf(arms, `least(15::float8 + power("n"::float8, 4::float8), 3153600000::float8)`, "3153600000"),
		"917m * atan(n^3 / 15)":        fmt.Sprintf(arms, `55020::float8 * atan(power("n"::float8, 3::float8) / 15::float8)`, "86425.21390025521"),
		"min(1h, 2^n)":                 fmt.Sprintf(arms, `least(3600::float8, power(2::float8, least("n"::float8, 332::float8)))`, "3600"),
		"5s * 52^((min(n, 10) - 1)/9)": fmt.Sprintf(arms, `5::float8 * power(52::float8, (least("n"::float8, 10::float8) - 1::float8) / 9::float8)`, "260"),
		"exp(min(n, 10))":              fmt.Sprintf(arms, `exp(least("n"::float8, 10::float8))`, "22026.465794806718"),
		"1h / (1 + exp(-n))":           fmt.Sprintf(arms, `3600::float8 / (1::float8 + exp(greatest((-"n"::float8), (-230::float8))))`, "3600"),
		"if(n < 3, 1m, 1h)":            fmt.Sprintf(arms, `case when "n"::float8 < 3::float8 then 60::float8 else 3600::float8 end`, "3600"),
		"1h / abs(n - 3)":              fmt.Sprintf(arms, `least(coalesce(3600::float8 / nullif(abs("n"::float8 - 3::float8), 0::float8), 0::float8), 3153600000::float8)`, "0.0000016763806374303636"),
		"60 - (n - (2 - 1 / n))":       fmt.Sprintf(arms, `greatest(60::float8 - ("n"::float8 - (2::float8 - 1::float8 / "n"::float8)), 0::float8)`, "0"),
	} {
		if got := formula(t, text).SQL(dialectOf(t, dialect.Postgres), `"n"`); got != want {
			t.Errorf("%s renders as\n%s\nwant\n%s", text, got, want)
		}
	}
}

func TestEachEngineHasItsSpelling(t *testing.T) {
	t.Parallel()
	f := formula(t, "min(1h, 2.5^n)")
	for name, want := range map[dialect.Name][2]string{
		dialect.Postgres: {
			`case when n between 1 and 2147483647 then least(3600::float8, power(2.5::float8, least(n::float8, 251::float8))) when n > 2147483647 then 3600::float8 else 0::float8 end`,
			`case when n between 1 and 2147483647 then floor(least(3600::float8, power(2.5::float8, least(n::float8, 251::float8))) * 1000000::float8 + 0.5::float8)::bigint when n > 2147483647 then 3600000000 else 0 end`,
		},
		dialect.MySQL: {
			`case when n between 1 and 2147483647 then least(3600e0, power(2.5e0, least((n + 0e0), 251e0))) when n > 2147483647 then 3600e0 else 0e0 end`,
			`case when n between 1 and 2147483647 then cast(floor(least(3600e0, power(2.5e0, least((n + 0e0), 251e0))) * 1000000e0 + 0.5e0) as signed) when n > 2147483647 then 3600000000 else 0 end`,
		},
		dialect.SQLite: {
			`case when n between 1 and 2147483647 then min(3600.0, power(2.5, min(cast(n as real), 251.0))) when n > 2147483647 then 3600.0 else 0.0 end`,
			`case when n between 1 and 2147483647 then cast(floor(min(3600.0, power(2.5, min(cast(n as real), 251.0))) * 1000000.0 + 0.5) as integer) when n > 2147483647 then 3600000000 else 0 end`,
		},
	} {
		d := dialectOf(t, name)
		if got := f.SQL(d, "n"); got != want[0] {
			t.Errorf("%s: %s\nwant %s", name, got, want[0])
		}
		if got := f.MicrosSQL(d, "n"); got != want[1] {
			t.Errorf("%s: %s\nwant %s", name, got, want[1])
		}
	}
}

// A node that one interpreter does not know panics; this meets all of them.
func TestInterpretersKnowEveryOperation(t *testing.T) {
	t.Parallel()
	leaf := operation(opN)
	for o := op(0); o < opCount; o++ {
		x := &node{op: o, cmp: Less, args: []*node{leaf, leaf, leaf, leaf}}
		if v := x.eval(3); v != v {
			t.Errorf("operation %d has no value", o)
		}
		boundsOf(o, 1, x.args)
		r := renderer{d: dialectOf(t, dialect.SQLite), n: "n"}
		if r.node(x, sqlSum); r.Len() == 0 {
			t.Errorf("operation %d renders as nothing", o)
		}
	}
	for _, cmp := range comparisons {
		compare(cmp, 1, 2)
		sqlComparison(cmp)
		if _, known := compareBounds(cmp, leaf.bounds, leaf.bounds); known {
			t.Errorf("n %s n' is decided for all n and n'", cmp)
		}
	}
	for f := range arity {
		guard{}.call(Call{f, []Expr{N{}, N{}}})
	}
}

// Guards never repeat an operand, so SQL grows with the formula alone.
func TestSQLGrowsWithTheFormula(t *testing.T) {
	t.Parallel()
	d := dialectOf(t, dialect.MySQL)
	c := seeded(11)
	for range 3000 {
		f := randomFormula(c)
		counter := checker{}
		counter.expr(f.Expr(), 1)
		if got, most := len(f.SQL(d, "attempts")), 200+160*counter.nodes; got > most {
			t.Fatalf("%d nodes render as %d bytes, more than %d: %s\n%s", counter.nodes, got, most, f, f.SQL(d, "attempts"))
		}
	}
}

// worstFormulas are as large and as deep as the limits allow, and guarded at
// every step.
func worstFormulas() []string {
	half := strings.Repeat("(", 40)
	return []string{
		strings.Repeat("(n-1e100)*(", 40) + "n" + strings.Repeat(")", 40),
		strings.Repeat("1/(n-3-", maxDivisions) + "n" + strings.Repeat(")", maxDivisions),
		strings.Repeat("1/(2+n+", 45) + "n" + strings.Repeat(")", 45),
		strings.Repeat("(1/(n-3))+(", 40) + "n" + strings.Repeat(")", 40),
		strings.Repeat("exp(", 48) + "n" + strings.Repeat(")", 48),
		strings.Repeat("-", 98) + "n",
		strings.Repeat("n^", 48) + "n",
		strings.Repeat("if(n/3<", 40) + "n" + strings.Repeat(",n,1-n)", 40),
		"1e-100" + strings.Repeat("*(n-1e-100)", 90),
		half + "n" + strings.Repeat("-1e-50)^3", 40),
		"max(" + strings.Repeat("n*1e99,", 160) + "n)",
		"1" + strings.Repeat("+1e100*n", 90),
		"(n - 1)^(-1 / n) / 1e95",
		"exp(n) * exp(-n) * (1e-60 * exp(-n)) * 1e60",
	}
}

func TestEnginesTakeTheLargestFormulas(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
		fillSamples(t, db)
		var tally tally
		for _, text := range worstFormulas() {
			crossCheck(t, d, db, []Formula{formula(t, text)}, &tally)
		}
	})
}

// A lane's delay is asked for with a literal, which the server works out when
// it plans: every branch has to be safe then, also those not taken.
func TestEnginesFoldLiterals(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
		c := seeded(5)
		for range 60 {
			f := randomFormula(c)
			var columns []string
			for _, n := range sampleAttempts {
				columns = append(columns, f.SQL(d, literalAttempts(n.Int64)), f.MicrosSQL(d, literalAttempts(n.Int64)))
			}
			row, err := db.QueryxContext(t.Context(), "select "+strings.Join(columns, ", "))
			if err != nil {
				t.Fatalf("%v, of %s", err, f)
			}
			seconds, micros := make([]float64, len(sampleAttempts)), make([]int64, len(sampleAttempts))
			var into []any
			for i := range sampleAttempts {
				into = append(into, &seconds[i], &micros[i])
			}
			if !row.Next() {
				t.Fatalf("%v, of %s", row.Err(), f)
			}
			if err := row.Scan(into...); err != nil {
				t.Fatalf("%v, of %s", err, f)
			}
			row.Close()
			for i, n := range sampleAttempts {
				if why := f.differs(n.Int64, seconds[i], micros[i]); why != "" {
					t.Errorf("f(%d) of %s: %s", n.Int64, f, why)
				}
			}
		}
	})
}

// literalAttempts writes n so that no engine reads -2^63 as minus too much.
func literalAttempts(n int64) string {
	if n < 0 {
		return fmt.Sprintf("(%d)", max(n, -1<<62))
	}
	return fmt.Sprint(n)
}
