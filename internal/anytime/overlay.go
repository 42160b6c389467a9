package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shiftVariable names the environment variable with the seconds by which the clocks of a process
// are ahead of the machine's.
const shiftVariable = "FALLDUE_TEST_CLOCK_SHIFT"

// readShift is a file for package syscall, which may import next to nothing.
const readShift = `package syscall

// ClockShift is by how many seconds the clocks of this process are ahead of the machine's.
var ClockShift = func() (seconds int64) {
	text, _ := Getenv("` + shiftVariable + `")
	for _, c := range []byte(text) {
		if c != '-' {
			seconds = 10*seconds + int64(c-'0')
		}
	}
	if text != "" && text[0] == '-' {
		return -seconds
	}
	return seconds
}()
`

// addShift is a file for package time. The clock of a bubble of synctest stays as it is.
const addShift = `package time

import "syscall"

func shift() int64 {
	if runtimeIsBubbled() {
		return 0
	}
	return syscall.ClockShift
}
`

// shiftedLibrary writes changed files of the standard library to folder, and returns the name of
// the file that makes the compiler use them.
func shiftedLibrary(ctx context.Context, folder string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find GOROOT: %w", err)
	}
	replace := map[string]string{}
	for _, f := range []struct{ path, before, after, added string }{
		{"syscall/shift.go", "", "", readShift},
		{"time/shift.go", "", "", addShift},
		{"time/time.go", "func Now() Time {", "\tsec, nsec, mono := runtimeNow()\n", "\tsec += shift()\n"},
		{
			"syscall/syscall_linux.go", "func Syscall(", "\truntime_exitsyscall()\n",
			"\tif trap == SYS_CLOCK_GETTIME && a1 == 0 && err == 0 { // the time of day\n\t\t*(*int64)(unsafe.Pointer(a2)) += ClockShift\n\t}\n",
		},
	} {
		original := filepath.Join(strings.TrimSpace(string(root)), "src", filepath.FromSlash(f.path))
		text := []byte(f.added)
		if f.before != "" {
			old, err := os.ReadFile(original)
			if err != nil {
				return "", err
			}
			head, tail, ok := bytes.Cut(old, []byte(f.before))
			middle, tail, found := bytes.Cut(tail, []byte(f.after))
			if !ok || !found {
				return "", fmt.Errorf("%s of this Go release has no %q after %q; change the overlay", f.path, f.after, f.before)
			}
			text = bytes.Join([][]byte{head, []byte(f.before), middle, []byte(f.after), []byte(f.added), tail}, nil)
		}
		changed := filepath.Join(folder, strings.ReplaceAll(f.path, "/", "-"))
		if err := os.WriteFile(changed, text, 0o600); err != nil {
			return "", err
		}
		replace[original] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}
