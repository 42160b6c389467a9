// Package policyflags lets the user of a program choose the retry policy of kinds that set none,
// with flags or environment variables:
//
//	--default-retry-limit      number of retries, 25 by default
//	--default-retry-base       B, a duration such as 15s
//	--default-retry-exponent   E, a number from 0, such as 4
//	--default-retry-jitter     J, a duration such as 30s
//
// The retry after the n-th failure waits for B plus n^E seconds, plus a random time of up to n·J.
// Set all of B, E and J, or none of them. A flag that is not set takes its value from an environment
// variable with its name, such as FALLDUE_DEFAULT_RETRY_LIMIT for --default-retry-limit.
package policyflags

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue/backoff"
)

// policyFlag is a flag and the check of its value.
type policyFlag struct {
	name, usage string
	check       func(value string) error
}

// formulaFlags are the formula's flags, in the order of the parameters of backoff.Zizq.
var formulaFlags = []policyFlag{
	{"default-retry-base", "minimum `duration` before each retry of a kind without a policy, such as 15s", checkDuration},
	{"default-retry-exponent", "`power` of the number of failed attempts; the result is added to the base, in seconds", checkNumber},
	{"default-retry-jitter", "largest random `duration` that is added for each failed attempt, such as 30s", checkDuration},
}

var limitFlag = policyFlag{"default-retry-limit", "`number` of retries after which a task of a kind without a policy is dead (default 25)", checkCount}

// Add adds the flags to fs, and returns a function that returns the policy for Config.DefaultPolicy.
// Call that function after fs has been parsed. If no flag and no variable is set, the policy is the
// zero Policy, which stands for the library's default. The error names the flag or the variable that is
// missing or invalid, and the rule.
func Add(fs *flag.FlagSet) func() (backoff.Policy, error) {
	given := map[string]*string{}
	for _, f := range append([]policyFlag{limitFlag}, formulaFlags...) {
		given[f.name] = fs.String(f.name, "", f.usage+", or $"+f.variable())
	}
	return func() (backoff.Policy, error) {
		limit, err := limitFlag.value(*given[limitFlag.name])
		if err != nil {
			return backoff.Policy{}, err
		}
		var values, missing []string
		for _, f := range formulaFlags {
			value, err := f.value(*given[f.name])
			if err != nil {
				return backoff.Policy{}, err
			}
			if values = append(values, value); value == "" {
				missing = append(missing, "--"+f.name)
			}
		}
		switch {
		case len(missing) == 0:
		case len(missing) < len(formulaFlags):
			return backoff.Policy{}, fmt.Errorf("policyflags: %s missing; set all three flags of the formula, or none", strings.Join(missing, " and "))
		case limit == "":
			return backoff.Policy{}, nil
		}
		var args []string
		for i, name := range []string{"base", "exponent", "jitter"} {
			if values[i] != "" {
				args = append(args, name+"="+values[i])
			}
		}
		if limit != "" {
			args = append(args, "retries="+limit)
		}
		policy, err := backoff.Parse("zizq(" + strings.Join(args, ", ") + ")")
		if err != nil {
			return backoff.Policy{}, fmt.Errorf("policyflags: the default policy: %w", err)
		}
		return policy, nil
	}
}

// variable returns the name of the environment variable that the flag defaults to.
func (f policyFlag) variable() string {
	return "FALLDUE_" + strings.ToUpper(strings.ReplaceAll(f.name, "-", "_"))
}

// value returns the value of a flag, or its variable's value if it is "".
func (f policyFlag) value(given string) (string, error) {
	from := "--" + f.name
	if given == "" {
		from, given = f.variable(), os.Getenv(f.variable())
	}
	if given == "" {
		return "", nil
	}
	if err := f.check(given); err != nil {
		return "", fmt.Errorf("policyflags: %s is %.100q: %w", from, given, err)
	}
	return given, nil
}

func checkDuration(value string) error {
	if d, err := time.ParseDuration(value); err != nil || d < 0 {
		return errors.New("must be a duration with a unit, such as 15s or 1h30m")
	}
	return nil
}

func checkNumber(value string) error {
	if n, err := strconv.ParseFloat(value, 64); err != nil || !(n >= 0) {
		return errors.New("must be a number, 0 or more")
	}
	return nil
}

func checkCount(value string) error {
	if n, err := strconv.Atoi(value); err != nil || n < 0 {
		return errors.New("must be a whole number, 0 or more")
	}
	return nil
}
