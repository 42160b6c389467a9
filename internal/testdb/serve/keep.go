package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// keep starts one server in a container, writes its DSN as a line, and does to
// it what the lines of the input say, until that ends.
func keep(ctx context.Context, engine string, in io.Reader, out io.Writer) error {
	if use, err := sourceEnabled("docker"); err != nil || !use {
		return fmt.Errorf("testdb: docker: left out by %s (error %w)", sourcesVariable, err)
	}
	s, err := runContainer(ctx, engine, engines[engine].settings)
	if err != nil {
		return fmt.Errorf("testdb: docker: %w", err)
	}
	defer s.stop()
	orders := make(chan string)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			orders <- lines.Text()
		}
	}()
	for {
		if _, err := fmt.Fprintln(out, s.dsn); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case order, more := <-orders:
			if !more {
				return nil
			}
			if err := s.restart(ctx, order == "kill"); err != nil {
				return fmt.Errorf("testdb: %s the container of %s: %w", order, engine, err)
			}
		}
	}
}
