package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/falldue/falldue/internal/testdb"
)

// programs holds the paths of an engine's programs on this machine.
type programs struct {
	engine string
	root   string // the folder that the programs take for /; "" if they take none
	create string // creates a data folder; "" if serve does that
	serve  string // the server
}

// folders lists where server programs may be that are not in PATH.
var folders = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // Red Hat
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/sbin",
	"/usr/bin",
	"/usr/local/sbin",
	"/usr/libexec",
}

// findPrograms looks for an engine's programs below root, or on the machine itself if
// root is "". If there are several versions, it takes the newest.
func findPrograms(engine, root string) (programs, error) {
	if engine == testdb.TiDB {
		program, err := buildTiDB()
		return programs{engine: engine, serve: program}, err
	}
	create := map[string]string{
		testdb.Postgres: "initdb",
		testdb.MySQL:    "mysqld",
		testdb.MariaDB:  "mariadb-install-db",
	}[engine]
	p := programs{engine, root, lookUp(root, create), lookUp(root, engines[engine].program)}
	if p.create == "" || p.serve == "" {
		return p, fmt.Errorf("no program %s in PATH, %s", engines[engine].program, strings.Join(folders, ", "))
	}
	if engine == testdb.MySQL && root == "" {
		version, err := exec.Command(p.serve, "--version").CombinedOutput()
		if err != nil {
			return p, fmt.Errorf("%s --version: %w: %s", p.serve, err, version)
		}
		if strings.Contains(string(version), "MariaDB") {
			return p, fmt.Errorf("%s is MariaDB under MySQL's name", p.serve)
		}
	}
	return p, nil
}

// lookUp returns the path of a program as it is below root, or "" if there is none.
func lookUp(root, name string) string {
	for _, pattern := range folders {
		if paths, _ := filepath.Glob(filepath.Join(root, pattern, name)); len(paths) > 0 {
			newest := slices.MaxFunc(paths, func(a, b string) int { return firstNumber(a[len(root):]) - firstNumber(b[len(root):]) })
			return newest[len(root):]
		}
	}
	if root != "" {
		return ""
	}
	path, _ := exec.LookPath(name)
	return path
}

// firstNumber returns the first number in a path: 15 in
// /usr/lib/postgresql/15/bin/initdb.
func firstNumber(path string) int {
	isDigit := func(r rune) bool { return r >= '0' && r <= '9' }
	path = path[max(0, strings.IndexFunc(path, isDigit)):]
	if end := strings.IndexFunc(path, func(r rune) bool { return !isDigit(r) }); end >= 0 {
		path = path[:end]
	}
	n, _ := strconv.Atoi(path)
	return n
}

// commands returns the command lines that create a data folder below dir and run a
// server with it on a port of the loopback interface. The administrator has no
// password.
func (p programs) commands(dir, port string) [][]string {
	data := filepath.Join(dir, "data")
	var create, serve []string
	switch p.engine {
	case testdb.Postgres:
		create = []string{p.create, "--pgdata", data, "--username", "postgres", "--auth", "trust",
			"--encoding", "UTF8", "--no-locale", "--no-sync"}
		serve = []string{p.serve, "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="}
	case testdb.TiDB:
		serve = []string{p.serve, "-path", data, "-temp-dir", filepath.Join(dir, "temp"), "-P", port, "-host", "127.0.0.1", "-socket", ""}
	default:
		create = []string{p.create, "--no-defaults", "--initialize-insecure", "--datadir=" + data}
		if p.engine == testdb.MariaDB {
			create = []string{p.create, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir=" + data}
		}
		serve = []string{p.serve, "--no-defaults", "--datadir=" + data, "--port=" + port, "--bind-address=127.0.0.1",
			"--socket=" + filepath.Join(dir, "socket"), "--pid-file=" + filepath.Join(dir, "pid")}
	}
	serve = slices.Concat(serve, engines[p.engine].settings, engines[p.engine].fastSettings)
	if create == nil {
		return [][]string{serve}
	}
	return [][]string{create, serve}
}

// startPrograms starts a server from the engine's programs on this machine.
func startPrograms(ctx context.Context, engine string) (*server, error) {
	if engine == testdb.Galera {
		return startCluster(ctx)
	}
	p, err := findPrograms(engine, "")
	if err != nil {
		return nil, err
	}
	return p.start(ctx)
}

// start starts a server with its own data folder and port.
func (p programs) start(ctx context.Context) (*server, error) {
	s, err := p.startWatched(ctx)
	if err != nil && ctx.Err() == nil {
		// Another process may have taken the free port in the meantime.
		s, err = p.startWatched(ctx)
	}
	path := filepath.Join(p.root, p.serve)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.origin = path
	return s, nil
}
