package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/falldue/falldue/ops"
)

// profileFlags are the flags of commands that read what waits.
type profileFlags struct {
	place
	limit, horizon time.Duration
}

func (f *profileFlags) flags(cmd *cobra.Command) {
	f.place.flags(cmd)
	f.limitFlag(cmd)
}

// horizonFlag adds the flag that says how far loads go.
func (f *profileFlags) horizonFlag(cmd *cobra.Command) {
	boundedSpanVar(cmd.Flags(), &f.horizon, "for", 24*time.Hour, time.Minute, 365*24*time.Hour, "how far ahead to look")
}

func (f *profileFlags) limitFlag(cmd *cobra.Command) {
	boundedSpanVar(cmd.Flags(), &f.limit, "time-limit", time.Minute, time.Nanosecond, longestLimit, "time limit for reading waiting tasks")
}

const profileHelp = `The command reads all waiting tasks once, in two to five seconds for each million, and
changes no task. For a running task, the wait counts from the end of its lease.`

// read returns what waits now, with a key or, if it is "", all.
func (f *profileFlags) read(cmd *cobra.Command, o *ops.Ops, key string) (p *ops.Profile, err error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.limit)
	defer cancel()
	what := func() string { return "reading the waiting tasks" }
	if key == "" && atTerminal(cmd) {
		if tasks, takes, err := expected(ctx, o); err == nil {
			start := time.Now()
			what = func() string { return readingText(tasks, takes, time.Since(start)) }
		}
	}
	err = withProgress(cmd, what, func() (err error) {
		if key == "" {
			p, err = o.Profile(ctx)
		} else {
			p, err = o.ProfileKey(ctx, key)
		}
		return err
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("reading the waiting tasks took longer than %v; allow more time with --time-limit", f.limit)
	}
	return p, err
}

// countTimeout is how long counting what waits may take, which only the estimate needs.
const countTimeout = 2 * time.Second

// expected returns about how many tasks wait, and how long reading them takes.
func expected(ctx context.Context, o *ops.Ops) (tasks int64, takes time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	return o.ProfileTime(ctx)
}

// readingText says how many tasks are read, and about how long that takes.
func readingText(tasks int64, takes, elapsed time.Duration) string {
	left := "longer than expected"
	if takes > elapsed {
		left = "about " + max(takes-elapsed, time.Second).Round(time.Second).String() + " more"
	}
	return fmt.Sprintf("reading about %s waiting tasks, %s", grouped(tasks), left)
}

// atTerminal reports whether a person sees the messages of a command alongside its output.
func atTerminal(cmd *cobra.Command) bool {
	file, ok := cmd.ErrOrStderr().(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// withProgress runs fn, and shows at the terminal what it does and how long it has been
// running.
func withProgress(cmd *cobra.Command, what func() string, fn func() error) error {
	file, ok := cmd.ErrOrStderr().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return fn()
	}
	start, done := time.Now(), make(chan struct{})
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		ticks := time.NewTicker(500 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				fmt.Fprintf(file, "\r\x1b[K%s: %s", what(), time.Since(start).Round(time.Second))
			case <-done:
				fmt.Fprint(file, "\r\x1b[K")
				return
			}
		}
	}()
	defer func() { close(done); <-shown }()
	return fn()
}
