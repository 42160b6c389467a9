package sqlgen

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// sampleAttempts are the values of n at which every formula is compared. They
// include values that a column may hold by mistake.
var sampleAttempts = func() []sql.NullInt64 {
	ns := []int64{math.MinInt64, -5}
	for n := range int64(41) {
		ns = append(ns, n)
	}
	ns = append(ns, 100, 1000, 5000, 1e6, math.MaxInt32, math.MaxInt32+1, math.MaxInt64)
	points := []sql.NullInt64{{}}
	for _, n := range ns {
		points = append(points, sql.NullInt64{Int64: n, Valid: true})
	}
	return points
}()

// Formulas obey two laws. Law 1: every formula has a value at every n, on every
// engine. Law 2: it is the value that Go computes.
func TestEnginesAgreeOnRandomTrees(t *testing.T) {
	t.Parallel()
	const trees, batch = 2000, 20
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	eachServer(t, func(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
		c := seeded(seed)
		fillSamples(t, db)
		var tally tally
		for range trees / batch {
			var formulas []Formula
			for range batch {
				formulas = append(formulas, randomFormula(c))
			}
			crossCheck(t, d, db, formulas, &tally)
			// MySQL is stricter in a statement that writes: there a division
			// by 0 is an error and not NULL.
			run(t, db, "update samples set seconds = "+formulas[0].SQL(d, d.Quote("attempts")))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		t.Logf("%d values, of which %d could only be compared by their error bounds", tally.values, tally.boundsOnly)
		if tally.boundsOnly*20 > tally.values {
			t.Errorf("%d of %d values could not be compared by law 2: the trees test too little", tally.boundsOnly, tally.values)
		}
	})
}

// These formulas fail or have another value on some engine if they are rendered
// without guards and conversions.
func TestEnginesAgreeOnKnownTraps(t *testing.T) {
	t.Parallel()
	texts := []string{
		"min(n, 10) / 4",          // SQLite's min may return an INTEGER, whose division truncates
		"if(n < 3, 1, 2) / 4",     // so may PostgreSQL's CASE over integers
		"1 / n", "n * n * n / 15", // integer columns divide without a remainder
		"n * n * n * n",           // int4 overflows at 216, bigint at 55109
		"1.5^n", "pow(10, n / 7)", // a numeric power takes PostgreSQL 0.4 s a row
		"1 / n * 2147483647",                                                       // MariaDB's DECIMAL quotient has 4 digits more than its dividend
		"(1 + 1 / n)^24h", "(1 + 1 / (n * 1000))^(n * 1000)", "1.00001^(n * 2000)", // TiDB multiplies repeatedly for a large exponent
		"2^n", "exp(n)", "n^n", // overflow
		"exp(-n) * 1d", "0.5^n * 1d", // PostgreSQL raises on underflow
		"ln(n - 1) + 300", "log10(n - 1) + 300", // logarithms of 0; log() has another base on each engine
		"sqrt(5 - n)", "(5 - n)^0.5", "(5 - n)^-1", "(n - 1)^-1", "(n - 5)^3 + 64", "(n - 5)^2",
		"1h / (n - 5)", "(n - 1) / (n - 1)", // divisions by 0
		"24h * ((1 + 1 / n)^n - 1) / (e - 1)",
		"floor(log10(10^n))", "ceil(52^(1/9)^9)", "floor(ln(e^3))", // an error in the last digit changes the result
		"if(5s * 52^((min(n, 10) - 1) / 9) <= 260, n, 1h)",
		"300 + ln(3 / (21 + n) / (0.999999 * 0.999999)^(n + 24h))", // Go's own pow has a large error here
		"-n + 100 - -3 * (0 - n)", "1 - (2 - (3 - n))", "100 / (2 / (n / 7))",
	}
	eachServer(t, func(t *testing.T, d dialect.Dialect, db *sqlx.Conn) {
		fillSamples(t, db)
		var formulas []Formula
		for _, text := range texts {
			formulas = append(formulas, formula(t, text))
		}
		var tally tally
		crossCheck(t, d, db, formulas, &tally)
		if d.Name() == dialect.MySQL || d.Name() == dialect.MariaDB || d.Name() == dialect.TiDB {
			for _, mode := range []string{"", "ANSI,TRADITIONAL,NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE"} {
				run(t, db, "set sql_mode = '"+mode+"'")
				crossCheck(t, d, db, formulas, &tally)
			}
		}
	})
}

// tally counts the values compared, and those of them that could be compared only
// by their error bounds.
type tally struct{ values, boundsOnly int }

func fillSamples(t testing.TB, db *sqlx.Conn) {
	t.Helper()
	rows := make([]string, len(sampleAttempts))
	for i, n := range sampleAttempts {
		value := "null"
		if n.Valid {
			value = fmt.Sprint(n.Int64)
		}
		rows[i] = fmt.Sprintf("(%d, %s)", i, value)
	}
	run(t, db,
		"create temporary table samples (i int, attempts bigint, seconds double precision)",
		"insert into samples (i, attempts) values "+strings.Join(rows, ", "))
}

// crossCheck compares the values of the formulas at every sample, in seconds and
// in microseconds, with those of the engine. It sends one statement.
func crossCheck(t testing.TB, d dialect.Dialect, db *sqlx.Conn, formulas []Formula, tally *tally) {
	t.Helper()
	columns := make([]string, 0, 2*len(formulas))
	for _, f := range formulas {
		columns = append(columns, f.SQL(d, d.Quote("attempts")), f.MicrosSQL(d, d.Quote("attempts")))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testdb.Patience)
	defer cancel()
	rows, err := db.QueryContext(ctx, "select "+strings.Join(columns, ", ")+" from samples order by i")
	if err != nil {
		t.Fatalf("%v, of one of\n%v", err, formulas)
	}
	defer rows.Close()
	for _, n := range sampleAttempts {
		if !rows.Next() {
			t.Fatalf("%v, of one of\n%v", rows.Err(), formulas)
		}
		values := make([]any, 0, len(columns))
		for range formulas {
			values = append(values, new(sql.NullFloat64), new(sql.NullInt64))
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatalf("%v, of one of\n%v", err, formulas)
		}
		for i, f := range formulas {
			seconds, us := values[2*i].(*sql.NullFloat64), values[2*i+1].(*sql.NullInt64)
			if !seconds.Valid || !us.Valid {
				t.Errorf("f(%v) is NULL for %s", n, f)
				continue
			}
			tally.values++
			if !f.roundingBounds(n.Int64).tight() {
				tally.boundsOnly++
			}
			if why := f.differs(n.Int64, seconds.Float64, us.Int64); why != "" {
				t.Errorf("f(%d) of %s: %s\n%s", n.Int64, f, why, columns[2*i])
			}
		}
	}
}

// differs says how an engine's f(n) violates a law. It returns "" if it does not.
func (f Formula) differs(n int64, seconds float64, us int64) string {
	want := f.Eval(n)
	bounds := f.roundingBounds(n)
	switch {
	case !(seconds >= 0 && seconds <= MaxDelay):
		return fmt.Sprintf("%v is not a delay", seconds)
	case !(want >= bounds.lo && want <= bounds.hi):
		return fmt.Sprintf("Go's %v is outside the bounds [%v, %v]", want, bounds.lo, bounds.hi)
	case bounds.tight() && !Agree(seconds, want):
		return fmt.Sprintf("the engine has %v, Go %v", seconds, want)
	case seconds < bounds.lo || seconds > bounds.hi:
		return fmt.Sprintf("the engine has %v, Go %v, rounding allows [%v, %v]", seconds, want, bounds.lo, bounds.hi)
	case bounds.tight() && abs(us-f.Micros(n)) > 1 && !Agree(float64(us)/1e6, float64(f.Micros(n))/1e6):
		return fmt.Sprintf("the engine has %d µs, Go %d", us, f.Micros(n))
	case math.Abs(float64(us)-seconds*1e6) > 1:
		return fmt.Sprintf("the engine has %v s and %d µs", seconds, us)
	}
	return ""
}

func abs(n int64) int64 { return max(n, -n) }
