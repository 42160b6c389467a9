package backoff_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/sqlgen"
)

func TestOverridesOfPolicies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ override, own, want string }{
		{"4 * original", "delay 15s + n^4; jitter 30s * n; attempts 26", "delay 4 * (15s + n^4); jitter 30s * n; attempts 26"},
		{"max(original, 1h)", "5m; elapsed 1d", "delay max(5m, 1h); elapsed 1d"},
		{"5m", "delay 1h; jitter 0.2 * delay", "delay 5m; jitter 0.2 * 1h"},
		{"original; jitter 0.5 * delay", "1h", "delay 1h; jitter 0.5 * delay"},
		{"jitter 3 * original", "delay 1h; jitter 0.2 * delay", "delay 1h; jitter 3 * 0.2 * 1h"},
		{"4 * own; jitter 3 * own", "delay 1h; jitter 0.2 * delay", "delay 4 * 1h; jitter 3 * 0.2 * 1h"},
		{"attempts 50", "delay 1h; jitter 0.2 * delay; attempts 3", "delay 1h; jitter 0.2 * delay; attempts 50"},
		{"start 0", "5m; start 1d", "delay 5m"},
		{"2 * original; start 1h", "5m; start 1d", "delay 2 * 5m; start 1h"},
		{"attempts 0; elapsed 2d", "delay 1h; attempts 3", "delay 1h; elapsed 2d"},
		{"delay constant(1m)", "delay 1h; jitter 5m; attempts 3", "delay 1m"},
		{"max(constant(1m), original)", "delay 1h; jitter 5m; attempts 3", "delay max(1m, 1h); jitter 5m; attempts 3"},
	} {
		o, err := backoff.ParseOverride(c.override)
		if err != nil {
			t.Errorf("%s: %v", c.override, err)
			continue
		}
		got, want := o.Of(backoff.ParseDeferred(c.own)), backoff.ParseDeferred(c.want)
		if got.Err() != nil || want.Err() != nil || got.MaxAttempts() != want.MaxAttempts() || got.MaxElapsed() != want.MaxElapsed() {
			t.Errorf("%s of %s is %s, errors %v and %v; want %s", c.override, c.own, got, got.Err(), want.Err(), c.want)
		}
		for n := range int64(20) {
			delay, jitter := got.Wait(n)
			if wantDelay, wantJitter := want.Wait(n); delay != wantDelay || jitter != wantJitter {
				t.Errorf("%s of %s is %s, want %s", c.override, c.own, got, c.want)
			}
		}
		again, err := backoff.Parse(got.String())
		if err != nil || again.String() != got.String() {
			t.Errorf("%s is read as %s, error %v", got, again, err)
		}
	}
	if zero := (backoff.Override{}); zero.Of(backoff.Zizq()).String() != backoff.Zizq().String() {
		t.Error("the zero override changes a policy")
	}
}

func TestInvalidOverrides(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                            "the text is empty; an override has a clause",
		" ; ":                         "the text is empty; an override has a clause",
		"4 * mine":                    `byte 4: unknown name "mine"; the names are n, pi, e, original, own`,
		"original; color red":         `unknown clause "color red"`,
		"original; attempts 1.5":      "the limit on attempts is 1.5",
		"original; attempts original": `unknown name "original"`,
		"attempts 1; attempts 2":      `two clauses "attempts"`,
		"delay":                       `unknown name "delay"|delay may be used only in a jitter`,
		"zizq(base=original)":         "an argument must be a constant",
		"5m; elapsed -1s":             "the limit on elapsed time is -1s",
		"4 * original; jitter mine":   `byte 21: unknown name "mine"`,
		strings.Repeat("n", 9000):     "the text has 9000 bytes",
	} {
		_, err := backoff.ParseOverride(text)
		var found bool
		for part := range strings.SplitSeq(says, "|") {
			found = found || err != nil && strings.Contains(err.Error(), part)
		}
		if !found || strings.Count(err.Error(), "backoff: ") != 1 {
			t.Errorf("%.50q: error %v, want %s", text, err, says)
		}
	}
	var syntax *sqlgen.SyntaxError
	if _, err := backoff.ParseOverride("original; jitter 1 +"); !errors.As(err, &syntax) || syntax.Pos != 20 {
		t.Errorf("the position is %+v, error %v", syntax, err)
	}
	large := backoff.ParseDeferred("max(0s" + strings.Repeat(", n", 200) + ")")
	o, err := backoff.ParseOverride("original + original + original + original")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Of(large).Err(); err == nil || !strings.Contains(err.Error(), "more than 512 nodes") {
		t.Errorf("an override that becomes too large: error %v", err)
	}
}
