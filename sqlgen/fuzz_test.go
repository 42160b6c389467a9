package sqlgen

import (
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// FuzzExpr grows a tree from the fuzzer's bytes and holds Go and SQLite, which
// runs in this process, to the laws.
func FuzzExpr(f *testing.F) {
	for seed := range uint64(60) {
		// A chance of growing each shape at each depth.
		c := seeded(seed)
		grown := make([]byte, 24+c.IntN(60))
		for i := range grown {
			grown[i] = byte(c.IntN(256))
		}
		f.Add(grown)
	}
	d := dialectOf(f, dialect.SQLite)
	db := connect(f, testdb.SQLite)
	fillSamples(f, db)
	f.Fuzz(func(t *testing.T, grown []byte) {
		c := bytesAsChoices(grown)
		formula, err := Compile(randomRoot(&c, 6))
		if err != nil {
			return // too large
		}
		var tally tally
		crossCheck(t, d, db, []Formula{formula}, &tally)
		// What is printed is the same formula.
		again, err := Parse(formula.String())
		if err != nil && len(formula.String()) <= MaxText && !strings.Contains(err.Error(), "nested") {
			t.Fatalf("%s: %v", formula, err)
		}
		if err == nil {
			if back, err := Compile(again); err == nil && back.SQL(d, "n") != formula.SQL(d, "n") {
				t.Fatalf("%s parses as another formula, %s", formula, back)
			}
		}
	})
}
