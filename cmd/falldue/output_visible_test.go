package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// TestOutputShowsHiddenCharacters: those that control a terminal or change the direction of text are
// replaced in tables and escaped in JSON, which keeps its value.
func TestOutputShowsHiddenCharacters(t *testing.T) {
	t.Parallel()
	const text = "a\u009bb\u202ec\u2066d\u200fe\u061cf\u007f é"
	if got := plain(text); got != "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffd é" {
		t.Errorf("a table has %q", got)
	}
	var out bytes.Buffer
	if err := jsonLines(&out).Encode(text); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != `"a\u009bb\u202ec\u2066d\u200fe\u061cf\u007f é"`+"\n" {
		t.Errorf("JSON is %q", got)
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
		t.Errorf("it means %q, error %v", back, err)
	}
}

// TestMistakesHaveTheirStatus: arguments that name nothing.
func TestMistakesHaveTheirStatus(t *testing.T) {
	t.Setenv(dsnVariable, "")
	for _, args := range [][]string{
		{"migrate", "dump", "--engine", "nope"}, {"migrate", "dump", "--engine", "sqlite", "--format", "nope"}, {"migrate", "dump", "--engine", "sqlite", "--start", "x"},
		{"completion", "tcsh"}, {"schedules", "resume"}, {"schedules", "nope"},
	} {
		if _, err := execute(t, args...); exitStatus(err) != exitUsage {
			t.Errorf("%v ends with status %d: %v", args, exitStatus(err), err)
		}
	}
}

// TestEnvironmentNamesTheTables: FALLDUE_PREFIX is the default of --prefix.
func TestEnvironmentNamesTheTables(t *testing.T) {
	s := openShop(t, testdb.SQLite)
	t.Setenv(prefixVariable, "other_")
	if out, err := execute(t, "counts", "--dsn", s.dsn); err == nil {
		t.Errorf("without tables of that prefix it prints %q", out)
	}
	s.run("counts", "--prefix", "falldue_")
	t.Setenv(prefixVariable, "")
	t.Setenv(schemaVariable, "app")
	if _, err := execute(t, "counts", "--dsn", s.dsn); err == nil {
		t.Error("the schema of the environment is ignored")
	}
}
