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

// startWatched starts a watcher and waits until the server answers.
func startWatched(ctx context.Context, engine string) (*server, error) {
	dir, err := os.MkdirTemp("", "falldue-"+engine+"-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	watcher := exec.Command(self, "watch", engine, dir, port)
	var said bytes.Buffer
	watcher.Stderr = &said
	inOwnGroup(watcher) // an interrupt from the terminal is not for it
	lifeline, err := watcher.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := watcher.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watcher.Wait() // what went wrong is in said
	}()
	stop := func() {
		_ = lifeline.Close()
		<-ended
	}
	dsn := engines[engine].dsn("", net.JoinHostPort("127.0.0.1", port))
	if err := await(ctx, ended, engine, dsn); err != nil {
		stop()
		return nil, errors.Join(err, errors.New(strings.TrimSpace(said.String())))
	}
	return &server{dsn: dsn, stop: stop}, nil
}

// await waits until the server answers, or has ended.
func await(ctx context.Context, ended <-chan struct{}, engine, dsn string) error {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		_, err := testdb.Check(ctx, engine, dsn)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("the server ended at once")
		case <-ctx.Done():
			return fmt.Errorf("no answer within %v: %w", patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// watch is the watcher: it creates a data folder below dir, serves it, and
// when its standard input ends stops the server and removes dir.
func watch(engine, dir, port string) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := untilEnd(context.Background(), os.Stdin)
	defer cancel()
	p, err := findPrograms(engine)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	account, err := serverAccount(engine)
	if err != nil {
		return err
	}
	if err := account.own(dir); err != nil {
		return err
	}
	create, serve := p.commands(dir, port)
	for _, args := range [][]string{create, serve} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = log, log
		inOwnGroup(cmd)
		account.use(cmd)
		// SIGQUIT is PostgreSQL's immediate shutdown. The others are
		// killed: nobody reads their data again.
		kill := syscall.SIGKILL
		if engine == testdb.Postgres {
			kill = syscall.SIGQUIT
		}
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

// untilEnd returns a context that ends when in does, too.
func untilEnd(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
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
