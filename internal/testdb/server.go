package testdb

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

var servers = map[string]func() (string, error){
	Postgres: sync.OnceValues(func() (string, error) { return findServer(Postgres) }),
	MySQL:    sync.OnceValues(func() (string, error) { return findServer(MySQL) }),
	MariaDB:  sync.OnceValues(func() (string, error) { return findServer(MariaDB) }),
	TiDB:     sync.OnceValues(func() (string, error) { return findServer(TiDB) }),
	Galera:   sync.OnceValues(func() (string, error) { return findServer(Galera) }),
}

// Server returns the DSN of a running server of the engine, for a user who may create
// databases. All tests of this process get the same one. SQLite has none.
func Server(engine string) (string, error) { return servers[engine]() }

func findServer(engine string) (string, error) {
	dsn := os.Getenv(ServerVariable(engine))
	if dsn == "" {
		return serve("hold", engine)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := Check(ctx, engine, dsn); err != nil {
		return "", fmt.Errorf("testdb: the server named by %s cannot be used: %w\n"+
			"start it, name another, or unset the variable to have one started for the tests",
			ServerVariable(engine), err)
	}
	return dsn, nil
}

// lifelines are the standard inputs of the programs that run servers for this
// process. The kernel closes them when the process ends, however it ends, and that
// ends the servers. They are kept here because the garbage collector closes a file
// that nothing refers to.
var lifelines []io.Closer
var lifelinesMu sync.Mutex

// ServeCommand returns the command that runs the program in the folder serve. The
// program is a module of its own, next to the source of falldue that the caller's
// module uses.
func ServeCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/falldue/falldue").Output()
	if err != nil {
		return nil, fmt.Errorf("testdb: find the module of falldue: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(dir)), "internal", "testdb", "serve")
	cmd := exec.CommandContext(ctx, "go", append([]string{"-C", folder, "run", "."}, args...)...)
	cmd.Env = append(os.Environ(), "GOWORK=off") // a caller's workspace need not list the module
	return cmd, nil
}

// serve runs the program in the folder serve and returns the line it prints.
func serve(args ...string) (string, error) {
	cmd, err := ServeCommand(context.Background(), args...)
	if err != nil {
		return "", err
	}
	// A file, not the standard error of this process: "go test" waits until
	// every process that has that open has ended.
	stderr, err := os.CreateTemp("", "falldue-serve-*.log")
	if err != nil {
		return "", fmt.Errorf("testdb: %w", err)
	}
	defer stderr.Close()
	defer func() { _ = os.Remove(stderr.Name()) }()
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", fmt.Errorf("testdb: %w", err)
	}
	lifelinesMu.Lock()
	lifelines = append(lifelines, stdin)
	lifelinesMu.Unlock()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("testdb: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("testdb: start the program that runs servers: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		text, _ := os.ReadFile(stderr.Name())
		return "", fmt.Errorf("%s", strings.TrimSpace(string(text)))
	}
	return strings.TrimSpace(line), nil
}
