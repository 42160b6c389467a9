package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesNameTheirTests holds docs/guarantees.md and docs/fault-suite.md to the tests that they
// name.
func TestGuaranteesNameTheirTests(t *testing.T) {
	t.Parallel()
	text := sources(t, "../docs/guarantees.md", "../docs/fault-suite.md")
	tests, cases := sources(t, "*_test.go", "../*_test.go", "../internal/*/*_test.go", "../ops/*_test.go", "../periodic/*_test.go", "../steps/*_test.go"), sources(t, "../queuetest/*.go")
	named := 0
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(text, -1) {
		named++
		if !strings.Contains(tests, "func "+name[1]+"(t *testing.T)") {
			t.Errorf("there is no test %s", name[1])
		}
	}
	for _, sentence := range regexp.MustCompile(`"([^"|]+)"`).FindAllStringSubmatch(text, -1) {
		named++
		name := strings.Join(strings.Fields(sentence[1]), " ") // it may be on two lines
		if !strings.Contains(cases, `{"`+name+`", func`) && !strings.Contains(cases, `inCallersTx("`+name+`", func`) {
			t.Errorf("the conformance suite has no case %q", name)
		}
	}
	if named < 10 {
		t.Errorf("only %d tests are named", named)
	}
}

// sources returns the text of all files that match patterns.
func sources(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}
