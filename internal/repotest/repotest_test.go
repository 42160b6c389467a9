// Package repotest tests the repository: which package imports and links what, where SQL is made, and
// whether README.md and docs show code that is compiled, errors and log lines as they are, and links
// that lead somewhere.
package repotest

import (
	"fmt"
	"os"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// TestMain runs the tests in the folder of the repository, whose files they read.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testdb.Main(m)
}
