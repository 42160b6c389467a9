package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestATerminalHasColours: a terminal has its width, and colours unless NO_COLOR is set.
func TestATerminalHasColours(t *testing.T) {
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer controller.Close()
	number, err := unix.IoctlGetInt(int(controller.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(controller.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(controller.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 72}); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer terminal.Close()
	cmd := root()
	cmd.SetOut(terminal)
	for _, c := range []struct {
		term, noColour string
		want           bool
	}{{"xterm", "", true}, {"xterm", "1", false}, {"dumb", "", false}} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", c.noColour)
		if s := screenOf(cmd); s.width != 72 || s.colour != c.want {
			t.Errorf("TERM=%s NO_COLOR=%s: %d columns, colours %v; want 72, %v", c.term, c.noColour, s.width, s.colour, c.want)
		}
	}
}
