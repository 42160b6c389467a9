package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPolicyPreviewShowsPoliciesSideBySide(t *testing.T) {
	t.Parallel()
	got := mustRun(t, "policy", "preview", "delay 10s; jitter 5s; elapsed 35s", "1m", "--retries", "2", "--from", "2026-12-11T14:02:00Z")
	for _, want := range []string{
		`
failures  delay 10s; jitter 5s; elapsed 35s                   1m
          wait                               since the first  wait  since the first
1         10s – 15s                          10s – 15s        1m    1m
2         10s – 15s                          20s – 30s        1m    2m
`,
		"\nnot given up after 2 retries\n",
	} {
		if !strings.Contains("\n"+got, want) {
			t.Errorf("printed\n%swithout\n%s", got, want)
		}
	}
	got = mustRun(t, "policy", "preview", "delay 10s; jitter 5s; elapsed 35s", "--from", "2026-12-11T14:02:00Z")
	if want := "given up after 3 to 4 attempts and 20s – 35s, at the latest on 11 December 2026 14:02 UTC\n"; !strings.HasSuffix(got, want) {
		t.Errorf("printed\n%swithout\n%s", got, want)
	}
}

func TestPolicyPreviewPrintsJSONLines(t *testing.T) {
	t.Parallel()
	got := mustRun(t, "policy", "preview", "delay 10s; jitter n; attempts 3", "--json")
	want := `{"policy":"delay 10s; jitter n; attempts 3","n":1,"delay_seconds":10,"jitter_seconds":1,"earliest_seconds":10,"latest_seconds":11}
{"policy":"delay 10s; jitter n; attempts 3","n":2,"delay_seconds":10,"jitter_seconds":2,"earliest_seconds":20,"latest_seconds":23}
{"policy":"delay 10s; jitter n; attempts 3","given_up":true,"fewest_attempts":3,"most_attempts":3,"earliest_seconds":20,"latest_seconds":23}
`
	if got != want {
		t.Errorf("printed\n%swant\n%s", got, want)
	}
	if got := mustRun(t, "policy", "preview", "10s", "--retries", "1", "--json"); !strings.HasSuffix(got, `{"policy":"10s","given_up":false}`+"\n") {
		t.Errorf("of a policy without an end it printed %s", got)
	}
}

func TestPolicyHerdPrintsTheLoad(t *testing.T) {
	t.Parallel()
	got := mustRun(t, "policy", "herd", "visualization_constant", "--failures", "7", "--retries", "2", "--json")
	var h struct {
		With struct {
			Load []int
			Peak int
			Idle float64
		} `json:"with_jitter"`
	}
	if err := json.Unmarshal([]byte(got), &h); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if len(h.With.Load) != 11 || h.With.Load[5] != 7 || h.With.Load[10] != 7 || h.With.Peak != 7 || h.With.Idle != 9.0/11 {
		t.Errorf("printed %s", got)
	}
	// Columns of several intervals have the sum of them.
	if got := mustRun(t, "policy", "herd", "1h", "--failures", "7"); !strings.Contains(got, " 7┤") || !strings.Contains(got, "retries in 6m") {
		t.Errorf("printed\n%s", got)
	}
}

func TestPolicyPreviewRefuses(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		`--from "tomorrow": must be a time such as 2026-12-11T14:02:00Z`: {"preview", "zizq", "--from", "tomorrow"},
		`--retries "0": must be a whole number from 1 to 1,000,000`:      {"preview", "zizq", "--retries", "0"},
		`unknown name "nonsense"`:                                        {"preview", "nonsense"},
		`--failures "0": must be a whole number from 1 to 1,000,000`:     {"herd", "zizq", "--failures", "0"},
		`--bucket "-1s": must be a duration from 1ms to 30d`:             {"herd", "zizq", "--bucket", "-1s"},
	} {
		if _, err := execute(t, append([]string{"policy"}, args...)...); exitStatus(err) != exitUsage || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "ops:") {
			t.Errorf("%v: status %d, error %v, want %q", args, exitStatus(err), err, says)
		}
	}
}
