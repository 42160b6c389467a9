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

// programs lists two programs of each engine: create makes a data folder, and serve is the server. If bench
// runs as root, it runs the two programs as user. The text dsn has %d in place of the port.
var programs = map[string]struct{ create, serve, user, dsn string }{
	postgres: {"initdb", "postgres", "postgres", "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable"},
	mySQL:    {"mysqld", "mysqld", "mysql", "root@tcp(127.0.0.1:%d)/mysql"},
	mariaDB:  {"mariadb-install-db", "mariadbd", "mysql", "root@tcp(127.0.0.1:%d)/mysql"},
}

// start runs a server from the programs of this machine, with the default settings
// but for the number of connections, and its own data folder and port. It does not use the servers of the tests, which
// give up durability for speed. stop ends the server and removes its data.
func start(ctx context.Context, engine string) (dsn string, stop func(), err error) {
	if engine == tiDB {
		return "", nil, fmt.Errorf("bench starts no TiDB; name a server with --dsn or %s, for a user who may create databases. go tool tidb-server -store unistore -path FOLDER, in internal/testdb/tidb, builds and runs one", testdb.ServerVariable(engine))
	}
	p := programs[engine]
	create, serve := find(p.create), find(p.serve)
	if engine == mySQL && isMariaDB(serve) {
		serve = ""
	}
	if create == "" || serve == "" {
		return "", nil, fmt.Errorf("no %s server: there are no programs %s and %s here; name a server with --dsn or %s, for a user who may create databases",
			engine, p.create, p.serve, testdb.ServerVariable(engine))
	}
	dir, err := os.MkdirTemp("", "falldue-bench-"+engine+"-")
	if err != nil {
		return "", nil, err
	}
	who, err := chown(dir, p.user)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	port, err := freePort()
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	data := filepath.Join(dir, "data")
	createArgs, serveArgs := []string{create, "--pgdata", data, "--username=postgres", "--auth=trust", "--no-locale", "--encoding=UTF8"},
		[]string{serve, "-D", data, "-p", strconv.Itoa(port), "-k", dir, "-c", "max_connections=500"} // with its socket in its own folder
	if engine != postgres {
		createArgs = []string{create, "--no-defaults", "--initialize-insecure", "--datadir=" + data}
		if engine == mariaDB {
			createArgs = []string{create, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir=" + data}
		}
		serveArgs = []string{serve, "--no-defaults", "--datadir=" + data, "--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--max-connections=500",
			"--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid")}
	}
	command := func(args []string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true} // an interrupt from the terminal goes to this program alone
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		return cmd
	}
	if output, err := command(createArgs).CombinedOutput(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("%s: %w: %s", create, err, output), os.RemoveAll(dir))
	}
	server := command(serveArgs)
	if err := server.Start(); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() {
		_ = server.Process.Signal(syscall.SIGINT) // with SIGINT PostgreSQL does not wait for sessions to end
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

// isMariaDB reports whether a program is MariaDB's server, which packages of MariaDB also call mysqld.
func isMariaDB(program string) bool {
	path, err := filepath.EvalSymlinks(program)
	return err == nil && filepath.Base(path) == programs[mariaDB].serve
}

// find looks for a program in PATH, and where Debian installs PostgreSQL.
func find(name string) string {
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is well formed
	for _, path := range append([]string{name, "/usr/sbin/" + name}, paths...) {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

// chown gives a folder to the account that is to run a server, if this process runs
// as root: the programs refuse to run as root.
func chown(dir, name string) (*syscall.Credential, error) {
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

// freePort returns an unused port of the loopback interface.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	n, err := strconv.Atoi(port)
	return n, errors.Join(err, l.Close())
}
