package backoff_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// variations are presets with parameters that exercise other parts of their
// formulas than the defaults do.
var variations = []string{
	"linear(min=0s, max=0s, retries=1)", "geometric(min=1ms, max=36500d, retries=1000000)", "arithmetic(min=1s, max=36500d, retries=1)",
	"exponential(min=7s, max=7s, retries=2)", "sns_geometric(min=1s, max=60s, retries=50, no_delay=3, min_delay=2, max_delay=35)",
	"sns_arithmetic(min=1s, max=1h, retries=100)", "sns_exponential(min=5s, max=30s, retries=9, no_delay=3, min_delay=3, max_delay=3)",
	"polynomial(base=0s, unit=36500d, exponent=20, max=36500d)", "polynomial(exponent=0)", "polynomial(exponent=2.5)",
	"arctan(max=36500d, power=20, divisor=1e-6)", "arctan(power=0)", "917m * atan(n^3 / 15)", "sigmoid(rate=100)", "sigmoid(rate=1e-6)",
	"visualization_exponential(base=100)", "visualization_buckets(exponent=3.5)", "visualization_buckets(exponent=20)",
	"full_jitter(base=0s)", "equal_jitter(base=1ms, cap=36500d)", "zizq(exponent=20)", "zizq(exponent=3.3)", "zizq(exponent=0)",
	"cenkalti(multiplier=1, randomization=1)", "cenkalti(multiplier=100, max_interval=36500d, randomization=0)", "pubsub(min=0s)",
	"oban(attempts=100)", "oban(attempts=1000000)", "db_scheduler(initial=1d, rate=100)", "celery(factor=36500d, max=36500d)",
}

// For every preset and every n, each engine computes the same delay and jitter
// as Go does, and raises no error.
func TestEnginesAgreeOnEveryPreset(t *testing.T) {
	t.Parallel()
	texts := slices.Clone(variations)
	for _, preset := range backoff.Presets() {
		texts = append(texts, preset.Name)
	}
	ns := []int64{-1, 100, 1000, 5000, 1e6, math.MaxInt32, math.MaxInt32 + 1}
	for n := range int64(41) {
		ns = append(ns, n)
	}
	rows := make([]string, len(ns))
	for i, n := range ns {
		rows[i] = fmt.Sprintf("(%d, %d)", i, n)
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		d, err := dialect.Of(dialect.Name(engine))
		if err != nil {
			t.Fatal(err)
		}
		db := testdb.Open(t, engine)
		for _, s := range []string{"create table samples (i int, attempts bigint)", "insert into samples values " + strings.Join(rows, ", ")} {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range texts {
			policy := mustParse(t, text)
			for name, f := range map[string]sqlgen.Formula{"delay": policy.Delay(), "jitter": policy.Jitter()} {
				var got []struct {
					Seconds float64
					Micros  int64
				}
				column := d.Quote("attempts")
				err := db.Select(&got, fmt.Sprintf("select %s as seconds, %s as micros from samples order by i", f.SQL(d, column), f.MicrosSQL(d, column)))
				if err != nil {
					t.Errorf("the %s of %s: %v", name, text, err)
					continue
				}
				for i, n := range ns {
					if want := f.Eval(n); !sqlgen.Agree(got[i].Seconds, want) || math.Abs(float64(got[i].Micros)-want*1e6) > 1.5+1e-3*max(0, want-86400) {
						t.Errorf("the %s of %s at %d is %v s and %d µs, in Go %v s", name, text, n, got[i].Seconds, got[i].Micros, want)
					}
				}
			}
		}
	})
}

// TestPresetsCallPostgresAlone: see sqlgen's TestFormulasCallPostgresAlone.
func TestPresetsCallPostgresAlone(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.Postgres)
	d, err := dialect.Of(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	statements := map[string]string{}
	for _, preset := range backoff.Presets() {
		policy := mustParse(t, preset.Name)
		statements[preset.Name] = "select " + policy.Delay().SQL(d, "n") + ", " + policy.Delay().MicrosSQL(d, "n") + ", " + policy.Jitter().SQL(d, "n") + " from samples"
	}
	db.MustExec("create table samples (n integer)")
	testdb.SetTraps(t, db, strings.Join(slices.Collect(maps.Values(statements)), "\n"))
	for name, s := range statements {
		if found := testdb.Trapped(t, db, s); len(found) > 0 {
			t.Errorf("%s calls %s:\n%s", name, strings.Join(found, ", "), s)
		}
	}
}
