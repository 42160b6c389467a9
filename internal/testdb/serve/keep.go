package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// keep starts one server in a container, writes its DSN as a line, and executes the
// commands in the lines of its input, until the input ends: "kill" kills the server
// and starts it again, any other line restarts it.
func keep(ctx context.Context, engine string, in io.Reader, out io.Writer) error {
	if use, err := sourceEnabled("docker"); err != nil || !use {
		return fmt.Errorf("testdb: docker: left out by %s (error %w)", sourcesVariable, err)
	}
	s, err := runContainer(ctx, engine, engines[engine].settings)
	if err != nil {
		return fmt.Errorf("testdb: docker: %w", err)
	}
	defer s.stop()
	commands := make(chan string)
	go func() {
		defer close(commands)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	for {
		if _, err := fmt.Fprintln(out, s.dsn); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case command, ok := <-commands:
			if !ok {
				return nil
			}
			if err := s.restart(ctx, command == "kill"); err != nil {
				return fmt.Errorf("testdb: %s the container of %s: %w", command, engine, err)
			}
		}
	}
}
