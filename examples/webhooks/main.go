// Webhooks is a service that delivers webhooks. Tenants register endpoints and send events to its API. For each event,
// workers call all endpoints of the tenant, until each has answered with a status 2xx. README.md shows how to start it.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately
	if len(os.Args) != 2 {
		log.Fatal(errUsage)
	}
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

var errUsage = errors.New("usage: webhooks api|worker|partner")

// run is one of the programs, until ctx ends.
func run(ctx context.Context, program string) error {
	if program == "partner" {
		return partner(ctx)
	}
	pool, err := openPool(ctx, os.Getenv("WEBHOOKS_DSN"))
	if err != nil {
		return err
	}
	defer pool.close()
	s, err := newService(pool)
	if err != nil {
		return err
	}
	switch program {
	case "api":
		if err := s.migrate(ctx); err != nil {
			return err
		}
		return serve(ctx, "localhost:8080", s.routes())
	case "worker":
		return s.queue.Run(ctx) // returns when all handlers have
	}
	return errUsage
}

// serve answers requests until ctx ends, and finishes those that have begun.
func serve(ctx context.Context, address string, routes http.Handler) error {
	log.Printf("listening on http://%s", address)
	server := &http.Server{Addr: address, Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx))
	}
}
