package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// programs are an engine's: the one that creates a data folder, the one that
// serves it, and the user of the packages that does not run them as root.
var programs = map[string]struct{ create, serve, user, dsn string }{
	postgres: {"initdb", "postgres", "postgres", "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable"},
	mySQL:    {"mysqld", "mysqld", "mysql", "root@tcp(127.0.0.1:%d)/mysql"},
	mariaDB:  {"mariadb-install-db", "mariadbd", "mysql", "root@tcp(127.0.0.1:%d)/mysql"},
}

// start runs a server of this machine's programs, as they come: nothing is
// configured but where it is. The servers of the tests will not do, which give
// up durability for speed. stop ends it and removes its data.
func start(ctx context.Context, engine string) (dsn string, stop func(), err error) {
	p := programs[engine]
	create, serve := find(p.create), find(p.serve)
	if create == "" || serve == "" {
		return "", nil, fmt.Errorf("no %s server: there are no programs %s and %s here; name a server by --dsn or %s, for a user who may create databases",
			engine, p.create, p.serve, testdb.ServerVariable(engine))
	}
	dir, err := os.MkdirTemp("", "falldue-bench-"+engine+"-")
	if err != nil {
		return "", nil, err
	}
	who, err := own(dir, p.user)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	port, err := freePort()
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	data := filepath.Join(dir, "data")
	// Where there is no socket in a folder of the system's, none is in the way.
	first, second := []string{create, "--pgdata", data, "--username=postgres", "--auth=trust", "--no-locale", "--encoding=UTF8"},
		[]string{serve, "-D", data, "-p", strconv.Itoa(port), "-k", dir}
	if engine != postgres {
		first = []string{create, "--no-defaults", "--initialize-insecure", "--datadir=" + data}
		if engine == mariaDB {
			first = []string{create, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir=" + data}
		}
		second = []string{serve, "--no-defaults", "--datadir=" + data, "--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1",
			"--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid")}
	}
	command := func(args []string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true} // an interrupt is ours to pass on
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		return cmd
	}
	if said, err := command(first).CombinedOutput(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("%s: %w: %s", create, err, said), os.RemoveAll(dir))
	}
	server := command(second)
	if err := server.Start(); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() {
		_ = server.Process.Signal(syscall.SIGINT) // PostgreSQL does not wait for sessions then
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	}
	dsn = fmt.Sprintf(p.dsn, port)
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if _, err = testdb.Check(ctx, engine, dsn); err == nil {
			return dsn, stop, nil
		}
		if time.Since(begin) > time.Minute || ctx.Err() != nil {
			stop()
			return "", nil, fmt.Errorf("%s: %w", serve, err)
		}
	}
}

// find looks for a program in PATH and where Debian has PostgreSQL's.
func find(name string) string {
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is well formed
	for _, path := range append([]string{name, "/usr/sbin/" + name}, paths...) {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

// own gives a folder to the user who is to run a server, where this one is
// root: the programs do not run as root.
func own(dir, name string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // the present user
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, int(uid), int(gid))
}

// freePort returns a port of the loopback interface that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	n, err := strconv.Atoi(port)
	return n, errors.Join(err, l.Close())
}
