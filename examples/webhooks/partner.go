package main

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// partner registers an endpoint of tenant 42 with the API, and answers each third call with 503 until ctx ends.
func partner(ctx context.Context) error {
	body := `{"url": "http://localhost:8081/", "policy": "delay 2s * n; attempts 10"}`
	response, err := http.Post("http://localhost:8080/tenants/42/endpoints", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var e endpoint
	if err := json.NewDecoder(response.Body).Decode(&e); err != nil {
		return err
	}
	var calls atomic.Int64
	busy := func(w http.ResponseWriter, _ *http.Request) int {
		if calls.Add(1)%3 != 0 {
			return 0
		}
		w.Header().Set("Retry-After", "1")
		return http.StatusServiceUnavailable
	}
	return serve(ctx, "localhost:8081", &receiver{secret: e.Secret, busy: busy, accept: func(event string) { log.Print("got ", event) }})
}

// receiver is an endpoint, as a customer would write it: it accepts each delivery once, if its signature is right.
type receiver struct {
	secret   string
	busy     func(w http.ResponseWriter, r *http.Request) int // returns a status such as 503, or 0 to accept the delivery
	accept   func(body string)
	accepted sync.Map // the IDs of deliveries
}

func (p *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	id := r.Header.Get("Webhook-Id")
	if err != nil || !hmac.Equal([]byte(r.Header.Get("Webhook-Signature")), []byte(signature(p.secret, id, string(body)))) {
		w.WriteHeader(http.StatusUnauthorized)
	} else if status := p.busy(w, r); status != 0 {
		w.WriteHeader(status)
	} else if _, again := p.accepted.LoadOrStore(id, true); !again {
		p.accept(string(body))
	}
}
