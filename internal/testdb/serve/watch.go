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

// A server program runs under a process of its own that watches over it,
// "serve watch". The watcher's standard input is a pipe from the process that
// wants the server, which the kernel closes when that process ends in
// whatever way, so even after SIGKILL the watcher stops the server and
// removes its folder.

type watcher struct {
	lifeline io.Closer
	ended    chan struct{} // closed when it is gone
	stderr   bytes.Buffer  // its standard error; to be read when it is gone
}

// startWatcher starts this program again as "serve watch" with arguments.
func startWatcher(args ...string) (*watcher, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"watch"}, args...)...)
	inOwnGroup(cmd) // an interrupt from the terminal is not for it
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
		_ = cmd.Wait() // what went wrong is in said
	}()
	return w, nil
}

// stop ends the watcher and with it the server, and waits for that.
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

// await waits until the server answers. One that has ended, or does not answer,
// it stops, and tells what it said.
func (w *watcher) await(ctx context.Context, answers func(context.Context) error) error {
	err := w.awaitAnswer(ctx, answers)
	if err != nil {
		w.stop()
		err = errors.Join(err, errors.New(strings.TrimSpace(w.stderr.String())))
	}
	return err
}

func (w *watcher) awaitAnswer(ctx context.Context, answers func(context.Context) error) error {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
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
			return fmt.Errorf("no answer within %v: %w", patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// watch is the watcher of an engine's programs, which serve at a port or, in a
// cluster, as a node.
func watch(engine, dir, place string) error {
	lines, err := commandLines(engine, dir, place)
	if err != nil {
		return err
	}
	who, err := serverAccount(engine)
	if err != nil {
		return err
	}
	// SIGQUIT is PostgreSQL's immediate shutdown. The others are killed:
	// nobody reads their data again.
	kill := syscall.SIGKILL
	if engine == testdb.Postgres {
		kill = syscall.SIGQUIT
	}
	return supervise(os.Stdin, dir, who, kill, lines...)
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

// supervise runs commands one after the other until in ends, and then ends
// the running one by the signal kill. It removes dir, in which they run.
func supervise(in io.Reader, dir string, who *account, kill syscall.Signal, commands ...[]string) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := untilEOF(context.Background(), in)
	defer cancel()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := who.chown(dir); err != nil {
		return err
	}
	for _, args := range commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TMPDIR="+dir) // TiDB leaves things there
		cmd.Stdout, cmd.Stderr = log, log
		inOwnGroup(cmd)
		who.runAs(cmd)
		cmd.Cancel = func() error { return signalGroup(cmd, kill) }
		cmd.WaitDelay = 10 * time.Second
		err := cmd.Run()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, lastLines(string(said)))
		}
	}
	return errors.New("the server ended by itself")
}

// lastLines returns as much of the end of a log as a reader wants to see.
func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// untilEOF returns a context that ends when in does, too.
func untilEOF(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}

// freePort returns a port of the loopback interface that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), l.Close()
}
