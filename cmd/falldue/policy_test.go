package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
)

// execute runs the command line, and returns what it prints. It runs doctor again if the machine was too busy for a check.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	for tries := 1; ; tries++ {
		out, err := executeIn(t.Context(), t, args...)
		if tries == 10 || !strings.Contains(out, "the check took longer than ") {
			return out, err
		}
	}
}

// executeIn is execute with a context, and once.
func executeIn(ctx context.Context, t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	cmd := root()
	cmd.SetArgs(append([]string{}, args...)) // nil would be the arguments of the test program
	cmd.SetOut(&out)
	cmd.SetErr(&diagnostics)
	err := cmd.ExecuteContext(ctx)
	if diagnostics.Len() > 0 {
		t.Errorf("%v wrote to stderr: %s", args, &diagnostics)
	}
	return out.String(), err
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := execute(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

func TestPolicyEvalPrintsJSONLines(t *testing.T) {
	t.Parallel()
	got := mustRun(t, "policy", "eval", "15s + n^4", "--jitter", "delay / 2", "--attempts", "0-2,2147483647", "--json")
	want := `{"n":0,"seconds":0,"jitter_seconds":0}
{"n":1,"seconds":16,"jitter_seconds":8}
{"n":2,"seconds":31,"jitter_seconds":15.5}
{"n":2147483647,"seconds":3153600000,"jitter_seconds":1576800000}
`
	if got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}

func TestPolicyEvalAcceptsFormulasPresetsAndPolicies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ formula, want string }{
		{"geometric(min=5s, max=260s, retries=10)", `{"n":10,"seconds":260,"jitter_seconds":0}`},
		{"zizq", `{"n":10,"seconds":10015,"jitter_seconds":300}`},
		{"delay 1m; jitter 0.1 * delay; attempts 3", `{"n":10,"seconds":60,"jitter_seconds":6}`},
	} {
		if got := mustRun(t, "policy", "eval", c.formula, "--attempts", "10", "--json"); got != c.want+"\n" {
			t.Errorf("%s printed %s, want %s", c.formula, got, c.want)
		}
	}
	got := mustRun(t, "policy", "eval", "--attempts", "3", "--", "-n + 5")
	if want := "         n                 delay                jitter\n         3                    2s                    0s\n"; got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
}

func TestPolicyListPrintsEveryPreset(t *testing.T) {
	t.Parallel()
	text := mustRun(t, "policy", "list")
	var names []string
	lines := bufio.NewScanner(strings.NewReader(mustRun(t, "policy", "list", "--json")))
	for lines.Scan() {
		var preset backoff.Preset
		if err := json.Unmarshal(lines.Bytes(), &preset); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		names = append(names, preset.Name)
		if preset.Source == "" || !strings.Contains(text, "\n"+preset.Name+"(") && !strings.HasPrefix(text, preset.Name+"(") {
			t.Errorf("%s has no source, or is missing in the text list", preset.Name)
		}
		for _, param := range preset.Params {
			if !strings.Contains(text, param.Name+"="+param.Default) {
				t.Errorf("the text list lacks %s of %s", param.Name, preset.Name)
			}
		}
	}
	var want []string
	for _, preset := range backoff.Presets() {
		want = append(want, preset.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("it lists %v, want %v", names, want)
	}
}

func TestPolicySQLPrintsOneExpression(t *testing.T) {
	t.Parallel()
	for engine, want := range map[string]string{
		"postgres": `case when "tries" between 1 and 2147483647 then least(15::float8 + power("tries"::float8, 4::float8), 3153600000::float8) when "tries" > 2147483647 then 3153600000::float8 else 0::float8 end`,
		"mysql":    "case when `tries` between 1 and 2147483647 then least(15e0 + power((`tries` + 0e0), 4e0), 3153600000e0) when `tries` > 2147483647 then 3153600000e0 else 0e0 end",
		"mariadb":  "case when `tries` between 1 and 2147483647 then least(15e0 + power((`tries` + 0e0), 4e0), 3153600000e0) when `tries` > 2147483647 then 3153600000e0 else 0e0 end",
		"tidb":     "case when `tries` between 1 and 2147483647 then least(15e0 + power((`tries` + 0e0), 4e0), 3153600000e0) when `tries` > 2147483647 then 3153600000e0 else 0e0 end",
		"sqlite":   `case when "tries" between 1 and 2147483647 then min(15.0 + power(cast("tries" as real), 4.0), 3153600000.0) when "tries" > 2147483647 then 3153600000.0 else 0.0 end`,
	} {
		if got := mustRun(t, "policy", "sql", "15s + n^4", "--engine", engine, "--attempts-column", "tries"); got != want+"\n" {
			t.Errorf("%s: printed\n%swant\n%s", engine, got, want)
		}
	}
	if got := mustRun(t, "policy", "sql", "5m", "--engine", "sqlite"); got != "case when \"attempts\" >= 1 then 300.0 else 0.0 end\n" {
		t.Errorf("printed %s", got)
	}
}

func TestPolicyWherePrintsAPredicate(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`"changed" <= statement_timestamp() - (case when "tries" >= 1 then 300000000 else 0 end)::float8 * interval '1 microsecond'`: {
			"--engine", "postgres", "--attempts-column", "tries", "--updated-at-column", "changed"},
		"`t`.`updated_at` <= date_sub(utc_timestamp(6), interval (case when `t`.`attempts` >= 1 then 300000000 else 0 end) microsecond)": {
			"--engine", "mysql", "--table", "t", "--utc"},
		`julianday("updated_at") <= julianday('now') - (case when "attempts" >= 1 then 300.0 else 0.0 end) / 86400.0`: {
			"--engine", "sqlite"},
	} {
		if got := mustRun(t, append([]string{"policy", "where", "5m"}, args...)...); got != want+"\n" {
			t.Errorf("printed\n%swant\n%s", got, want)
		}
	}
}

func TestPolicyErrorsNameTheMistake(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`byte 2: found the end, expected a number`:                                        {"eval", "n+"},
		`the jitter: formula "x", byte 0: unknown name "x"`:                               {"eval", "n", "--jitter", "x"},
		`--attempts: "x" is not a number from 0 to 2147483647, or a range such as 0-30`:   {"eval", "n", "--attempts", "0,x"},
		`--attempts: the range "3-1" is reversed`:                                         {"eval", "n", "--attempts", "3-1"},
		`--attempts: "2147483648" is not a number`:                                        {"eval", "n", "--attempts", "2147483648"},
		`--engine "oracle": must be postgres, mysql, mariadb, sqlite or tidb`:             {"sql", "n", "--engine", "oracle"},
		`--engine is missing: must be postgres, mysql, mariadb, sqlite or tidb`:           {"sql", "n"},
		`--attempts-column is empty; it must name the column that counts failed attempts`: {"sql", "n", "--engine", "mysql", "--attempts-column", ""},
		`the updated-at column: must not be empty`:                                        {"where", "n", "--engine", "mysql", "--updated-at-column", ""},
		`2 arguments given; usage: falldue policy eval FORMULA`:                           {"eval", "n", "+1"},
		`geometric: retries is 0: must be from 1 to 1000000`:                              {"eval", "geometric(retries=0)"},
	} {
		out, err := execute(t, append([]string{"policy"}, args...)...)
		if exitStatus(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: status %d, error %v, want %q", args, exitStatus(err), err, want)
		}
		if out != "" {
			t.Errorf("%v printed %s", args, out)
		}
	}
}

// TestPolicyListOwn: the policies that tasks have of their own, and those that cannot be read.
func TestPolicyListOwn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		if got := s.run("policy", "list", "--own"); got != "no waiting task has a per-task policy\n" {
			t.Errorf("without tasks it prints %q", got)
		}
		for range 2 {
			s.run("enqueue", "report", "--own-policy", "delay 10m; attempts 4", "--queue", "images")
		}
		contains(t, s.run("policy", "list", "--own"), `^key +queue +kind +lanes +tasks +policy\n[0-9a-f]{16} +images +report +1 +2 +delay 10m; attempts 4\n$`)
		contains(t, s.run("policy", "list", "--own", "--json"), `^{"key":"[0-9a-f]{16}","policy":"delay 10m; attempts 4","queue":"images","kind":"report","lanes":1,"tasks":2}\n$`)
		s.db.MustExec("delete from falldue_policies")
		contains(t, s.run("policy", "list", "--own"), `^key .*\n[0-9a-f]{16} +images +report +1 +2 +cannot be read: policy [0-9a-f]{16} is not in the policies table\n$`)
		shown := s.run("show", "1")
		contains(t, shown, `\nit does not run until a worker can read its policy\n$`)
		if strings.Contains(shown, "is due") {
			t.Errorf("a task that no worker can run is due: %s", shown)
		}
		contains(t, s.run("ls", "1"), `unknown_policy`)
		contains(t, s.run("policy", "list", "--own", "--json"), `"error":"policy [0-9a-f]{16} is not in the policies table","queue":"images"`)
	})
}
