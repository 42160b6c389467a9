package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// runGroup runs a command in its own process group. When ctx ends, it sends the
// group SIGTERM, and kills what is left ten seconds later.
func runGroup(ctx context.Context, args, env []string, out *os.File) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	inOwnGroup(cmd)
	cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		_ = signalGroup(cmd, syscall.SIGKILL) // fails if the group is gone already
		return errors.New("testdb: interrupted")
	}
	return err
}

// untilOrphaned returns a context that also ends when the parent process is gone:
// "go run" does not forward the signal that ends it.
func untilOrphaned(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != parent {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, cancel
}
