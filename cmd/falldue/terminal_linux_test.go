package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/falldue/falldue/internal/testdb"
)

// programVariable makes the test program be the command, or one that does not end.
const programVariable = "FALLDUE_TEST_PROGRAM"

// TestMain lets the test program also be the processes that the tests start.
func TestMain(m *testing.M) {
	switch os.Getenv(programVariable) {
	case "falldue":
		os.Exit(run(os.Args[1:]))
	case "stuck":
		os.Exit(runCommand(&cobra.Command{Use: "stuck", RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Println("it has begun")
			select {} // whatever its context says
		}}, nil))
	}
	if signal.Ignored(os.Interrupt) { // as in a background job of a shell: processes that the tests start would ignore Ctrl-C too
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	completeTimeout = time.Minute
	testdb.SetParallel()
	os.Exit(m.Run())
}

// openTerminal opens a terminal of 72 columns, and the end from which it is controlled.
func openTerminal(t *testing.T) (controller, terminal *os.File) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = controller.Close() })
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
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return controller, terminal
}

// TestATerminalHasColours: a terminal has its width, and colours unless NO_COLOR is set.
func TestATerminalHasColours(t *testing.T) {
	_, terminal := openTerminal(t)
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

// TestTopHasAScreen: on a terminal top has a screen of its own, which it leaves by the key q.
func TestTopHasAScreen(t *testing.T) {
	s := openShop(t, testdb.SQLite)
	s.run("enqueue", "charge")
	controller, terminal := openTerminal(t)
	cmd := root()
	cmd.SetArgs([]string{"top", "--interval", "100ms", "--dsn", s.dsn})
	cmd.SetOut(terminal)
	cmd.SetIn(terminal)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(t.Context()) }()
	var shown strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(shown.String(), "charge") {
		n, err := controller.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(buffer[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, controller) }() // it must not wait for somebody to look
	if _, err := controller.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	const otherScreen = "\x1b[?1049h"
	if !strings.Contains(shown.String(), otherScreen) {
		t.Errorf("it showed %q", shown.String())
	}
}

// TestTheTerminalIsAskedNothing: a command that prints starts without a query to the terminal,
// whose answer some terminals never give, and others type into the shell.
func TestTheTerminalIsAskedNothing(t *testing.T) {
	t.Parallel()
	controller, terminal := openTerminal(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^$") // links the same packages
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.Env = []string{"TERM=xterm-256color", "HOME=" + t.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	shown := make([]byte, 4096)
	n, err := controller.Read(shown)
	if err != nil || strings.Contains(string(shown[:n]), "\x1b") {
		t.Errorf("it wrote %q (error %v)", shown[:n], err)
	}
}

// TestAnEndThatPassesDuringAConfirmation: the error names the flag, and not a field of the library.
func TestAnEndThatPassesDuringAConfirmation(t *testing.T) {
	t.Parallel()
	shop := openShop(t, testdb.SQLite)
	for name, args := range map[string][]string{
		"--until: the time ": {"pause", "missing", "--until", "20ms"},
		"until: the time ":   {"policy", "hold", "missing", "until", "20ms"},
	} {
		s := onTerminal(t, "falldue", append(args, "--dsn", shop.dsn)...)
		s.shows("Continue?")
		<-time.After(30 * time.Millisecond) // the end passes
		s.press("y\n")
		s.shows("has passed in the meantime; set a later time")
		if text := s.shown.String(); !strings.Contains(text, "falldue: "+name) || strings.Contains(text, "Until") {
			t.Errorf("it showed %q", text)
		}
		if err := s.cmd.Wait(); err == nil {
			t.Error("it ended with status 0")
		}
	}
}
