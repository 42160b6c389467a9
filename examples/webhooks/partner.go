package webhooks

import (
	"crypto/hmac"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Partner is an endpoint, as a customer would write it: it accepts each delivery once, if its signature is right.
type Partner struct {
	// Secret is the secret of the endpoint.
	Secret string
	// Busy returns a status such as 503 while the partner cannot accept deliveries, or else 0.
	Busy func(w http.ResponseWriter, r *http.Request) int
	// Accept gets each delivery once.
	Accept func(body string)

	mu     sync.Mutex
	fences map[string]int64 // the highest of each delivery
	seen   map[string]bool  // deliveries that were accepted
}

func (p *Partner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	if err != nil || !hmac.Equal([]byte(r.Header.Get(HeaderSignature)), []byte(signature(r.Header, p.Secret, string(body)))) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if status := p.Busy(w, r); status != 0 {
		w.WriteHeader(status)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen, p.fences = map[string]bool{}, map[string]int64{}
	}
	id := r.Header.Get(HeaderID)
	fence, _ := strconv.ParseInt(r.Header.Get(HeaderFence), 10, 64) // it is signed
	if fence < p.fences[id] {
		w.WriteHeader(http.StatusConflict)
		return
	}
	p.fences[id] = fence
	if !p.seen[id] {
		p.seen[id] = true
		p.Accept(string(body))
	}
}
