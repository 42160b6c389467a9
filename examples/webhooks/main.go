// Webhooks is a service that delivers webhooks. Tenants register endpoints and send events to its API. For each event,
// workers call all endpoints of the tenant, until each has answered with a status 2xx. README.md shows how to start it.
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/otel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately
	programs := map[string]func(context.Context) error{"api": api, "worker": worker, "partner": partner}
	if len(os.Args) != 2 || programs[os.Args[1]] == nil {
		log.Fatal("usage: webhooks api|worker|partner")
	}
	if err := programs[os.Args[1]](ctx); err != nil {
		log.Fatal(err)
	}
}

// api creates the tables, and answers requests until ctx ends.
func api(ctx context.Context) error {
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer s.pool.close()
	if err := s.migrate(ctx); err != nil {
		return err
	}
	return serve(ctx, "localhost:8080", s.routes())
}

// worker delivers until ctx ends, and answers probes until all handlers have returned.
func worker(ctx context.Context) error {
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer s.pool.close()
	probing, stop := context.WithCancel(context.WithoutCancel(ctx))
	probes := make(chan error, 1)
	go func() { probes <- serve(probing, "localhost:0", s.probes()) }()
	err = s.queue.Run(ctx)
	stop()
	return errors.Join(err, <-probes)
}

// open returns the service on the database of WEBHOOKS_DSN. Traces go to the global provider, which exports none unless
// you set it, as examples/telemetry does.
func open(ctx context.Context) (*service, error) {
	pool, err := openPool(ctx, os.Getenv("WEBHOOKS_DSN"))
	if err != nil {
		return nil, err
	}
	return newService(pool, otel.GetTracerProvider())
}

// serve answers requests until ctx ends, and finishes those that have begun.
func serve(ctx context.Context, address string, routes http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Printf("listening on http://%s", listener.Addr())
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx))
	}
}
