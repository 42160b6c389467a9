// Worker delivers events. Start as many workers as you like.
package main

import (
	"context"
	"errors"
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
	if err := webhooks.Main(ctx, os.Getenv("WEBHOOKS_DSN"), work); err != nil {
		log.Fatal(err)
	}
}

// work delivers until ctx ends, and answers probes until all handlers have returned.
func work(ctx context.Context, s *webhooks.Service) error {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	log.Printf("the worker has http://%s/metrics and /health/readyz", listener.Addr())
	probing, stop := context.WithCancel(context.WithoutCancel(ctx))
	probes := make(chan error, 1)
	go func() { probes <- webhooks.Serve(probing, listener, s.Probes()) }()
	err = s.Work(ctx)
	stop()
	return errors.Join(err, <-probes)
}
