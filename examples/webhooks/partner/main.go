// Partner registers an endpoint of tenant 42 with the API, and is busy each third time.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/falldue/falldue/examples/webhooks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program immediately
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"url": "http://%s/", "policy": "delay 2s * n; attempts 10"}`, listener.Addr())
	response, err := http.Post("http://localhost:8080/tenants/42/endpoints", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var endpoint webhooks.Endpoint
	if err := json.NewDecoder(response.Body).Decode(&endpoint); err != nil {
		return err
	}
	log.Printf("registered endpoint %s", endpoint.ID)
	var calls atomic.Int64
	return webhooks.Serve(ctx, listener, &webhooks.Partner{
		Secret: endpoint.Secret,
		Busy: func(w http.ResponseWriter, _ *http.Request) int {
			if calls.Add(1)%3 != 0 {
				return 0
			}
			w.Header().Set("Retry-After", "1")
			return http.StatusServiceUnavailable
		},
		Accept: func(event string) { log.Print("got ", event) },
	})
}
