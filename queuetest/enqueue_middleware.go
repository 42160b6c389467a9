package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/periodic"
)

var enqueueMiddlewareCases = []conformanceCase{
	inCallersTx("middleware around enqueues runs once for each call, with all its tasks, before they are stored", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("enqueued", falldue.KindConfig{})
		var calls []string
		q.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
			return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
				before := len(tasksOf(t, q, k.Name()))
				for i := range tasks {
					tasks[i].AddMetadata("place", fmt.Sprint(i))
					tasks[i].Options().Priority = nil
				}
				receipts, err := next(ctx, tx, tasks)
				calls = append(calls, fmt.Sprintf("%d of %s, in a transaction: %t, %d receipts after %d", len(tasks), tasks[0].Kind(), tx != nil, len(receipts), before))
				return receipts, err
			}
		})
		own := map[string]string{"by": "caller"}
		opts, high := falldue.EnqueueOptions{Metadata: own}, 7
		enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Priority: &high})
		if _, err := k.EnqueueMany(t.Context(), q, make([]noteArgs, 3), opts); err != nil {
			t.Fatal(err)
		}
		many, err := k.EnqueueMany(t.Context(), q, make([]noteArgs, 600), opts) // by COPY, where there is one
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.EnqueueMany(t.Context(), q, nil); err != nil {
			t.Fatal(err)
		}
		err = f.transact(t.Context(), func(tx falldue.Tx) error {
			_, err := k.EnqueueTx(t.Context(), q, tx, noteArgs{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		u := unique(falldue.Unique{By: falldue.ByArgs()})
		wantNew(t, "the first", q, k, noteArgs{Text: "u"}, u)
		if r := enqueueUnique(t, q, k, noteArgs{Text: "u"}, u); !r.Existed {
			t.Errorf("the second is %+v", r)
		}
		if _, err := k.Enqueue(t.Context(), q, noteArgs{Text: "u"}, u); err != nil {
			t.Error(err)
		}
		want := []string{
			"1 of enqueued, in a transaction: false, 1 receipts after 0",
			"3 of enqueued, in a transaction: false, 3 receipts after 1",
			"600 of enqueued, in a transaction: false, 600 receipts after 4",
			"1 of enqueued, in a transaction: true, 1 receipts after 604",
			"1 of enqueued, in a transaction: false, 1 receipts after 605",
			"1 of enqueued, in a transaction: false, 1 receipts after 606",
			"1 of enqueued, in a transaction: false, 1 receipts after 606",
		}
		if !slices.Equal(calls, want) {
			t.Errorf("the calls are\n%s\nwant\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
		}
		list := tasksOf(t, q, k.Name())
		if m := list[0].Metadata; list[0].Priority != 0 || !maps.Equal(m, map[string]string{"place": "0"}) {
			t.Errorf("the first task has priority %d and metadata %v", list[0].Priority, m)
		}
		p := k.Params(noteArgs{})
		p.Options().Key = "own"
		twice, err := q.EnqueueMany(t.Context(), p, p)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range twice {
			if task := readTask(t, q, r.ID); task.Key != "own" || task.Metadata["place"] != fmt.Sprint(i) {
				t.Errorf("task %d of a call that has one task twice has the key %q and the metadata %v", i, task.Key, task.Metadata)
			}
		}
		if m := readTask(t, q, many[599].ID).Metadata; !maps.Equal(m, map[string]string{"by": "caller", "place": "599"}) {
			t.Errorf("the last of many has metadata %v", m)
		}
		if len(own) != 1 {
			t.Errorf("the caller's metadata has become %v", own)
		}
	}),
	inCallersTx("middleware around enqueues can refuse a call, and then nothing is stored", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[noteArgs]("refused", falldue.KindConfig{})
		q.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
			return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
				switch text := tasks[0].Args().(noteArgs).Text; text {
				case "refuse":
					return nil, errFlaky
				case "forget":
					return nil, nil
				case "spoil":
					tasks[0].Options().Delay = -1
				}
				return next(ctx, tx, tasks)
			}
		})
		for text, want := range map[string]error{"refuse": errFlaky, "forget": falldue.ErrInvalid, "spoil": falldue.ErrInvalid} {
			if _, err := k.Enqueue(t.Context(), q, noteArgs{Text: text}); !errors.Is(err, want) {
				t.Errorf("%s: error %v, want %v", text, err, want)
			}
			err := f.transact(t.Context(), func(tx falldue.Tx) error {
				_, err := q.EnqueueManyTx(t.Context(), tx, k.Params(noteArgs{Text: text}))
				return err
			})
			if !errors.Is(err, want) {
				t.Errorf("%s in a transaction: error %v, want %v", text, err, want)
			}
		}
		if list := tasksOf(t, q, k.Name()); len(list) != 0 {
			t.Errorf("stored are %+v", list)
		}
	}),
	{"middleware around enqueues runs for the tasks of schedules, whose metadata is kept", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{Codec: boxes{"red"}})
		k := falldue.NewKind[noteArgs]("scheduled", falldue.KindConfig{})
		refuse := errFlaky
		var took int
		q.UseEnqueue(func(next falldue.EnqueueFunc) falldue.EnqueueFunc {
			return func(ctx context.Context, tx falldue.Tx, tasks []falldue.EnqueueParams) ([]falldue.Receipt, error) {
				if refuse != nil {
					return nil, refuse
				}
				for i := range tasks {
					tasks[i].AddMetadata("by", "middleware")
				}
				receipts, err := next(ctx, tx, tasks)
				took += len(receipts)
				return receipts, err
			}
		})
		key := "customer:" + strings.Repeat("long", 20)
		s, err := periodic.New(q, periodic.Schedule{
			Name: "soon", Spec: "@every 1s", Task: k.Params(noteArgs{Text: "x"}, falldue.EnqueueOptions{Key: key, Metadata: map[string]string{"of": "schedule"}}),
		})
		if err != nil {
			t.Fatal(err)
		}
		tick := func() error {
			for {
				next, err := s.Tick(t.Context())
				if err != nil || len(tasksOf(t, q, k.Name())) > 0 {
					return err
				}
				<-time.After(max(next, time.Millisecond))
			}
		}
		if err := tick(); !errors.Is(err, errFlaky) {
			t.Errorf("a tick that middleware refuses: %v", err)
		}
		refuse = nil
		if err := tick(); err != nil {
			t.Fatal(err)
		}
		if _, err := periodic.Trigger(t.Context(), q, "soon"); err != nil {
			t.Fatal(err)
		}
		list := tasksOf(t, q, k.Name())
		if took != len(list) || len(list) < 2 {
			t.Errorf("middleware has seen %d receipts of %d tasks", took, len(list))
		}
		for _, info := range list {
			if !maps.Equal(info.Metadata, map[string]string{"of": "schedule", "by": "middleware"}) || string(info.Payload) != `{"text":"x"}` || info.Key != list[0].Key {
				t.Errorf("the task is %+v with payload %s", info, info.Payload)
			}
		}
		plain := f.queue(t, falldue.Config{})
		if receipt, err := k.Enqueue(t.Context(), plain, noteArgs{}, falldue.EnqueueOptions{Key: key}); err != nil || readTask(t, plain, receipt.ID).Key != list[0].Key {
			t.Errorf("the key %q of the tasks is not the key of an enqueue (error %v)", list[0].Key, err)
		}
	}},
}
