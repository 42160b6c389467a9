package sqlgen

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParsedFormulaPrintsAsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"15s+n^4", "15s + n^4"},
		{" 917m*atan( n^3/15 ) ", "917m * atan(n^3 / 15)"},
		{"1h30m", "90m"},
		{"1d12h", "36h"},
		{"1m500ms", "60500ms"},
		{"1e3 * 2.50e-7s", "1000 * 2.5e-07s"},
		{".5", "0.5"},
		{"2.", "2"},
		{"1e-100", "1e-100"},
		{"-2^2", "-2^2"},     // a minus in front of a power, as in mathematics
		{"-(2^2)", "-2^2"},   //
		{"(-2)^2", "(-2)^2"}, //
		{"2^-n", "2^-n"},
		{"2^3^n", "2^3^n"}, // right-associative
		{"2^(3^n)", "2^3^n"},
		{"(2^3)^n", "(2^3)^n"},
		{"1-(2-3)", "1 - (2 - 3)"},
		{"(1-2)-3", "1 - 2 - 3"},
		{"1/(2*n)", "1 / (2 * n)"},
		{"(1/2)*n", "1 / 2 * n"},
		{"(1+n)*2", "(1 + n) * 2"},
		{"--n", "--n"},
		{"1 - -n", "1 - -n"},
		{"(((n)))", "n"},
		{"if(n<3,1m,if(n>=10,2h,n!=5 ...", ""},
		{"if(n < 3, 1m, if(n>=10, 2h, e*pi))", "if(n < 3, 1m, if(n >= 10, 2h, e * pi))"},
		{"if(n==1,1,if(n!=2,2,if(n<=3,3,if(n>4,4,5))))", "if(n == 1, 1, if(n != 2, 2, if(n <= 3, 3, if(n > 4, 4, 5))))"},
		{"min(n,2,3)+max(1,n)", "min(n, 2, 3) + max(1, n)"},
		{"pow(n,2)+log10(ln(sqrt(abs(floor(ceil(exp(n)))))))", "pow(n, 2) + log10(ln(sqrt(abs(floor(ceil(exp(n)))))))"},
	} {
		e, err := Parse(c.text)
		if c.want == "" {
			if err == nil {
				t.Errorf("Parse(%q) = %s, want an error", c.text, e)
			}
			continue
		}
		if err != nil {
			t.Errorf("Parse(%q): %v", c.text, err)
			continue
		}
		if got := e.String(); got != c.want {
			t.Errorf("Parse(%q) prints %q, want %q", c.text, got, c.want)
		}
	}
}

func TestParseSaysWhereAndWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		pos  int
		msg  string
	}{
		{"", 0, `found the end, expected a number, n, a function or "("`},
		{"n ^^ 2", 3, `found "^", expected a number, n, a function or "("`},
		{"n +", 3, `found the end, expected a number, n, a function or "("`},
		{"n n", 2, `found "n", expected an operator or the end`},
		{"(n", 2, `found the end, expected an operator or ")"`},
		{"n)", 1, `found ")", expected an operator or the end`},
		{"5min", 1, `unknown unit "min"; the units are ms, s, m, h, d`},
		{"2n", 1, `unknown unit "n"; the units are ms, s, m, h, d`},
		{"1h3", 3, `found "1h3", expected a unit after its last digits`},
		{".", 0, `found ".", expected a number such as 15, 1.5 or 2.5e-3`},
		{"1.2.3", 3, `found ".3", expected an operator or the end`},
		{"1e999", 0, `the number 1e999 is out of range; a number must be 0, or from 1e-100 to 1e100`},
		{"1e99d", 0, `the number 1e99d is out of range; a number must be 0, or from 1e-100 to 1e100`},
		{"1e-101", 0, `the number 1e-101 is out of range; a number must be 0, or from 1e-100 to 1e100`},
		{"foo(2)", 0, `unknown function "foo"; the functions are min, max, pow, exp, ln, log10, sqrt, atan, floor, ceil, abs, if`},
		{"1 + x", 4, `unknown name "x"; the names are n, pi, e`},
		{"N", 0, `unknown name "N"; the names are n, pi, e`},
		{"delay", 0, `delay may be used only in a jitter`},
		{"n < 3", 2, `found "<", expected an operator or the end`},
		{"if(n, 1, 2)", 4, `found ",", expected a comparison: < <= > >= == !=`},
		{"if(n = 1, 1, 2)", 5, `found "=", expected a comparison: < <= > >= == !=`},
		{"if(n < 1, 2)", 11, `found ")", expected ","`},
		{"min(1)", 0, `min takes 2 or more arguments, not 1`},
		{"exp(1, 2)", 0, `exp takes 1 argument, not 2`},
		{"pow(1)", 0, `pow takes 2 arguments, not 1`},
		{"exp()", 4, `found ")", expected a number, n, a function or "("`},
		{"n; drop", 1, `found ";", expected an operator or the end`},
		{"é", 0, `found "é", expected a number, n, a function or "("`},
		{"\xff", 0, `found "\xff", expected a number, n, a function or "("`},
		{"n\x00", 1, `found "\x00", expected an operator or the end`},
	} {
		_, err := Parse(c.text)
		syntax, ok := errors.AsType[*SyntaxError](err)
		if !ok {
			t.Errorf("Parse(%q): %v, want a SyntaxError", c.text, err)
			continue
		}
		if syntax.Pos != c.pos || syntax.Msg != c.msg || syntax.Text != c.text {
			t.Errorf("Parse(%q): byte %d: %s\nwant byte %d: %s", c.text, syntax.Pos, syntax.Msg, c.pos, c.msg)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"parentheses": strings.Repeat("(", 2000) + "n" + strings.Repeat(")", 2000),
		"minuses":     strings.Repeat("-", 4000) + "n",
		"powers":      strings.Repeat("2^", 2000) + "n",
		"a long sum":  strings.Repeat("n+", 2000) + "n",
		"many nodes":  "min(" + strings.Repeat("n,", 600) + "n)",
		"much text":   strings.Repeat(" ", MaxText) + "n",
		"functions":   strings.Repeat("exp(", 1000) + "n" + strings.Repeat(")", 1000),
	} {
		if e, err := Parse(text); err == nil {
			t.Errorf("%s: parsed as %.40s…, want an error", name, e)
		}
	}
	for name, text := range map[string]string{
		"a sum":       strings.Repeat("n+", MaxDepth-2) + "n",
		"many nodes":  "min(" + strings.Repeat("n,", MaxNodes-2) + "n)",
		"parentheses": strings.Repeat("(", 40) + "n" + strings.Repeat(")", 40),
		"much text":   strings.Repeat(" ", MaxText-1) + "n",
	} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJitterMayUseTheDelay(t *testing.T) {
	t.Parallel()
	e, err := ParseJitter("0.2 * delay + n")
	if err != nil {
		t.Fatal(err)
	}
	if want := (Binary{Add, Binary{Multiply, Number{0.2, Bare}, Delay{}}, N{}}); !cmp.Equal(e, Expr(want)) {
		t.Errorf("parsed as %#v, want %#v", e, want)
	}
	if _, err := Compile(e); err == nil {
		t.Error("a formula with delay compiled as a delay")
	}
}

func TestMacrosAndNamesAreReplaced(t *testing.T) {
	t.Parallel()
	var calls []MacroCall
	scope := Scope{
		Names: map[string]Expr{"min": Number{5, Second}},
		Macros: map[string]Macro{"twice": func(c MacroCall) (Expr, error) {
			calls = append(calls, c)
			if len(c.Args) == 0 {
				return nil, errors.New("twice takes an argument")
			}
			return Binary{Multiply, Number{2, Bare}, c.Args[0].Value}, nil
		}},
	}
	for _, c := range []struct {
		text, want string
		whole      bool
	}{
		{"min(min, n)", "min(5s, n)", false}, // a name and a function may share their spelling
		{" twice(x = 1h) ", "2 * 1h", true},
		{"twice(3)^2", "(2 * 3)^2", false},
		{"(twice(3))", "2 * 3", false},
		{"-twice(min + 1)", "-(2 * (5s + 1))", false},
	} {
		calls = nil
		e, err := ParseWith(c.text, scope)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if e.String() != c.want {
			t.Errorf("%q is %s, want %s", c.text, e, c.want)
		}
		if len(calls) == 1 && calls[0].Whole != c.whole {
			t.Errorf("%q: whole is %v", c.text, calls[0].Whole)
		}
	}
	for text, want := range map[string]string{
		"1 + twice":  "byte 4: twice takes an argument",
		"twice(n)":   "byte 6: an argument must be a constant, without n and delay",
		"twice(1, )": `byte 9: found ")", expected a number`,
		"thrice(1)":  `unknown function "thrice"; the functions are min, max, pow, exp, ln, log10, sqrt, atan, floor, ceil, abs, if; the presets are twice`,
	} {
		if _, err := ParseWith(text, scope); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// The text of a tree parses as the same tree.
func TestParseReversesString(t *testing.T) {
	t.Parallel()
	c := seeded(1)
	for range 5000 {
		e := unsigned(randomTree(c, 1+c.IntN(5)))
		got, err := Parse(e.String())
		if err != nil {
			if check(e, false) == nil && len(e.String()) <= MaxText {
				t.Fatalf("%s: %v", e, err)
			}
			continue
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Fatalf("%s parses as another tree:\n%s", e, diff)
		}
	}
}

// unsigned replaces negative literals by Neg, as the parser reads them.
func unsigned(e Expr) Expr {
	switch e := e.(type) {
	case Number:
		if e.Value < 0 {
			return Neg{Number{-e.Value, e.Unit}}
		}
	case Neg:
		return Neg{unsigned(e.X)}
	case Binary:
		return Binary{e.Op, unsigned(e.X), unsigned(e.Y)}
	case Call:
		args := make([]Expr, len(e.Args))
		for i := range args {
			args[i] = unsigned(e.Args[i])
		}
		return Call{e.Func, args}
	case If:
		return If{Compare{e.Cond.Op, unsigned(e.Cond.X), unsigned(e.Cond.Y)}, unsigned(e.Then), unsigned(e.Else)}
	}
	return e
}

// FuzzParse checks that any text gives a tree or an error with a position, and
// that the text of a tree parses as the same tree.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"15s + n^4", "917m * atan(n^3 / 15)", "5s*(260s/5s)^((min(n,10)-1)/(10-1))", "0.2 * delay", "1h30m", "-2^-n",
		"if(n <= 3, 0, if(n != 5, exp(n), log10(n)))", "max(1, floor(n), ceil(pi), abs(e))", "((((", "1e400", "n ==", "\xff\x00", "5min", "1e-100",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseJitter(text)
		if err != nil {
			syntax, ok := errors.AsType[*SyntaxError](err)
			if !ok || syntax.Pos < 0 || syntax.Pos > len(text) || syntax.Msg == "" {
				t.Fatalf("Parse(%q): %#v", text, err)
			}
			if !utf8.ValidString(syntax.Error()) {
				t.Fatalf("Parse(%q): the error is not valid UTF-8", text)
			}
			return
		}
		again, err := ParseJitter(e.String())
		if err != nil {
			if len(e.String()) > MaxText {
				return
			}
			t.Fatalf("%q prints %q, which does not parse: %v", text, e, err)
		}
		if diff := cmp.Diff(e, again); diff != "" {
			t.Fatalf("%q prints %q, which is another tree:\n%s", text, e, diff)
		}
	})
}
