package main

import (
	"bytes"
	"context"
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

type watcher struct {
	lifeline io.Closer
	ended    chan struct{} // closed when the watcher has ended
	stderr   bytes.Buffer  // may be read after ended is closed
}

// startWatcher starts this program again as "serve watch" with arguments.
func startWatcher(args ...string) (*watcher, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"watch"}, args...)...)
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
func startWatched(ctx context.Context, engine string) (*server, error) {
	dir, err := os.MkdirTemp("", "falldue-"+engine+"-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w, err := startWatcher(engine, dir, port)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	dsn := engines[engine].dsn("", net.JoinHostPort("127.0.0.1", port))
	err = w.await(ctx, func(ctx context.Context) error {
		_, err := testdb.Check(ctx, engine, dsn)
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
	const timeout = time.Minute
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

// watch runs an engine's programs and watches over them. place is the port of the
// server, or the member of a cluster as JSON.
func watch(engine, dir, place string) error {
	lines, err := commandLines(engine, dir, place)
	if err != nil {
		return err
	}
	user, err := serverAccount(engine)
	if err != nil {
		return err
	}
	// SIGQUIT is PostgreSQL's immediate shutdown. The other servers are killed,
	// because nobody reads their data again.
	kill := syscall.SIGKILL
	if engine == testdb.Postgres {
		kill = syscall.SIGQUIT
	}
	return supervise(os.Stdin, dir, user, kill, lines...)
}

func commandLines(engine, dir, place string) ([][]string, error) {
	if engine == testdb.Galera {
		return nodeCommands(place)
	}
	p, err := findPrograms(engine)
	if err != nil {
		return nil, err
	}
	return p.commands(dir, place), nil
}

// supervise runs commands one after the other, in the folder dir, until in ends. Then
// it ends the running command with the signal kill, and removes dir.
func supervise(in io.Reader, dir string, user *account, kill syscall.Signal, commands ...[]string) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := untilEOF(context.Background(), in)
	defer cancel()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := user.chown(dir); err != nil {
		return err
	}
	for _, args := range commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TMPDIR="+dir) // TiDB leaves files there
		cmd.Stdout, cmd.Stderr = log, log
		inOwnGroup(cmd)
		user.runAs(cmd)
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
