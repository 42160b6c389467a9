package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/falldue/falldue"
)

// deliver sends an event to an endpoint.
func (s *service) deliver(ctx context.Context, t falldue.Task[delivery]) error {
	var d struct{ URL, Secret, Body string }
	const query = "select url, secret, body from endpoints p, events e where p.id = ? and e.id = ?"
	err := s.pool.GetContext(ctx, &d, s.pool.Rebind(query), t.Args.Endpoint, t.Args.Event)
	if errors.Is(err, sql.ErrNoRows) {
		return falldue.Discard(errors.New("the endpoint was removed"))
	}
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewBufferString(d.Body))
	if err != nil {
		return falldue.Discard(err)
	}
	request.Header.Set("Content-Type", "application/json")
	sign(request.Header, d.Secret, t.ID, t.Fence, d.Body)
	response, err := s.client.Do(request)
	if err != nil {
		return err // retried under the policy
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16) // so that the connection can be used again
	if response.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("the endpoint answers %s", response.Status)
	if response.StatusCode == http.StatusGone {
		return falldue.Discard(err)
	}
	if wait, ok := retryAfter(response.Header.Get("Retry-After")); ok {
		return falldue.RetryAfter(wait, err)
	}
	return err
}

// retryAfter returns the wait that an endpoint asks for, up to a day.
func retryAfter(header string) (wait time.Duration, ok bool) {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(seconds, 24*60*60)) * time.Second, true
	}
	at, err := http.ParseTime(header)
	return min(time.Until(at), 24*time.Hour), err == nil
}

// The headers of a delivery.
const (
	headerID        = "Webhook-Id"        // the same in every attempt: an endpoint ignores those that it has seen
	headerFence     = "Webhook-Fence"     // higher in each attempt: an endpoint refuses lower ones, of stalled workers
	headerSignature = "Webhook-Signature" // of both and of the body
)

// sign adds the headers of a delivery.
func sign(h http.Header, secret string, id, fence int64, body string) {
	h.Set(headerID, strconv.FormatInt(id, 10))
	h.Set(headerFence, strconv.FormatInt(fence, 10))
	h.Set(headerSignature, signature(h, secret, body))
}

// signature returns the signature of a delivery.
func signature(h http.Header, secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", h.Get(headerID), h.Get(headerFence), body)
	return hex.EncodeToString(mac.Sum(nil))
}
