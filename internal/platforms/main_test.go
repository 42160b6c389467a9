package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCodeOfOtherPlatformsIsChecked checks a call that Unix alone has, a constant that is too large for 32 bits, and a
// folder without code.
func TestCodeOfOtherPlatformsIsChecked(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.com/m\n")
	if _, err := check(folder, "linux", "amd64", []string{"./..."}); err == nil {
		t.Error("a folder without code has no error")
	}
	write("m.go", "package m\n\nimport \"syscall\"\n\nfunc kill() error { return syscall.Kill(1, syscall.SIGKILL) }\n\nconst large int = 1 << 40\n")
	for platform, ok := range map[[2]string]bool{{"linux", "amd64"}: true, {"windows", "amd64"}: false, {"linux", "386"}: false} {
		if n, err := check(folder, platform[0], platform[1], []string{"./..."}); (err == nil) != ok || ok && n != 1 {
			t.Errorf("%v: %d packages, error %v", platform, n, err)
		}
	}
}
