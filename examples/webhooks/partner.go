package main

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"strconv"
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
	return serve(ctx, "localhost:8081", &receiver{
		secret: e.Secret,
		busy: func(w http.ResponseWriter, _ *http.Request) int {
			if calls.Add(1)%3 != 0 {
				return 0
			}
			w.Header().Set("Retry-After", "1")
			return http.StatusServiceUnavailable
		},
		accept: func(event string) { log.Print("got ", event) },
	})
}

// receiver is an endpoint, as a customer would write it: it accepts each delivery once, if its signature is right.
type receiver struct {
	secret string
	busy   func(w http.ResponseWriter, r *http.Request) int // returns a status such as 503, or 0 to accept the delivery
	accept func(body string)

	mu     sync.Mutex
	fences map[string]int64 // the highest fencing token of each accepted delivery
}

func (p *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	if err != nil || !hmac.Equal([]byte(r.Header.Get(headerSignature)), []byte(signature(r.Header, p.secret, string(body)))) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if status := p.busy(w, r); status != 0 {
		w.WriteHeader(status)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id := r.Header.Get(headerID)
	fence, _ := strconv.ParseInt(r.Header.Get(headerFence), 10, 64) // it is signed
	last, seen := p.fences[id]
	if fence < last {
		w.WriteHeader(http.StatusConflict) // to a stalled worker
		return
	}
	if p.fences == nil {
		p.fences = map[string]int64{}
	}
	if p.fences[id] = fence; !seen {
		p.accept(string(body))
	}
}
