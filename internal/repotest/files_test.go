package repotest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestFilesAreSmall: the repository has no large file, such as a compiled program.
func TestFilesAreSmall(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(".git"); err != nil {
		return // a download of the module
	}
	list, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	if len(files) < 100 {
		t.Errorf("git lists %d files", len(files))
	}
	const most = 500_000
	for _, name := range files {
		if f, err := os.Stat(name); err == nil && f.Size() > most {
			t.Errorf("%s has %d bytes, and a committed file may have up to %d: is it a compiled program?", name, f.Size(), most)
		}
	}
}
