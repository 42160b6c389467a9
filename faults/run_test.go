package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// This is a short run of the suite. "make faults" does long ones.
func TestRunDoesFaultsAndJudges(t *testing.T) {
	t.Parallel()
	result, err := Do(t.Context(), Options{
		Engine: testdb.SQLite, Seed: 1, Duration: 4 * time.Second, Program: buildProgram(t), Folder: t.TempDir(), Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !result.OK() {
		t.Errorf("%d lost, %d doubled, %d stale settles, %d early, %d exceeded: %q", result.Lost, result.Doubled, result.StaleSettles, result.Early, result.Exceeded, result.Findings)
	}
	if result.Tasks == 0 || result.Attempts < result.Tasks || result.Faults == 0 {
		t.Errorf("%d tasks, %d attempts, %d faults", result.Tasks, result.Attempts, result.Faults)
	}
}

func TestFaultsThatCannotBeDoneAreRefused(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"earthquake":      `fault "earthquake"; the faults are kill, `,
		"kill the server": "can be done to sqlite", // it has no server
	} {
		_, err := Do(t.Context(), Options{Engine: testdb.SQLite, Only: []string{name}, Folder: t.TempDir(), Log: t.Output()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, want)
		}
	}
}
