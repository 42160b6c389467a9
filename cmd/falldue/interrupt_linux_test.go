package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// session is a program on a terminal of its own.
type session struct {
	t          *testing.T
	cmd        *exec.Cmd
	controller *os.File
	written    chan string
	shown      strings.Builder
}

// onTerminal starts a program: "falldue" with arguments, or "stuck".
func onTerminal(t *testing.T, program string, args ...string) *session {
	t.Helper()
	controller, terminal := openTerminal(t)
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, cmd: exec.CommandContext(t.Context(), file, args...), controller: controller, written: make(chan string, 1000)}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = terminal, terminal, terminal
	s.cmd.Env = append(os.Environ(), "TERM=dumb", programVariable+"="+program)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil { // so that reading ends when the program does
		t.Fatal(err)
	}
	go func() {
		defer close(s.written)
		buffer := make([]byte, 4096)
		for {
			n, err := controller.Read(buffer)
			if err != nil {
				return
			}
			s.written <- string(buffer[:n])
		}
	}()
	return s
}

const ctrlC = "\x03"

// press types keys.
func (s *session) press(keys string) {
	s.t.Helper()
	if _, err := s.controller.WriteString(keys); err != nil && !errors.Is(err, syscall.EIO) { // it has ended
		s.t.Fatal(err)
	}
}

// shows waits until the terminal has a text.
func (s *session) shows(text string) {
	s.t.Helper()
	deadline := time.After(testdb.Patience)
	for !strings.Contains(s.shown.String(), text) {
		select {
		case more, ok := <-s.written:
			if !ok {
				s.t.Fatalf("it ended without %q, after %q", text, s.shown.String())
			}
			s.shown.WriteString(more)
		case <-deadline:
			s.t.Fatalf("it does not show %q, but %q", text, s.shown.String())
		}
	}
}

// ends waits until the program ends, with a status, or -1 for that of a signal. It presses
// keys again and again meanwhile.
func (s *session) ends(status int, keys string) {
	s.t.Helper()
	deadline, again := time.After(testdb.Patience), time.NewTicker(50*time.Millisecond)
	defer again.Stop()
	for {
		select {
		case more, ok := <-s.written:
			if ok {
				s.shown.WriteString(more)
				continue
			}
			if err, ok := errors.AsType[*exec.ExitError](s.cmd.Wait()); s.cmd.ProcessState.ExitCode() != status {
				s.t.Errorf("it ended with status %d, want %d (%v, %v); it showed %q", s.cmd.ProcessState.ExitCode(), status, ok, err, s.shown.String())
			}
			return
		case <-again.C:
			s.press(keys)
		case <-deadline:
			_ = s.cmd.Process.Kill()
			s.t.Fatalf("it does not end; it showed %q", s.shown.String())
		}
	}
}

// TestAnswersAtAPrompt: yes, no, and Ctrl-C, which needs no Enter.
func TestAnswersAtAPrompt(t *testing.T) {
	t.Parallel()
	s := openShop(t, testdb.SQLite)
	s.run("enqueue", "charge")
	for _, c := range []struct {
		keys   string
		status int
		says   string
		state  string
	}{
		{"\n", exitFailed, "falldue: nothing was done", "open"},
		{"no\n", exitFailed, "falldue: nothing was done", "open"},
		{ctrlC, exitInterrupted, "falldue: interrupted", "open"},
		{"yes\n", 0, "cancelled 1", "cancelled"},
	} {
		p := onTerminal(t, "falldue", "cancel", "1", "--dsn", s.dsn)
		p.shows("cancel tasks: 1. Continue? [y/N] ")
		p.press(c.keys)
		p.ends(c.status, "")
		if !strings.Contains(p.shown.String(), c.says) {
			t.Errorf("after %q it shows %q, want %q", c.keys, p.shown.String(), c.says)
		}
		contains(t, s.run("ls", "1", "--json"), `"state":"`+c.state+`"`)
	}
}

// TestInterruptions: by Ctrl-C, where a command prints, reads or computes for long.
func TestInterruptions(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, "falldue", "policy", "eval", "5m", "--attempts", "0-2147483647")
	p.shows("       100  ")
	p.press(ctrlC)
	p.ends(exitInterrupted, "")

	ctx, stop := context.WithCancel(t.Context())
	stop()
	input, other := io.Pipe() // from which nothing comes
	defer func() { _ = other.Close() }()
	for _, args := range [][]string{
		{"enqueue", "mail", "-", "--dsn", "sqlite:" + t.TempDir() + "/shop.db"},
		{"simulate", "10s"},
		{"policy", "herd", "10s"},
	} {
		cmd := root()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetIn(input)
		if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}

// TestASecondInterruptionEndsTheProcess: also one that does not look at its context.
func TestASecondInterruptionEndsTheProcess(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, "stuck")
	p.shows("it has begun")
	const bySignal = -1
	p.ends(bySignal, ctrlC)
}

// TestProgressIsForTerminals: a line that is replaced, and is gone at the end.
func TestProgressIsForTerminals(t *testing.T) {
	t.Parallel()
	controller, terminal := openTerminal(t)
	cmd := root()
	cmd.SetErr(terminal)
	var shown string
	buffer := make([]byte, 4096)
	if err := withProgress(cmd, func() string { return "reading the waiting tasks" }, func() error {
		for !strings.Contains(shown, "reading the waiting tasks: ") {
			n, err := controller.Read(buffer)
			if err != nil {
				return err
			}
			shown += string(buffer[:n])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for !strings.HasSuffix(shown, "\r\x1b[K") { // or the test ends by its timeout
		n, err := controller.Read(buffer)
		if err != nil {
			t.Fatalf("it showed %q (error %v)", shown, err)
		}
		shown += string(buffer[:n])
	}
	if !strings.HasPrefix(shown, "\r\x1b[Kreading the waiting tasks: ") {
		t.Errorf("it showed %q", shown)
	}
}
