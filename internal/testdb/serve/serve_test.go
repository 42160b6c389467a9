//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestMain lets the test program also be the processes that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) != 3 {
		os.Exit(m.Run())
	}
	switch dir := os.Args[2]; os.Args[1] {
	case "watch": // runs a shell for an hour instead of a server
		_ = supervise(os.Stdin, dir, nil, syscall.SIGKILL, []string{"sh", "-c", "echo $$ >pid.new; mv pid.new pid; sleep 3600"})
	case "victim": // a process that runs a server until it is killed
		if _, err := startWatcher(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	default:
		os.Exit(m.Run())
	}
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 seconds: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// groupIsGone reports whether no process of the group is left.
func groupIsGone(group int) bool {
	return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}

func TestServerEndsWithItsKilledOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "server")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.Command(self, "victim", dir)
	owner.Stderr = os.Stderr
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	eventually(t, "the server runs", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid != 0
	})
	if groupIsGone(pid) {
		t.Fatal("the server ended before its owner was killed")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // the error says that it was killed
	eventually(t, "the server is gone", func() bool { return groupIsGone(pid) })
	eventually(t, "its folder is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestServerEndsWhenStopped(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "server")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := startWatcher(dir)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server runs", func() bool {
		_, err := os.Stat(filepath.Join(dir, "pid"))
		return err == nil
	})
	w.stop()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestServerThatFailsReportsWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, lifeline := io.Pipe()
	defer lifeline.Close()
	err := supervise(in, dir, nil, syscall.SIGKILL, []string{"sh", "-c", "echo the disk is full; exit 3"})
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("the error lacks the log of the server: %v", err)
	}
}

func TestInterruptEndsAllThatACommandStarted(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	done := make(chan error, 1)
	go func() {
		done <- runGroup(ctx, []string{"sh", "-c", "sleep 3600 & echo $$; wait"}, os.Environ(), w)
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	interrupt()
	if err := <-done; err == nil {
		t.Error("an interrupted command was taken for a success")
	}
	eventually(t, "the command and its children are gone", func() bool { return groupIsGone(group) })
	w.Close()
}

func TestCommandKeepsItsExitStatus(t *testing.T) {
	t.Parallel()
	err := runGroup(t.Context(), []string{"sh", "-c", "exit 7"}, os.Environ(), os.Stdout)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("got %v, want exit status 7", err)
	}
}

func TestErrorForMissingEngineSaysHowToGetIt(t *testing.T) {
	t.Setenv(testdb.ServerVariable(testdb.MySQL), "")
	t.Setenv(sourcesVariable, "apt") // Debian has no MySQL
	_, err := find(t.Context(), testdb.MySQL)
	if err == nil {
		t.Fatal("found MySQL among Debian's packages")
	}
	for _, want := range []string{
		"FALLDUE_TEST_MYSQL=", "FALLDUE_TEST_MYSQL_IMAGE", "mysql:9", "dev.mysql.com", "FALLDUE_TEST_ENGINES",
		"docker: left out by FALLDUE_TEST_SOURCES", "apt: no package of it in Debian",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, err)
		}
	}
}

func TestUnknownSourceIsRefused(t *testing.T) {
	t.Setenv(testdb.ServerVariable(testdb.Postgres), "")
	t.Setenv(sourcesVariable, "podman")
	_, err := find(t.Context(), testdb.Postgres)
	if err == nil || !strings.Contains(err.Error(), `"podman"`) || !strings.Contains(err.Error(), "docker, programs, apt") {
		t.Errorf("got %v, want the unknown source and the known ones", err)
	}
}

func TestNamedServerThatDoesNotAnswerIsNotReplaced(t *testing.T) {
	// Another server in its place would hide a mistyped DSN.
	t.Setenv(testdb.ServerVariable(testdb.Postgres), "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	_, err := find(t.Context(), testdb.Postgres)
	if err == nil || !strings.Contains(err.Error(), "FALLDUE_TEST_POSTGRES") {
		t.Errorf("got %v, want an error that names FALLDUE_TEST_POSTGRES", err)
	}
}

func TestNewestVersionIsTaken(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/usr/lib/postgresql/15/bin/initdb": 15,
		"/usr/lib/postgresql/9.6/bin":       9,
		"/usr/pgsql-18":                     18,
		"/usr/sbin/mysqld":                  0,
		"":                                  0,
	} {
		if got := firstNumber(path); got != want {
			t.Errorf("firstNumber(%q) = %d, want %d", path, got, want)
		}
	}
}
