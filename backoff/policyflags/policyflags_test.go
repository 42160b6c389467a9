package policyflags_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/falldue/falldue/backoff/policyflags"
)

// TestFlagsComeBeforeTheEnvironment: flags come before the environment, and a formula is given as a whole.
func TestFlagsComeBeforeTheEnvironment(t *testing.T) {
	formula := []string{"--default-retry-base", "5s", "--default-retry-exponent", "2.5", "--default-retry-jitter", "1m"}
	for _, c := range []struct {
		args       []string
		env        map[string]string
		want, says string
	}{
		{},
		{args: formula, want: "delay 5s + n^2.5; jitter 1m * n; attempts 26"},
		{args: append(formula, "--default-retry-limit", "3"), want: "delay 5s + n^2.5; jitter 1m * n; attempts 4"},
		{args: []string{"--default-retry-limit", "0"}, want: "delay 15s + n^4; jitter 30s * n; attempts 1"},
		{args: formula[:4], env: map[string]string{"JITTER": "0s", "LIMIT": "7", "BASE": "1h"}, want: "delay 5s + n^2.5; attempts 8"},
		{args: formula[:2], says: "--default-retry-exponent and --default-retry-jitter missing; set all three flags"},
		{env: map[string]string{"EXPONENT": "2"}, says: "--default-retry-base and --default-retry-jitter missing"},
		{args: []string{"--default-retry-base", "15"}, says: `--default-retry-base is "15": must be a duration with a unit`},
		{env: map[string]string{"JITTER": "-1s"}, says: `FALLDUE_DEFAULT_RETRY_JITTER is "-1s": must be a duration`},
		{env: map[string]string{"LIMIT": "1.5"}, says: `FALLDUE_DEFAULT_RETRY_LIMIT is "1.5": must be a whole number, 0 or more`},
		{args: append(formula[:2:2], "--default-retry-exponent", "NaN"), says: `--default-retry-exponent is "NaN": must be a number, 0 or more`},
		{args: append(formula[:2:2], "--default-retry-exponent", "99", "--default-retry-jitter", "1s"), says: "exponent is 99: must be from 0 to 20"},
	} {
		t.Run("", func(t *testing.T) {
			for _, name := range []string{"LIMIT", "BASE", "EXPONENT", "JITTER"} {
				t.Setenv("FALLDUE_DEFAULT_RETRY_"+name, c.env[name])
			}
			fs := flag.NewFlagSet("worker", flag.ContinueOnError)
			read := policyflags.Add(fs)
			if err := fs.Parse(c.args); err != nil {
				t.Fatal(err)
			}
			policy, err := read()
			switch {
			case c.says != "":
				if err == nil || !strings.HasPrefix(err.Error(), "policyflags: ") || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v %v: error %v, want %q", c.args, c.env, err, c.says)
				}
			case err != nil || c.want == "" != policy.IsZero() || c.want != "" && policy.String() != c.want:
				t.Errorf("%v %v: the policy is %s, error %v, want %s", c.args, c.env, policy, err, c.want)
			}
		})
	}
}
