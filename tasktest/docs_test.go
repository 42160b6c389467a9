package tasktest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestThePageShowsTestsThatRun compares the programs of docs/testing.md with shop_test.go.
func TestThePageShowsTestsThatRun(t *testing.T) {
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("shop_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		if !strings.Contains(string(code), block[1]) {
			t.Errorf("shop_test.go does not have\n%s", block[1])
		}
	}
	if len(blocks) != 5 {
		t.Errorf("the page has %d programs", len(blocks))
	}
}
