package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSimulateComparesPolicies(t *testing.T) {
	t.Parallel()
	args := []string{"simulate", "10s", "delay 1m; attempts 3", "--outage", "10m", "--per-second", "1", "--handler", "100ms"}
	contains(t, mustRun(t, args...), `(?m)^policy +failed +retries +dead +busiest minute +longest wait +recovered$`,
		`(?m)^10s +600 +18,\d+ +0 +[\d,]+ +0s +after 10\S*s$`, `(?m)^delay 1m; attempts 3 +600 +1,\d+ +4\d\d +[\d,]+ +0s +after \S+$`)
	var r struct {
		Policy string
		Failed int
		Load   []int
	}
	first, _, _ := strings.Cut(mustRun(t, append(args, "--json")...), "\n")
	if err := json.Unmarshal([]byte(first), &r); err != nil || r.Policy != "10s" || r.Failed != 600 || len(r.Load) != 11 {
		t.Errorf("simulate --json: %+v, error %v", r, err)
	}
	if _, err := execute(t, "simulate", "10s", "--per-second", "1000"); err == nil || !strings.Contains(err.Error(), "they never catch up") || exitStatus(err) != exitUsage {
		t.Errorf("too much work: error %v", err)
	}
}
