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

// world is the simulated world outside the shop, with its time of day.
type world struct {
	hour   time.Duration // how long an hour of the simulation lasts
	opened time.Time     // when the day began
}

// hours returns the time of day, in hours.
func (w world) hours() float64 { return time.Since(w.opened).Seconds() / w.hour.Seconds() }

// latency waits as long as an answer from outside takes.
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

// shippedAt is the hour of the day at which the ERP ships each order. The first is
// in stock, the others have to be bought.
var shippedAt = map[int]float64{1001: 0.3, 1002: 2, 1003: 6, 1004: 12}

// erp knows the status of the orders. It does not send notifications.
type erp struct{ world }

func (e *erp) status(ctx context.Context, order int) (string, error) {
	if err := e.latency(ctx); err != nil {
		return "", err
	}
	at, known := shippedAt[order]
	switch part := e.hours() / at; {
	case !known:
		return "", errors.New("the ERP does not know the order")
	case part >= 1:
		return shipped, nil
	case part >= 0.6:
		return "being packed", nil
	case part >= 0.2:
		return "waiting for products", nil
	}
	return "not accepted yet", nil
}

// partner is the network and the server behind a webhook. Connections are refused
// until backAt. The first request after that is answered with Retry-After.
type partner struct {
	world
	answered atomic.Bool
}

// backAt is the hour of the day at which the partner is up again.
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
	if p.answered.CompareAndSwap(false, true) {
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
