package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Process is a worker or an enqueuer: a process of its own.
type Process struct {
	Role
	cmd      *exec.Cmd
	lifeline io.Closer     // its standard input; the process ends when that is closed
	ended    chan struct{} // closed when the process has ended
	err      error         // how it ended; read it after ended is closed
}

// The parts that a process can play.
const (
	workerPart   = "worker"
	enqueuerPart = "enqueuer"
	uniquePart   = "unique enqueuer"
	keeperPart   = "keeper" // of a server
)

// Play is the main function of a process that start started. args are a part and a
// role. Play returns when the process is interrupted, and the process ends when its
// starter does.
func Play(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("got the arguments %q; wanted are a part and its role", args)
	}
	if args[0] == keeperPart {
		var k keeper
		if err := json.Unmarshal([]byte(args[1]), &k); err != nil {
			return err
		}
		return k.keep()
	}
	var r Role
	if err := json.Unmarshal([]byte(args[1]), &r); err != nil {
		return err
	}
	if r.ClockJumps {
		jumpClock(r.Seed)
	}
	if r.ClockOff != 0 {
		shiftClock(r.ClockOff)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // nobody would read the history any more
	}()
	switch args[0] {
	case workerPart:
		return r.Work(ctx)
	case enqueuerPart:
		return r.Enqueue(ctx)
	case uniquePart:
		return r.EnqueueUnique(ctx)
	}
	return fmt.Errorf("part %q: must be one of %s, %s, %s, %s", args[0], workerPart, enqueuerPart, uniquePart, keeperPart)
}

// start starts a process of the program, which calls [Play].
func start(program, part string, r Role) (*Process, error) {
	role, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(r.Folder, r.Name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &Process{Role: r, cmd: exec.Command(program, part, string(role)), ended: make(chan struct{})} //nolint:gosec // the run's own program
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.lifeline, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// kill kills the process.
func (p *Process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.ended
}

// stop asks the process to end, and waits until it has.
func (p *Process) stop(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	err := p.wait(ctx)
	if ctx.Err() == nil && p.cmd.ProcessState.ExitCode() < 0 {
		return nil // the signal ended it before it listened
	}
	return err
}

// wait waits until the process has ended by itself.
func (p *Process) wait(ctx context.Context) error {
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("%s does not end: %w", p.Name, context.Cause(ctx))
	}
	if p.err != nil {
		said, _ := os.ReadFile(filepath.Join(p.Folder, p.Name+".log"))
		return fmt.Errorf("%s: %w: %s", p.Name, p.err, said[max(0, len(said)-2000):])
	}
	return nil
}
