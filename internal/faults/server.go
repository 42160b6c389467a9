package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// server is a database server that the run has to itself, so that it can
// restart and kill it. Unlike those of the other tests it keeps what it has
// committed when it is killed: that is its default.
type server struct {
	engine, folder, program string
	args                    []string
	dsn                     string
	quit                    syscall.Signal // asks it to end without waiting for its clients
	account                 *syscall.Credential

	mu     sync.Mutex // held by who restarts it
	cmd    *exec.Cmd
	exited chan struct{}
}

// errNoProgram is why a run cannot have a server to itself.
var errNoProgram = errors.New("the server programs are not on this machine")

// startServer creates a server in folder and starts it.
func startServer(ctx context.Context, engine, folder string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	s := &server{engine: engine, folder: folder}
	var create *exec.Cmd
	switch engine {
	case testdb.Postgres:
		s.program, s.quit = lookUp("postgres"), syscall.SIGINT
		s.args = []string{"-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200"}
		s.dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%s/postgres?sslmode=disable", port)
		create = exec.Command(lookUp("initdb"), "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync") //nolint:gosec // a program found by name
		s.account, err = accountOf("postgres")
	case testdb.MariaDB:
		s.program, s.quit = lookUp("mariadbd"), syscall.SIGTERM
		s.args = []string{"--no-defaults", "--datadir=" + data, "--port=" + port, "--bind-address=127.0.0.1", "--max-connections=200",
			"--socket=" + filepath.Join(folder, "socket"), "--pid-file=" + filepath.Join(folder, "pid")}
		s.dsn = fmt.Sprintf("root@tcp(127.0.0.1:%s)/mysql", port)
		create = exec.Command(lookUp("mariadb-install-db"), "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir="+data) //nolint:gosec // a program found by name
		s.account, err = accountOf("mysql")
	default:
		return nil, fmt.Errorf("%s: %w", engine, errNoProgram)
	}
	if err != nil {
		return nil, err
	}
	if s.program == "" || create.Path == "" {
		return nil, fmt.Errorf("%s: %w", engine, errNoProgram)
	}
	if s.account != nil {
		if err := os.Chown(folder, int(s.account.Uid), int(s.account.Gid)); err != nil {
			return nil, err
		}
	}
	s.own(create)
	if said, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", create.Path, err, said)
	}
	return s, s.start(ctx)
}

func (s *server) own(cmd *exec.Cmd) {
	cmd.Dir = s.folder
	cmd.SysProcAttr = attributes(s.account)
}

// start starts the server and waits until it answers. The processes of one that
// was killed may need a moment to let go of its files.
func (s *server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := s.startOnce(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *server) startOnce(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(s.program, s.args...) //nolint:gosec // a program found by name
	s.own(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	s.cmd, s.exited = cmd, exited
	for {
		_, err := testdb.Check(ctx, s.engine, s.dsn)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%s ended: %s", s.program, said[max(0, len(said)-2000):])
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// end ends the server by a signal, and waits until it is gone.
func (s *server) end(signal syscall.Signal) {
	if s == nil || s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal) // an error says that it is gone
	<-s.exited
}

// restart ends the server by a signal and starts it again.
func (s *server) restart(ctx context.Context, signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(signal)
	return s.start(ctx)
}

// lookUp returns the path of a server program, or "".
func lookUp(name string) string {
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/sbin", "/usr/libexec"} {
		if paths, _ := filepath.Glob(filepath.Join(pattern, name)); len(paths) > 0 {
			return paths[len(paths)-1]
		}
	}
	path, _ := exec.LookPath(name)
	return path
}

// freePort returns a port of the loopback interface that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
