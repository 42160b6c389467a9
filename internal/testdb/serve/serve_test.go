//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	switch os.Args[1] {
	case "watch": // as the current user, who may enter a test's folder
		var p plan
		if err := json.Unmarshal([]byte(os.Args[2]), &p); err != nil {
			panic(err)
		}
		_ = p.supervise(os.Stdin, nil)
	case "victim": // a process that runs a server until it is killed
		if _, err := startWatcher(shellFor(os.Args[2])); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	default:
		os.Exit(m.Run())
	}
}

// shellFor returns the plan of a shell that runs for an hour instead of a server.
func shellFor(folder string) plan {
	return plan{Folder: folder, Commands: [][]string{{"sh", "-c", "echo $$ >pid.new; mv pid.new pid; sleep 3600"}}}
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(testdb.Patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", testdb.Patience, what)
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
	w, err := startWatcher(shellFor(dir))
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
	in, lifeline := io.Pipe()
	defer lifeline.Close()
	p := plan{Folder: t.TempDir(), Commands: [][]string{{"sh", "-c", "echo the disk is full; exit 3"}}}
	err := p.supervise(in, nil)
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

// withoutServers makes a test a machine on which no server can be had.
func withoutServers(t *testing.T) {
	t.Helper()
	for _, engine := range testdb.DefaultEngines {
		t.Setenv(testdb.ServerVariable(engine), "")
	}
	t.Setenv(testdb.EnginesVariable, "")
	t.Setenv(sourcesVariable, "docker")
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
}

func TestErrorForMissingEngineSaysHowToGetIt(t *testing.T) {
	withoutServers(t)
	_, err := find(t.Context(), testdb.MySQL)
	if err == nil {
		t.Fatal("found MySQL on a machine without servers")
	}
	for _, want := range []string{
		"FALLDUE_TEST_MYSQL=", "FALLDUE_TEST_MYSQL_IMAGE", "mysql:9", "dev.mysql.com", "as root", "FALLDUE_TEST_ENGINES",
		"docker: no engine answers", "apt: left out by FALLDUE_TEST_SOURCES",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, err)
		}
	}
}

func TestRunWithoutAllServersTestsTheRestAndFails(t *testing.T) {
	withoutServers(t)
	ran := filepath.Join(t.TempDir(), "engines")
	err := runCommand(t.Context(), []string{"sh", "-c", `echo $FALLDUE_TEST_ENGINES >"$0"`, ran})
	if err == nil {
		t.Fatal("a run without MySQL, MariaDB and PostgreSQL was taken for a success")
	}
	for _, engine := range []string{"mysql", "mariadb", "postgres"} {
		if !strings.Contains(err.Error(), "no "+engine+" server") {
			t.Errorf("the error does not name %s:\n%v", engine, err)
		}
	}
	if text, err := os.ReadFile(ran); err != nil || string(text) != "sqlite\n" {
		t.Errorf("the tests ran on %q (error %v), want sqlite alone", text, err)
	}
}

func TestRunWithoutAServerThatWasAskedForFailsAtOnce(t *testing.T) {
	withoutServers(t)
	t.Setenv(testdb.EnginesVariable, "mysql,sqlite")
	ran := filepath.Join(t.TempDir(), "ran")
	err := runCommand(t.Context(), []string{"touch", ran})
	if err == nil || !strings.Contains(err.Error(), "no mysql server") {
		t.Errorf("got %v, want an error that names mysql", err)
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tests ran (error %v)", err)
	}
}

func TestLastLineNamesTheEnginesThatWereLeftOut(t *testing.T) {
	t.Parallel()
	servers := map[string]*server{testdb.MySQL: {version: "9.7.0"}}
	for want, engines := range map[string][]string{
		"these tests ran on sqlite; NOT on postgres, mysql, mariadb":       {testdb.SQLite},
		"these tests ran on mysql 9.7.0, sqlite; NOT on postgres, mariadb": {testdb.MySQL, testdb.SQLite},
		"these tests ran on postgres, mysql 9.7.0, mariadb, sqlite":        testdb.DefaultEngines,
	} {
		if got := coverage(engines, servers); got != want {
			t.Errorf("got %q, want %q", got, want)
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

// TestEachModuleCanRunTheProgram: each module of the repository whose tests may ask for a
// database finds this program. "install" needs no server.
func TestEachModuleCanRunTheProgram(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "go.mod" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !regexp.MustCompile(`(?m)^(module|\t)\s*github\.com/falldue/falldue( |$)`).Match(text) {
			return err
		}
		t.Chdir(filepath.Dir(path))
		cmd, err := testdb.ServeCommand(t.Context(), "install", "sh")
		if err != nil {
			return err
		}
		if said, err := output(cmd); err != nil || filepath.Base(said) != "sh" {
			t.Errorf("in %s the program printed %q, error %v; want the path of sh", filepath.Dir(path), said, err)
		}
		ran++
		return nil
	})
	if err != nil || ran < 7 {
		t.Errorf("the program ran in %d modules, error %v; want 7 or more", ran, err)
	}
}
