package main

import (
	"bytes"
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
	"syscall"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// Each server program is a child of a watcher process, "serve watch". The watcher's
// standard input is a pipe from the process that needs the server. The kernel
// closes the pipe when that process ends, even by SIGKILL; then the watcher stops
// the server and removes its folder.

// plan is what a watcher does, its argument as JSON.
type plan struct {
	Engine   string
	Root     string     // the folder that the commands take for /, or ""
	Folder   string     // of the server, below Root; removed at the end
	Commands [][]string // run one after the other; the last one is the server
}

type watcher struct {
	lifeline io.Closer
	ended    chan struct{} // closed when the watcher has ended
	stderr   bytes.Buffer  // may be read after ended is closed
}

// startWatcher starts this program again as "serve watch".
func startWatcher(p plan) (*watcher, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "watch", string(text))
	inOwnGroup(cmd) // so that an interrupt from the terminal does not reach it
	w := &watcher{ended: make(chan struct{})}
	cmd.Stderr = &w.stderr
	if w.lifeline, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.ended)
		_ = cmd.Wait() // stderr says what went wrong
	}()
	return w, nil
}

// stop stops the watcher, and with it the server, and waits for their end.
func (w *watcher) stop() {
	_ = w.lifeline.Close()
	<-w.ended
}

// startWatched starts a server program and waits until it answers.
func (p programs) startWatched(ctx context.Context) (*server, error) {
	temp := tempFolder()
	if p.root != "" {
		temp = filepath.Join(p.root, "tmp")
	}
	dir, err := os.MkdirTemp(temp, "falldue-"+p.engine+"-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	todo := plan{Engine: p.engine, Root: p.root, Folder: dir}
	todo.Commands = p.commands(todo.seen(), port)
	w, err := startWatcher(todo)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	dsn := engines[p.engine].dsn("", net.JoinHostPort("127.0.0.1", port))
	err = w.await(ctx, func(ctx context.Context) error {
		_, err := testdb.Check(ctx, p.engine, dsn)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &server{dsn: dsn, stop: w.stop}, nil
}

// await waits until the server answers. If it has ended or does not answer, await
// stops it and returns an error with its messages.
func (w *watcher) await(ctx context.Context, answers func(context.Context) error) error {
	err := w.awaitAnswer(ctx, answers)
	if err != nil {
		w.stop()
		err = errors.Join(err, errors.New(strings.TrimSpace(w.stderr.String())))
	}
	return err
}

func (w *watcher) awaitAnswer(ctx context.Context, answers func(context.Context) error) error {
	const timeout = 5 * time.Minute // a server that has ended is seen earlier
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-w.ended:
			return errors.New("the server ended at once")
		case <-ctx.Done():
			return fmt.Errorf("no answer within %v: %w", timeout, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// watch is the main function of a watcher, with a plan as JSON.
func watch(text string) error {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	user, err := serverAccount(p.Engine)
	if err != nil {
		return err
	}
	return p.supervise(os.Stdin, user)
}

// seen returns the folder's path as the commands see it.
func (p plan) seen() string { return strings.TrimPrefix(p.Folder, p.Root) }

// supervise runs the commands in the folder until in ends. Then it ends the running
// command, and removes the folder.
func (p plan) supervise(in io.Reader, user *account) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(p.Folder)) }()
	// SIGQUIT is PostgreSQL's immediate shutdown. The other servers are killed,
	// because their data is not read again.
	kill := syscall.SIGKILL
	if p.Engine == testdb.Postgres {
		kill = syscall.SIGQUIT
	}
	ctx, cancel := untilEOF(context.Background(), in)
	defer cancel()
	log, err := os.Create(filepath.Join(p.Folder, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := user.chown(p.Folder); err != nil {
		return err
	}
	for _, args := range p.Commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = p.seen()
		cmd.Env = append(os.Environ(), "TMPDIR="+p.seen()) // TiDB leaves files there
		cmd.Stdout, cmd.Stderr = log, log
		inOwnGroup(cmd)
		user.runAs(cmd)
		changeRoot(cmd, p.Root)
		cmd.Cancel = func() error { return signalGroup(cmd, kill) }
		cmd.WaitDelay = 10 * time.Second
		err := cmd.Run()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, lastLines(string(text)))
		}
	}
	return errors.New("the server ended by itself")
}

// lastLines returns the last 20 lines of a log.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// untilEOF returns a context that also ends when in does.
func untilEOF(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}

// freePort returns an unused port of the loopback interface.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), l.Close()
}
