package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/falldue/falldue/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.Main(m, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener")) // of pgxqueue, ends with its queue
}

// TestReadmeNamesTheCode: each name of its table is in the file that it links to.
func TestReadmeNamesTheCode(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\|.*\| (.+) in \[(.+)\]\((.+)\) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 8 {
		t.Fatalf("README.md names code in %d rows", len(rows))
	}
	for _, row := range rows {
		code, err := os.ReadFile(row[3])
		if err != nil {
			t.Error(err)
		}
		for _, name := range regexp.MustCompile("`(.+?)`").FindAllStringSubmatch(row[1], -1) {
			if row[2] != row[3] || !regexp.MustCompile(`(?m)^(var|type|func( \(.*\))?) `+name[1]+`\b`).Match(code) {
				t.Errorf("%s has no %s, or the link has another text", row[3], name[1])
			}
		}
	}
	if !strings.Contains(string(page), "WEBHOOKS_DSN") {
		t.Error("README.md does not name the variable")
	}
}
