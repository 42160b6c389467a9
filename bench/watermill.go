package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wmsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jmoiron/sqlx"
)

// watermillSubject is Watermill's publisher and subscriber on MySQL: a log of
// messages, which stay, and an offset for each group of consumers. It has no
// delays, no retry policy and no concurrent handlers, and so less to do than a task
// queue.
type watermillSubject struct {
	variant   variant
	pool      *sqlx.DB
	publisher *wmsql.Publisher
}

const topic = "bench"

func openWatermill(v variant) open {
	return func(_ context.Context, db database, s settings) (subject, error) {
		if s.done == deleted || s.fails || s.few > 0 {
			return nil, errors.ErrUnsupported
		}
		pool, err := db.open()
		if err != nil {
			return nil, err
		}
		w := &watermillSubject{variant: v, pool: pool}
		w.publisher, err = wmsql.NewPublisher(pool, wmsql.PublisherConfig{SchemaAdapter: wmsql.DefaultMySQLSchema{}, AutoInitializeSchema: true}, nil)
		if err == nil {
			var subscriber *wmsql.Subscriber
			if subscriber, err = w.subscriber(); err == nil {
				err = errors.Join(subscriber.SubscribeInitialize(topic), subscriber.Close())
			}
		}
		if err != nil {
			w.close()
			return nil, err
		}
		return w, nil
	}
}

func (w *watermillSubject) subscriber() (*wmsql.Subscriber, error) {
	cfg := wmsql.SubscriberConfig{
		ConsumerGroup: "bench", SchemaAdapter: wmsql.DefaultMySQLSchema{}, OffsetsAdapter: wmsql.DefaultMySQLOffsetsAdapter{}, InitializeSchema: true,
	}
	if w.variant == tuned {
		cfg.SchemaAdapter, cfg.PollInterval = wmsql.DefaultMySQLSchema{SubscribeBatchSize: perCall}, 10*time.Millisecond
	}
	return wmsql.NewSubscriber(w.pool, cfg, nil)
}

func (w *watermillSubject) close() { _ = w.pool.Close() }

func (w *watermillSubject) insert(ctx context.Context, n int) error {
	return storeParts(ctx, n, perCall, producers, func(_ context.Context, n int) error {
		messages := make([]*message.Message, n)
		for i := range messages {
			messages[i] = newMessage()
		}
		return w.publisher.Publish(topic, messages...)
	})
}

func newMessage() *message.Message {
	text, _ := json.Marshal(sample) // never fails
	return message.NewMessage(watermill.NewUUID(), text)
}

func (w *watermillSubject) copyIn(context.Context, int) error { return errors.ErrUnsupported }

func (w *watermillSubject) insertOne(context.Context) error {
	return w.publisher.Publish(topic, newMessage())
}

func (w *watermillSubject) insertWaiting(context.Context, int) error { return errors.ErrUnsupported }

func (w *watermillSubject) work(ctx context.Context, handle func() error) (func() error, error) {
	subscriber, err := w.subscriber()
	if err != nil {
		return nil, err
	}
	messages, err := subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	go func() {
		for m := range messages {
			var args payload
			if json.Unmarshal(m.Payload, &args) != nil || handle() != nil {
				m.Nack()
				continue
			}
			m.Ack()
		}
	}()
	return subscriber.Close, nil
}
