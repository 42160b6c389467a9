package main

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/falldue/falldue"
)

// routes returns the HTTP service.
func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(r *http.Request) (status int, body any, err error){
		"POST /orders":                       s.postOrder,
		"GET /orders/{id}":                   s.getOrder,
		"POST /customers/{customer}/exports": s.postExport,
		"GET /exports/{task}":                s.getExport,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			status, body, err := answer(r)
			switch {
			case err == nil:
			case errors.Is(err, errOrder):
				status, body = http.StatusUnprocessableEntity, err.Error()
			case errors.Is(err, sql.ErrNoRows), errors.Is(err, falldue.ErrNotFound):
				status, body = http.StatusNotFound, "there is none"
			default:
				slog.Error("request failed", "request", pattern, "error", err)
				status, body = http.StatusInternalServerError, "try again later"
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body)
		})
	}
	return mux
}

// postOrder stores an order. The customer is charged by a worker.
func (s *shop) postOrder(r *http.Request) (int, any, error) {
	var o Order
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16)).Decode(&o); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errOrder, err)
	}
	o, err := s.place(r.Context(), o)
	return http.StatusCreated, o, err
}

func (s *shop) getOrder(r *http.Request) (int, any, error) {
	o, err := s.order(r.Context(), r.PathValue("id"))
	return http.StatusOK, o, err
}

// postExport asks for an export. As long as a customer's export waits or runs, there is no
// other one: whoever asks again gets the same task.
func (s *shop) postExport(r *http.Request) (int, any, error) {
	receipt, err := exporting.EnqueueUnique(r.Context(), s.queue, Export{r.PathValue("customer")}, nil)
	return http.StatusAccepted, map[string]any{"task": receipt.ID, "existed": receipt.Existed}, err
}

// getExport returns the orders, or how far the export has come.
func (s *shop) getExport(r *http.Request) (int, any, error) {
	id, err := strconv.ParseInt(r.PathValue("task"), 10, 64)
	if err != nil {
		return 0, nil, falldue.ErrNotFound
	}
	orders, err := falldue.ResultOf[[]Order](r.Context(), s.queue, id)
	if !errors.Is(err, falldue.ErrNoResult) {
		return http.StatusOK, orders, err
	}
	task, err := s.queue.Task(r.Context(), id)
	progress, none := s.queue.Progress(r.Context(), id)
	return http.StatusAccepted, map[string]any{"state": task.State, "done": progress.Fraction}, cmp.Or(err, none)
}
