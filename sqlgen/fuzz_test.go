package sqlgen

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/testdb"
)

// FuzzExpr builds a tree from the fuzzer's bytes and checks both laws (see
// TestEnginesAgreeOnRandomTrees) with SQLite, which runs in this process.
func FuzzExpr(f *testing.F) {
	for seed := range uint64(60) {
		c := rand.New(rand.NewPCG(seed, 0))
		var grown []byte
		for range 10 + c.IntN(10) {
			grown = binary.LittleEndian.AppendUint64(grown, c.Uint64())
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
		// The text of the formula parses as the same formula.
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
