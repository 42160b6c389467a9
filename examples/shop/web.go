package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/falldue/falldue"
)

// routes returns the HTTP service.
func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", answer(s.postOrder))
	mux.HandleFunc("GET /orders/{id}", answer(s.getOrder))
	mux.HandleFunc("POST /invoices/{customer}/{month}", answer(s.postInvoice))
	mux.Handle("/ops/falldue/", http.StripPrefix("/ops/falldue", s.page)) // a real shop signs its operators in before that
	return mux
}

// answer returns a handler that writes what get returns as JSON.
func answer(get func(r *http.Request) (body any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		body, err := get(r)
		switch {
		case err == nil:
		case errors.Is(err, errOrder):
			status, body = http.StatusUnprocessableEntity, err.Error()
		case errors.Is(err, sql.ErrNoRows):
			status, body = http.StatusNotFound, "there is none"
		default:
			slog.Error("request failed", "request", r.Pattern, "error", err)
			status, body = http.StatusInternalServerError, "try again later"
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

// postOrder stores an order. The customer is charged by a worker.
func (s *shop) postOrder(r *http.Request) (any, error) {
	var o Order
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16)).Decode(&o); err != nil {
		return nil, fmt.Errorf("%w: %w", errOrder, err)
	}
	return s.place(r.Context(), o.Customer, o.Coffee)
}

func (s *shop) getOrder(r *http.Request) (any, error) {
	return s.order(r.Context(), r.PathValue("id"))
}

// postInvoice sends an invoice again. As long as one that was asked for waits or runs, there is
// no other one: whoever asks again gets the same task.
func (s *shop) postInvoice(r *http.Request) (any, error) {
	args := Invoice{r.PathValue("customer"), r.PathValue("month")}
	return invoicing.Enqueue(r.Context(), s.queue, args, falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}})
}
