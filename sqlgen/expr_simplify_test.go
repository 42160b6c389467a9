package sqlgen

import "testing"

func TestSimplifyEvaluatesConstantParts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"n - 0 - 0 - 1":                         "n - 1",
		"0 + n * 1 / 1":                         "n",
		"n^1 + 1 * n":                           "n + n",
		"-1 * n":                                "-n",
		"(n - 1) / max(10 - 1, 1)":              "(n - 1) / 9",
		"2 - 5":                                 "-3",
		"20s - 20s":                             "20s - 20s", // numbers with a unit stay
		"10 / 4":                                "10 / 4",    // not an integer
		"1s * n^2":                              "1s * n^2",
		"if(n <= 0, 1, if(n > 0, n, 2))":        "n",
		"if(n <= 3, 20s, n)":                    "if(n <= 3, 20s, n)",
		"if(delay < 0, 1, if(delay < 5, 2, 3))": "if(delay < 5, 2, 3)",
		"floor(min(n, 20) * (20 / 20) + 0.5)":   "floor(min(n, 20) + 0.5)",
	} {
		e, err := ParseJitter(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Simplify(e).String(); got != want {
			t.Errorf("%s simplifies to %s, want %s", text, got, want)
		}
	}
	if e := Simplify(Binary{Add, nil, N{}}); e != (Binary{Add, nil, N{}}) {
		t.Errorf("an invalid tree became %v", e)
	}
}

// Simplify does not change the value of a formula.
func TestSimplifyKeepsValues(t *testing.T) {
	t.Parallel()
	c := seeded(21)
	for range 3000 {
		f := randomFormula(c)
		simple, err := Compile(Simplify(f.Expr()))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, n := range []int64{0, 1, 2, 3, 17, 1000, MaxAttempts} {
			if got, want := simple.Eval(n), f.Eval(n); !Agree(got, want) && f.roundingBounds(n).tight() {
				t.Fatalf("f(%d) of %s is %v, and %v once simplified to %s", n, f, want, got, simple)
			}
		}
	}
}
