package main

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// world is the simulated world outside the shop, and its time of day.
type world struct {
	hour   time.Duration // how long an hour of the story lasts
	opened time.Time     // when the day began
}

// hours is how many hours of the day are over.
func (w world) hours() float64 { return time.Since(w.opened).Seconds() / w.hour.Seconds() }

// latency is what every answer from outside takes.
func (w world) latency(ctx context.Context) error {
	select {
	case <-time.After(w.hour / 8):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shipped is the last status that the ERP gives an order.
const shipped = "shipped"

// shippedAt is at how many hours of the day the ERP ships each order: what is
// in stock goes soon, the rest has to be bought.
var shippedAt = map[int]float64{1001: 0.3, 1002: 2, 1003: 6, 1004: 12}

// erp knows how orders get on. It has to be asked: it never calls back.
type erp struct{ world }

func (e *erp) status(ctx context.Context, order int) (string, error) {
	if err := e.latency(ctx); err != nil {
		return "", err
	}
	at, known := shippedAt[order]
	switch part := e.hours() / at; {
	case !known:
		return "", errors.New("the ERP knows no such order")
	case part >= 1:
		return shipped, nil
	case part >= 0.6:
		return "being packed", nil
	case part >= 0.2:
		return "waiting for products", nil
	}
	return "not accepted yet", nil
}

// partner is the network and the server behind a webhook: nobody listens until
// backAt; then the first request is told to come again a little later.
type partner struct {
	world
	greeted atomic.Bool
}

// backAt is at how many hours of the day the partner is up again.
const backAt = 4

// RoundTrip answers an HTTP request.
func (p *partner) RoundTrip(req *http.Request) (*http.Response, error) {
	defer func() { _ = req.Body.Close() }()
	if err := p.latency(req.Context()); err != nil {
		return nil, err
	}
	if p.hours() < backAt {
		return nil, errors.New("connection refused")
	}
	if p.greeted.CompareAndSwap(false, true) {
		resp := answer(http.StatusServiceUnavailable)
		resp.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil((2 * p.hour).Seconds()))))
		return resp, nil
	}
	return answer(http.StatusNoContent), nil
}

func answer(status int) *http.Response {
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status),
		Header: http.Header{}, Body: http.NoBody,
	}
}
