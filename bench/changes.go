package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/falldue/falldue"
)

// changesMeasured is how many cancels and resumptions are measured, and maxChangePause the longest time
// before each of them: they come at any time between two reads of changes.
const changesMeasured, maxChangePause = 10, 2 * time.Second

// measureChanges measures how long a worker takes to apply what another process asks of it: the time
// from the cancel of a running task to the end of its context, and from a resumption to the
// start of a task that was paused.
func measureChanges(ctx context.Context, c *config, _ database, s subject) (values, error) {
	f, ok := s.(*falldueSubject)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	began, ended, started := make(chan int64, 1), make(chan time.Time, 1), make(chan time.Time, 1)
	waits := falldue.NewKind[payload]("waits", falldue.KindConfig{Queue: f.queue})
	falldue.Handle(f.worker, waits, func(ctx context.Context, t falldue.Task[payload]) error {
		began <- t.ID
		<-ctx.Done()
		ended <- time.Now()
		return context.Cause(ctx)
	})
	stop, err := s.work(ctx, func() error { started <- time.Now(); return nil })
	if err != nil {
		return nil, err
	}
	var cancels, resumptions []time.Duration
	for range changesMeasured {
		cancel, err := c.cancelTakes(ctx, f, waits, began, ended)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		resumption, err := c.resumeTakes(ctx, f, started)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		cancels, resumptions = append(cancels, cancel), append(resumptions, resumption)
	}
	slices.Sort(cancels)
	slices.Sort(resumptions)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	return values{
		"": ms(cancels[changesMeasured/2]), "cancel_max_ms": ms(cancels[changesMeasured-1]),
		"resume_ms": ms(resumptions[changesMeasured/2]), "resume_max_ms": ms(resumptions[changesMeasured-1]),
	}, stop()
}

// cancelTakes returns the time from the cancel of a running task to the end of its context.
func (c *config) cancelTakes(ctx context.Context, f *falldueSubject, kind falldue.Kind[payload], began <-chan int64, ended <-chan time.Time) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, c.patience)
	defer stop()
	if _, err := kind.Enqueue(ctx, f.producer, sample); err != nil {
		return 0, err
	}
	id, err := receive(ctx, began)
	if err != nil {
		return 0, err
	}
	time.Sleep(rand.N(maxChangePause))
	asked := time.Now()
	if err := f.producer.Cancel(ctx, id); err != nil {
		return 0, err
	}
	at, err := receive(ctx, ended)
	return at.Sub(asked), err
}

// resumeTakes returns the time from a resumption to the start of a task that was paused.
func (c *config) resumeTakes(ctx context.Context, f *falldueSubject, started <-chan time.Time) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, c.patience)
	defer stop()
	kind := falldue.Subject{Kind: "bench"}
	if err := f.producer.Pause(ctx, kind); err != nil {
		return 0, err
	}
	time.Sleep(2*maxChangePause + rand.N(maxChangePause)) // until the worker has applied the pause
	if err := f.insertOne(ctx); err != nil {
		return 0, err
	}
	asked := time.Now()
	if err := f.producer.Resume(ctx, kind); err != nil {
		return 0, err
	}
	at, err := receive(ctx, started)
	return at.Sub(asked), err
}

func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}
