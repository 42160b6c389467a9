// Api is the HTTP service to which tenants send events.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/falldue/falldue/examples/webhooks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately
	if err := webhooks.Main(ctx, os.Getenv("WEBHOOKS_DSN"), api); err != nil {
		log.Fatal(err)
	}
}

func api(ctx context.Context, s *webhooks.Service) error {
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "localhost:8080")
	if err != nil {
		return err
	}
	log.Printf("the API listens on http://%s, and its page for operators is /ops/", listener.Addr())
	return webhooks.Serve(ctx, listener, s.API())
}
