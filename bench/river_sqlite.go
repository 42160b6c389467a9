package main

import (
	"context"
	"errors"
	"io"
	"net/rpc"
	"os"
	"os/exec"
)

// riverSQLite is River on SQLite, in its own process: see the folder riversqlite.
type riverSQLite struct {
	process *exec.Cmd
	client  *rpc.Client
}

// riverOptions are the Options of that program.
type riverOptions struct {
	DSN          string
	Handlers     int
	Tuned, Fails bool
}

func openRiverSQLite(v variant) open {
	return func(ctx context.Context, db database, s settings) (subject, error) {
		if s.done == deleted || s.few > 0 { // its handlers do nothing
			return nil, errors.ErrUnsupported
		}
		cmd := exec.CommandContext(ctx, "go", "-C", "riversqlite", "run", ".")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		r := &riverSQLite{process: cmd, client: rpc.NewClient(pipes{out, in})}
		if err := r.call(ctx, "Open", riverOptions{db.dsn, handlers, v == tuned, s.fails}, new(bool)); err != nil {
			r.close()
			return nil, err
		}
		return r, nil
	}
}

type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.in.Close(), p.ReadCloser.Close()) }

// close ends the process by closing its standard input.
func (r *riverSQLite) close() {
	_ = r.client.Close()
	_ = r.process.Wait()
}

// call calls a method of the program.
func (r *riverSQLite) call(ctx context.Context, method string, argument, result any) error {
	call := r.client.Go("River."+method, argument, result, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return call.Error
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *riverSQLite) insert(ctx context.Context, n int) error {
	return storeParts(ctx, n, perCall, 1, func(ctx context.Context, n int) error { return r.call(ctx, "Insert", n, new(bool)) })
}

func (r *riverSQLite) copyIn(context.Context, int) error { return errors.ErrUnsupported }

func (r *riverSQLite) insertOne(ctx context.Context) error {
	return r.call(ctx, "InsertOne", false, new(bool))
}

func (r *riverSQLite) insertWaiting(ctx context.Context, n int) error {
	return r.call(ctx, "InsertWaiting", n, new(bool))
}

func (r *riverSQLite) work(ctx context.Context, handle func() error) (func() error, error) {
	if err := r.call(ctx, "Start", false, new(bool)); err != nil {
		return nil, err
	}
	go func() {
		for {
			var n int
			if r.call(ctx, "Ran", false, &n) != nil {
				return // it has stopped
			}
			for range n {
				_ = handle() // where handlers fail, the program has returned the error
			}
		}
	}()
	return func() error { return r.call(context.WithoutCancel(ctx), "Stop", false, new(bool)) }, nil
}
