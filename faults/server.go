package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// server is a database server of the run's own, which the run can restart and kill.
// Unlike the servers of other tests it has the default settings for durability, so
// that it keeps what it has committed when it is killed.
type server struct {
	keeper
	engine, dsn string
	quit        syscall.Signal              // ends it in order, but without waiting for clients
	program     string                      // runs as the keeper
	joined      func(context.Context) error // for a node of a cluster: returns nil once it serves

	mu       sync.Mutex // held during a restart
	process  *os.Process
	lifeline io.Closer
	exited   chan struct{}
}

// keeper is the role of a process that runs a server, and ends it with the run,
// however the run ends.
type keeper struct {
	Folder, User   string
	Create, Launch []string
}

// errNoProgram is returned if the run cannot start a server of its own.
var errNoProgram = errors.New("the server programs are not on this machine")

// startServer creates a server in folder and starts it. program runs as its keeper.
func startServer(ctx context.Context, program, engine, folder string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	s := &server{engine: engine, program: program}
	s.Folder = folder
	switch engine {
	case testdb.Postgres:
		s.postgres(port)
		s.Create = []string{lookUp("initdb"), "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"}
	case testdb.MariaDB:
		s.quit, s.User = syscall.SIGTERM, "mysql"
		s.Create = []string{lookUp("mariadb-install-db"), "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir=" + data}
		s.Launch = []string{lookUp("mariadbd"), "--no-defaults", "--datadir=" + data, "--port=" + port, "--bind-address=127.0.0.1", "--max-connections=200",
			"--socket=" + filepath.Join(folder, "socket"), "--pid-file=" + filepath.Join(folder, "pid")}
		s.dsn = fmt.Sprintf("root@tcp(127.0.0.1:%s)/mysql", port)
	case testdb.MySQL:
		s.quit, s.User = syscall.SIGTERM, "mysql"
		s.Create = []string{lookUpMySQL(), "--no-defaults", "--initialize-insecure", "--datadir=" + data}
		s.Launch = []string{lookUpMySQL(), "--no-defaults", "--datadir=" + data, "--port=" + port, "--bind-address=127.0.0.1", "--max-connections=200",
			"--mysqlx=OFF", "--skip-log-bin", "--secure-file-priv=", "--socket=" + filepath.Join(folder, "socket"), "--pid-file=" + filepath.Join(folder, "pid")}
		s.dsn = fmt.Sprintf("root@tcp(127.0.0.1:%s)/mysql", port)
	default:
		return nil, fmt.Errorf("%s: %w", engine, errNoProgram)
	}
	if s.Create[0] == "" || s.Launch[0] == "" {
		return nil, fmt.Errorf("%s: %w", engine, errNoProgram)
	}
	err = s.begin(ctx)
	return s, err
}

// begin creates the server's data and starts it.
func (s *server) begin(ctx context.Context) error {
	create, err := s.command(s.Create)
	if err != nil {
		return err
	}
	if said, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", create.Path, err, said)
	}
	return s.start(ctx)
}

// log returns the path of the server's log. It is outside of the server's folder,
// whose disk may be full.
func (k keeper) log() string { return k.Folder + ".log" }

func (k keeper) command(args []string) (*exec.Cmd, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec // a program found by name
	cmd.Dir = k.Folder
	return cmd, runAs(cmd, k.User)
}

// keep is the main function of a keeper: it runs the server, prints its process id,
// and kills it when the run has ended.
func (k keeper) keep() error {
	log, err := os.OpenFile(k.log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, err := k.command(k.Launch)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = cmd.Process.Kill() // an error means that it has ended
	}()
	return cmd.Wait()
}

// startTime limits how long a server may take to start, including a node's copy of
// all data.
const startTime = 2 * time.Minute

// start starts the server and waits until it answers. It tries again, since the
// processes of a killed server may use its files for a moment longer.
func (s *server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
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
	role, err := json.Marshal(s.keeper)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.program, keeperPart, string(role)) //nolint:gosec // the run's own program
	inOwnGroup(cmd)
	if s.lifeline, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	s.exited = exited
	if err != nil {
		return fmt.Errorf("%s did not start: %w", s.Launch[0], err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return err
	}
	if s.process, err = os.FindProcess(pid); err != nil {
		return err
	}
	return s.await(ctx)
}

// await waits until the server answers, or has ended.
func (s *server) await(ctx context.Context) error {
	for {
		err := s.answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			said, _ := os.ReadFile(s.log())
			return fmt.Errorf("%s ended: %s", s.Launch[0], said[max(0, len(said)-2000):])
		case <-ctx.Done():
			s.end(syscall.SIGKILL)
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// answers returns nil if the server answers queries.
func (s *server) answers(ctx context.Context) error {
	if s.joined != nil {
		return s.joined(ctx)
	}
	_, err := testdb.Check(ctx, s.engine, s.dsn)
	return err
}

// end ends the server by a signal, and waits until it has ended.
func (s *server) end(signal syscall.Signal) {
	if s.process != nil {
		_ = s.process.Signal(signal) // an error means that it has ended
		<-s.exited
	}
}

// revive waits until a server answers again after a fault, and starts it if it has
// ended.
func (s *server) revive(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if s.await(waiting) == nil {
		return nil
	}
	return s.start(ctx)
}

// restart ends the server by a signal and starts it again.
func (s *server) restart(ctx context.Context, signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(signal)
	return s.start(ctx)
}

// supervise starts the server again whenever it ends by itself, as an init system does,
// until the returned function is called.
func (s *server) supervise() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			s.mu.Lock()
			exited := s.exited
			s.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case <-exited:
			}
			s.mu.Lock()
			if s.exited == exited { // nobody restarts it
				_ = s.start(ctx)
			}
			s.mu.Unlock()
		}
	})
	return func() { cancel(); watching.Wait() }
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

// lookUpMySQL returns the path of MySQL's server program, or "". MariaDB has a program
// of the same name.
func lookUpMySQL() string {
	path := lookUp("mysqld")
	if path == "" {
		return ""
	}
	if version, err := exec.Command(path, "--version").Output(); err != nil || strings.Contains(string(version), "MariaDB") { //nolint:gosec // a program found by name
		return ""
	}
	return path
}

// freePort returns a free port of the loopback interface.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
