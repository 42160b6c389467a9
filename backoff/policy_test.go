package backoff_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/sqlgen"
)

func TestParsedPolicyPrintsAsText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"15s+n^4": "delay 15s + n^4",
		"delay 15s + n^4; jitter 30s*n; attempts 26; elapsed 1h30m": "delay 15s + n^4; jitter 30s * n; attempts 26; elapsed 90m",
		"delay n; start 36h; attempts 2":                            "delay n; attempts 2; start 36h",
		"delay n\njitter delay/2\nelapsed 36h\n":                    "delay n; jitter delay / 2; elapsed 36h",
		" n ; ; attempts 3 ;":                                       "delay n; attempts 3",
		"delay\tn; attempts 0; jitter 0; elapsed 0":                 "delay n",
		// A preset alone sets the jitter and the limits, and clauses replace them.
		"zizq":                "delay 15s + n^4; jitter 30s * n; attempts 26",
		"delay zizq(base=1s)": "delay 1s + n^4; jitter 30s * n; attempts 26",
		"zizq(); jitter 0; attempts 3; elapsed 1d": "delay 15s + n^4; attempts 3; elapsed 1d",
		"cenkalti(max_elapsed=0)":                  "delay (1 - 0.5) * min(60s, 500ms * 1.5^(n - 1)); jitter 2 * 0.5 * min(60s, 500ms * 1.5^(n - 1))",
		// Inside a formula a preset means its delay.
		"2 * zizq":                                "delay 2 * (15s + n^4)",
		"max(constant(wait=1h), arctan)":          "delay max(1h, 24h * 2 / pi * atan(n^3 / 15))",
		"n; jitter constant(1m) * 2":              "delay n; jitter 1m * 2",
		"arctan(max=2*12h)":                       "delay 2 * 12h * 2 / pi * atan(n^3 / 15)",
		"geometric(min=5s, max=260s, retries=10)": "delay 5s * (260s / 5s)^((min(n, 10) - 1) / 9); attempts 11",
		"sns_linear(min=1s, max=1m, retries=9, no_delay=2, max_delay=3)": "delay if(n <= 2, 0, if(n <= 2, 1s, if(n > 6, 1m, 1s + (1m - 1s) * (n - 2 - 1) / 3))); attempts 10",
	} {
		p, err := backoff.Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if got := p.String(); got != want {
			t.Errorf("Parse(%q) prints\n%s, want\n%s", text, got, want)
		}
		if again, err := backoff.Parse(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("%q parses as %q (%v)", p, again, err)
		}
	}
}

func TestParseRejectsInvalidText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "the text is empty; a policy needs a delay, such as 15s + n^4",
		" ;; \n":                    "the text is empty",
		"jitter 3":                  `the policy begins with "jitter"; the delay comes first`,
		"n; delay n":                `the policy has two clauses "delay"`,
		"n; attempts 3; attempts 3": `the policy has two clauses "attempts"`,
		"n; foo 3":                  `unknown clause "foo 3"; a clause begins with one of delay, jitter, attempts, elapsed, start`,
		"n; attempts -1":            "the limit on attempts is -1: must be a whole number from 0 (no limit) to 2147483647",
		"n; attempts 2.5":           "the limit on attempts is 2.5",
		"n; attempts 1e10":          "the limit on attempts is 1e+10",
		"n; attempts n":             "a limit must be a constant, not n",
		"n; elapsed 0 - 1s":         "the limit on elapsed time is -1s: must be from 0 (no limit) to 36500d",
		"n; start 0 - 1s":           "the limit on the wait for a start is -1s: must be from 0 (no limit) to 36500d",
		"n; elapsed 36501d":         "the limit on elapsed time is 3153686400s",
		"delay delay":               `formula "delay delay", byte 6: delay may be used only in a jitter`,
		"n; jitter 2 ^":             `formula "n; jitter 2 ^", byte 13: found the end`,
		"n; jitter x":               `byte 10: unknown name "x"`,
		"arctan(max=n)":             "byte 11: an argument must be a constant, without n and delay",
		strings.Repeat(" ", 10000):  "the text has 10000 bytes; a policy has at most 8448",
		"1/(n-1/(n-1/(n-1/(n-1/(n-1/(n-1/(n-2)))))))": "divisors that can be 0 are nested more than 6 deep",
	} {
		p, err := backoff.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "backoff: ") {
			t.Errorf("Parse(%.40q) is %s, error %v, want %q", text, p, err, want)
		}
		if kept := backoff.ParseDeferred(text).Err(); kept == nil || kept.Error() != err.Error() {
			t.Errorf("ParseDeferred(%.40q) keeps %v, want %v", text, kept, err)
		}
	}
	_, err := backoff.Parse("n; jitter (")
	if syntax, ok := errors.AsType[*sqlgen.SyntaxError](err); !ok || syntax.Pos != 11 {
		t.Errorf("error %#v, want a SyntaxError at byte 11", err)
	}
}

func TestZeroPolicyIsTheDefault(t *testing.T) {
	t.Parallel()
	var p backoff.Policy
	if p.Err() != nil || p.String() != backoff.Zizq().String() || p.Key() != backoff.Zizq().Key() || p.MaxAttempts() != 26 {
		t.Errorf("the zero policy is %s", p)
	}
	if delay, jitter := p.Wait(2); delay != 31*time.Second || jitter != time.Minute {
		t.Errorf("it waits %v + %v at 2", delay, jitter)
	}
	if got, want := p.WithMaxAttempts(3).String(), "delay 15s + n^4; jitter 30s * n; attempts 3"; got != want {
		t.Errorf("with another limit it is %s, want %s", got, want)
	}
}

func TestWithMethodsReplaceParts(t *testing.T) {
	t.Parallel()
	p := backoff.Constant(time.Hour).WithJitter("0.2 * delay").WithMaxAttempts(5).WithMaxElapsed(36 * time.Hour)
	if got, want := p.String(), "delay 1h; jitter 0.2 * delay; attempts 5; elapsed 36h"; got != want || p.Err() != nil {
		t.Errorf("it is %s (%v), want %s", got, p.Err(), want)
	}
	if delay, jitter := p.Wait(1); delay != time.Hour || jitter != 12*time.Minute {
		t.Errorf("it waits %v + %v", delay, jitter)
	}
	for want, p := range map[string]backoff.Policy{
		"backoff: the jitter: formula \"x\", byte 0":   p.WithJitter("x"),
		"the limit on attempts is -1":                  p.WithMaxAttempts(-1).WithJitter("x"), // the first error stays
		"the limit on elapsed time is -1s":             p.WithMaxElapsed(-time.Second),
		"the delay: sqlgen: the formula has a missing": backoff.New(nil, nil),
		"the jitter: sqlgen: unknown function":         backoff.New(sqlgen.N{}, sqlgen.Call{Func: "sin"}),
	} {
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if _, err := p.MarshalText(); err == nil {
			t.Errorf("a policy with the error %v marshals", p.Err())
		}
		if _, err := json.Marshal(p); err == nil {
			t.Errorf("a policy with the error %v marshals as JSON", p.Err())
		}
	}
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	p := mustParse(t, "exp(n); jitter exp(n)")
	delay, jitter := p.Wait(1 << 40)
	if most := sqlgen.MaxDelay * time.Second; delay != most || jitter != most || delay+jitter < 0 {
		t.Errorf("it waits %v + %v, want %v", delay, jitter, most)
	}
	if delay, jitter := p.Wait(0); delay != 0 || jitter != 0 {
		t.Errorf("it waits %v + %v before anything failed", delay, jitter)
	}
}

// Keys are stored in the rows of tasks, so no release may change them.
func TestKeysDoNotChange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"15s + n^4; jitter 30s * n; attempts 26": "f6e1346ed0a54479",
		"zizq":                                   "f6e1346ed0a54479",
		"geometric(min=5s, max=260s, retries=10)": "79e63288b3f2b2a6",
		"constant": "cfb445d89c6d19bd",
	} {
		if got := mustParse(t, text).Key(); got != want {
			t.Errorf("the key of %s is %s, want %s", text, got, want)
		}
	}
}

func TestPolicyMarshalsAsJSON(t *testing.T) {
	t.Parallel()
	type kind struct{ Policy backoff.Policy }
	for _, c := range []struct{ text, want string }{
		{"delay n; start 90s", `{"Policy":{"delay":"n","start_within":"90s"}}`},
		{"zizq; elapsed 30d", `{"Policy":{"delay":"15s + n^4","jitter":"30s * n","max_attempts":26,"max_elapsed":"30d"}}`},
		{"5m", `{"Policy":{"delay":"5m"}}`},
		{"if(n \u003c 3, 1, 2)", `{"Policy":{"delay":"if(n \u003c 3, 1, 2)"}}`},
	} {
		got, err := json.Marshal(kind{mustParse(t, c.text)})
		if err != nil || string(got) != c.want {
			t.Errorf("%s marshals as %s (%v), want %s", c.text, got, err, c.want)
		}
		var back kind
		if err := json.Unmarshal(got, &back); err != nil || back.Policy.String() != mustParse(t, c.text).String() {
			t.Errorf("%s unmarshals as %s (%v)", got, back.Policy, err)
		}
	}
	var p backoff.Policy
	if err := json.Unmarshal([]byte(`"arctan(max=12h); attempts 40"`), &p); err != nil || p.MaxAttempts() != 40 {
		t.Errorf("a text unmarshals as %s (%v)", p, err)
	}
	if err := json.Unmarshal([]byte(`{"delay": "zizq(base=1s)", "max_attempts": 4}`), &p); err != nil || p.String() != "delay 1s + n^4; jitter 30s * n; attempts 4" {
		t.Errorf("an object with a preset unmarshals as %s (%v)", p, err)
	}
	before := p.String()
	for text, want := range map[string]string{
		`{}`:                                 "formula \"\", byte 0",
		`3`:                                  "a policy must be an object with a delay, or a string",
		`{"delay": "n", "max_attempt": 3}`:   `unknown field "max_attempt"`,
		`{"delay": "n; attempts 3"}`:         `found ";"`,
		`{"delay": "n", "max_attempts": -3}`: "the limit on attempts is -3",
		`{"delay": "n", "max_elapsed": "x"}`: `unknown name "x"`,
		`"n; jitter"`:                        `unknown clause "jitter"`,
	} {
		if err := json.Unmarshal([]byte(text), &p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if p.String() != before {
		t.Errorf("a failed unmarshal left %s", p)
	}
}

// FuzzParse checks that the text of every policy parses as the same policy.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"delay 15s + n^4; jitter 30s * n; attempts 26; elapsed 15m", "geometric(min=5s, max=260s, retries=10)", "zizq; jitter 0",
		"arctan(12h, power=2)\nattempts 3", "n;;", "delay", "sns_linear(retries=100, no_delay=99)", "polynomial(exponent=20)", "2*oban(attempts=1e6)+1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := backoff.Parse(text)
		if err != nil {
			return
		}
		printed := p.String()
		again, err := backoff.Parse(printed)
		if err != nil {
			if len(printed) > sqlgen.MaxText {
				return // expanding presets made the text too long
			}
			t.Fatalf("%q prints %q, which does not parse: %v", text, printed, err)
		}
		if again.String() != printed {
			t.Fatalf("%q prints %q and then %q", text, printed, again)
		}
		if delay, jitter := p.Wait(7); delay < 0 || jitter < 0 {
			t.Fatalf("%q waits %v + %v", text, delay, jitter)
		}
	})
}

// TestAPolicyThatIsAcceptedCanBeReadAgain: a text just below the limit of its size prints longer
// than it was written, with blanks around its operators. Such a policy is refused when it is made.
func TestAPolicyThatIsAcceptedCanBeReadAgain(t *testing.T) {
	for terms := 1; ; terms++ {
		text := "max(" + strings.Repeat("n*.12345678901234568,", terms) + "n)"
		p, err := backoff.Parse(text)
		if err != nil {
			if !strings.Contains(err.Error(), "with all parts inserted: must be at most 4096") {
				t.Errorf("%d terms are refused, but not because of their size: %v", terms, err)
			}
			break
		}
		if again, err := backoff.Parse(p.String()); err != nil || again.String() != p.String() {
			t.Fatalf("the policy of %d bytes prints %d bytes, and then: %v", len(text), len(p.String()), err)
		}
	}
}
