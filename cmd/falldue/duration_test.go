package main

import "testing"

// TestBadValuesOfFlags: the error names the flag, the value and what is allowed, with an example.
func TestBadValuesOfFlags(t *testing.T) {
	t.Parallel()
	const span = `must be a duration such as 90s, 48h, 2d or 1d12h`
	const rate = `must be a number of tasks per second, above 0 and at most 1,000,000, such as 50 or 0.5`
	for _, c := range []struct {
		want string
		args []string
	}{
		{`--interval "5": ` + span, []string{"top", "--interval", "5"}},
		{`--interval "x": ` + span, []string{"tail", "--interval", "x"}},
		{`--count "many": must be a whole number from 0 to 2,147,483,647`, []string{"tail", "--count", "many"}},
		{`--older-than "a month": ` + span, []string{"cancel", "--older-than", "a month"}},
		{`--over "5": ` + span, []string{"retry", "--over", "5"}},
		{`--rate "x": ` + rate, []string{"retry", "--rate", "x"}},
		{`--rate "-1": ` + rate, []string{"retry", "--rate", "-1"}},
		{`--rate "NaN": ` + rate, []string{"forecast", "--rate", "NaN"}},
		{`--per-second "0": ` + rate, []string{"simulate", "zizq", "--per-second", "0"}},
		{`--time-limit "5": ` + span, []string{"forecast", "--time-limit", "5"}},
		{`--time-limit "0s": must be a duration from 1ns to 30d`, []string{"resume", "kind:x", "--time-limit", "0s"}},
		{`--outage "-5m": must be a duration from 0s to 30d`, []string{"simulate", "zizq", "--outage", "-5m"}},
		{`--outage "31d": must be a duration from 0s to 30d`, []string{"simulate", "zizq", "--outage", "31d"}},
		{`--handler "1": ` + span, []string{"simulate", "zizq", "--handler", "1"}},
		{`--bucket "0s": must be a duration from 1ms to 30d`, []string{"policy", "herd", "zizq", "--bucket", "0s"}},
		{`--seed "-1": must be a whole number, 0 or more, such as 7`, []string{"policy", "herd", "zizq", "--seed", "-1"}},
		{`--delay "5": ` + span, []string{"enqueue", "x", "--delay", "5"}},
		{`--priority "high": must be a whole number from -32,768 to 32,767`, []string{"change", "1", "--priority", "high"}},
		{`--metadata "ann": must be NAME=VALUE, such as by=ann`, []string{"enqueue", "x", "--metadata", "ann"}},
		{`--json "maybe": must be true or false`, []string{"ls", "--json=maybe"}},
		{`--policy "x=1hh": formula "1hh", byte 1: unknown unit "hh"; the units are ms, s, m, h, d`, []string{"ls", "--policy", "x=1hh"}},
		{`--own-policy: formula "1hh", byte 1: unknown unit "hh"; the units are ms, s, m, h, d`, []string{"enqueue", "x", "--own-policy", "1hh"}},
	} {
		if _, err := execute(t, c.args...); exitStatus(err) != exitUsage || err.Error() != c.want {
			t.Errorf("%q: status %d, %v; want %s", c.args, exitStatus(err), err, c.want)
		}
	}
}
