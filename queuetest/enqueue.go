package queuetest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

var enqueueCases = []conformanceCase{
	inCallersTx("a task enqueued in a transaction that is rolled back does not exist", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[noteArgs]("rolled.back", falldue.KindConfig{})
		tx := f.mustBegin(t)
		own := parsePolicy(t, "delay 7s")
		receipt, err := k.EnqueueTx(t.Context(), q, tx.Tx, noteArgs{"never"}, falldue.EnqueueOptions{Policy: own})
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Task(t.Context(), receipt.ID); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("task %d: got error %v, want ErrNotFound", receipt.ID, err)
		}
		if counts, err := ops.New(q).Counts(t.Context()); err != nil || len(counts) != 0 {
			t.Errorf("the table holds %v (error %v), want nothing", counts, err)
		}
	}),
	inCallersTx("a task enqueued in a transaction runs after the commit, with sql.Tx, sqlx.Tx and the driver's", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[noteArgs]("committed", falldue.KindConfig{})
		ran := make(chan string, 3)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Args.Text
			return nil
		})
		txx := f.db.MustBeginTx(t.Context(), nil)
		if _, err := k.EnqueueTx(t.Context(), q, txx, noteArgs{"sqlx"}); err != nil {
			t.Fatal(err)
		}
		if err := txx.Commit(); err != nil {
			t.Fatal(err)
		}
		tx, err := f.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.EnqueueTx(t.Context(), q, tx, noteArgs{"sql"}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		own := f.mustBegin(t)
		if _, err := k.EnqueueTx(t.Context(), q, own.Tx, noteArgs{"own"}); err != nil {
			t.Fatal(err)
		}
		if err := own.Commit(); err != nil {
			t.Fatal(err)
		}
		startWorker(t, q)
		got := map[string]bool{receive(t, ran, "the first task"): true, receive(t, ran, "the second task"): true, receive(t, ran, "the third task"): true}
		if !got["sqlx"] || !got["sql"] || !got["own"] {
			t.Errorf("ran %v, want all three", got)
		}
	}),
	{"a worker runs a task of its own process without waiting for the next poll", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{PollInterval: time.Hour}), falldue.NewKind[noteArgs]("local", falldue.KindConfig{})
		ran := make(chan string, 4)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Args.Text
			return nil
		})
		startWorker(t, q)
		for i := range 20 { // for at least one of them the worker is idle
			text := strings.Repeat("x", i)
			id := enqueue(t, q, k, noteArgs{text}, []falldue.EnqueueOptions{{}, {Delay: 50 * time.Millisecond}, {RunAt: time.Now().Add(-time.Minute)}}[i%3])
			if got := receive(t, ran, text); got != text {
				t.Fatalf("ran %q, want %q", got, text)
			}
			waitForDeletion(t, q, id)
		}
	}},
	{"a worker runs a task of another process long before the next poll", func(t *testing.T, f *fixture) {
		worker, k := f.queue(t, falldue.Config{PollInterval: time.Hour}), falldue.NewKind[noteArgs]("remote", falldue.KindConfig{})
		ran := make(chan string, 4)
		falldue.Handle(worker, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Args.Text
			return nil
		})
		startWorker(t, worker)
		// A task of the other process's own queue shows when the worker has been idle.
		other, tick := f.queueOn(t, f.open(t), falldue.Config{Queues: map[string]falldue.QueueConfig{"clock": {}}}), falldue.NewKind[noteArgs]("tick", falldue.KindConfig{Queue: "clock"})
		ticks := make(chan struct{}, 4)
		falldue.Handle(other, tick, func(context.Context, falldue.Task[noteArgs]) error { ticks <- struct{}{}; return nil })
		startWorker(t, other)
		for i, opts := range []falldue.EnqueueOptions{{}, {Delay: 50 * time.Millisecond}, {RunAt: time.Now().Add(-time.Minute)}, {Priority: new(-1)}} {
			enqueue(t, other, tick, noteArgs{}, falldue.EnqueueOptions{Delay: 300 * time.Millisecond})
			receive(t, ticks, "the worker to be idle")
			text := strings.Repeat("x", i)
			enqueue(t, other, k, noteArgs{text}, opts)
			if got := receive(t, ran, text); got != text {
				t.Fatalf("ran %q, want %q", got, text)
			}
		}
	}},
	{"EnqueueMany stores many tasks and returns their ids in order", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[noteArgs]("many", falldue.KindConfig{})
		args := make([]noteArgs, 1733)
		for i := range args {
			args[i] = noteArgs{strings.Repeat("é\"\\\n{}", i%7) + string(rune('a'+i%26))}
		}
		receipts, err := k.EnqueueMany(t.Context(), q, args)
		if err != nil {
			t.Fatal(err)
		}
		if len(receipts) != len(args) {
			t.Fatalf("got %d ids for %d tasks", len(receipts), len(args))
		}
		list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{}, ops.ListOptions{Limit: 10_000}))
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != len(args) {
			t.Fatalf("the table holds %d tasks, want %d", len(list), len(args))
		}
		payloads := map[int64]string{}
		for _, info := range list {
			payloads[info.ID] = string(info.Payload)
		}
		for i, r := range receipts {
			if want := toJSON(t, args[i]); payloads[r.ID] != want {
				t.Fatalf("task %d, number %d of the call: payload %s, want %s", r.ID, i, payloads[r.ID], want)
			}
		}
	}},
	{"EnqueueMany stores many tasks, each with its own options", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[int]("varied", falldue.KindConfig{})
		first, err := k.Enqueue(t.Context(), q, -1)
		if err != nil {
			t.Fatal(err)
		}
		at, own := readTask(t, q, first.ID).Now.Add(48*time.Hour), parsePolicy(t, "delay 7s")
		options := []falldue.EnqueueOptions{
			{}, {Delay: time.Hour}, {RunAt: at}, {Queue: "other", Priority: new(-3), MaxAttempts: 5}, {Policy: own, Delay: time.Microsecond},
		}
		params := make([]falldue.EnqueueParams, 1001)
		for i := range params {
			params[i] = k.Params(i, options[i%len(options)])
		}
		receipts, err := q.EnqueueMany(t.Context(), params...)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 2, 3, 4, 996, 997, 998, 999, 1000} { // from the first batch and the last
			info, o := readTask(t, q, receipts[i].ID), options[i%len(options)]
			due := info.CreatedAt.Add(o.Delay)
			if !o.RunAt.IsZero() {
				due = o.RunAt // however long the tasks took to be stored
			}
			if off := info.UpdatedAt.Sub(due).Abs(); off > 5*time.Second {
				t.Errorf("task %d with %+v waits until %v, created at %v", i, o, info.UpdatedAt, info.CreatedAt)
			}
			priority := 0
			if o.Priority != nil {
				priority = *o.Priority
			}
			if string(info.Payload) != toJSON(t, i) || info.Priority != priority || info.MaxAttempts != o.MaxAttempts ||
				info.Queue != cmp.Or(o.Queue, falldue.DefaultQueue) || (info.Policy == "") != o.Policy.IsZero() {
				t.Errorf("task %d with %+v is stored as %+v", i, o, info)
			}
		}
	}},
	{"EnqueueMany stores tasks of several kinds, each with its own options", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k1 := falldue.NewKind[noteArgs]("params.one", falldue.KindConfig{Priority: 3})
		k2 := falldue.NewKind[int]("params.two", falldue.KindConfig{Queue: "other"})
		receipts, err := q.EnqueueMany(t.Context(), k1.Params(noteArgs{"x"}), k2.Params(7, falldue.EnqueueOptions{Priority: new(-4), MaxAttempts: 9, Queue: "third"}))
		if err != nil {
			t.Fatal(err)
		}
		one, two := readTask(t, q, receipts[0].ID), readTask(t, q, receipts[1].ID)
		if one.Kind != "params.one" || one.Queue != falldue.DefaultQueue || one.Priority != 3 || one.MaxAttempts != 0 {
			t.Errorf("first task: %+v", one)
		}
		if two.Kind != "params.two" || two.Queue != "third" || two.Priority != -4 || two.MaxAttempts != 9 || string(two.Payload) != "7" {
			t.Errorf("second task: %+v", two)
		}
		if receipts, err := q.EnqueueMany(t.Context(), k1.Params(noteArgs{"y"}), falldue.EnqueueParams{}); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("empty EnqueueParams became %v (error %v), want ErrInvalid", receipts, err)
		}
	}},
	{"a priority of 0 in the options overrides the kind's priority, and nil keeps it", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[noteArgs]("prioritized", falldue.KindConfig{Priority: 5})
		for _, c := range []struct {
			name string
			opts []falldue.EnqueueOptions
			want int
		}{
			{"a priority of 0", []falldue.EnqueueOptions{{Priority: new(0)}}, 0},
			{"another priority", []falldue.EnqueueOptions{{Priority: new(-3)}}, -3},
			{"options without a priority", []falldue.EnqueueOptions{{}}, 5},
			{"no options", nil, 5},
		} {
			id := enqueue(t, q, k, noteArgs{c.name}, c.opts...)
			if got := readTask(t, q, id).Priority; got != c.want {
				t.Errorf("%s: the task has priority %d, want %d", c.name, got, c.want)
			}
		}
	}},
	{"a task with a delay or an absolute time waits until then", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{Concurrency: 1}), falldue.NewKind[noteArgs]("delayed", falldue.KindConfig{})
		ran := make(chan string, 4)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.Args.Text
			return nil
		})
		enqueue(t, q, k, noteArgs{"hour"}, falldue.EnqueueOptions{Delay: time.Hour})
		soon := enqueue(t, q, k, noteArgs{"soon"}, falldue.EnqueueOptions{Delay: 300 * time.Millisecond})
		info := readTask(t, q, soon)
		if wait := info.UpdatedAt.Sub(info.CreatedAt); wait < 299*time.Millisecond || wait > 301*time.Millisecond {
			t.Errorf("a delay of 300 ms is stored as %v", wait)
		}
		at := info.Now.Add(500 * time.Millisecond)
		later := enqueue(t, q, k, noteArgs{"at"}, falldue.EnqueueOptions{RunAt: at})
		if d := readTask(t, q, later).UpdatedAt.Sub(at); d < -time.Millisecond || d > time.Millisecond {
			t.Errorf("the time %v is stored with a difference of %v", at, d)
		}
		enqueue(t, q, k, noteArgs{"past"}, falldue.EnqueueOptions{RunAt: at.AddDate(-1, 0, 0)})
		startWorker(t, q)
		for _, want := range []string{"past", "soon", "at"} {
			if got := receive(t, ran, want); got != want {
				t.Fatalf("ran %q, want %q", got, want)
			}
		}
		list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{}))
		// Some of the others may not be settled yet.
		if err != nil || len(list) == 0 || string(list[0].Payload) != `{"text":"hour"}` || list[0].Attempts != 0 {
			t.Errorf("the remaining tasks are %+v (error %v), want the one that waits an hour", list, err)
		}
	}},
	{"invalid input is rejected with an error that names it, and nothing is stored", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{MaxPayload: 1000})
		ok := falldue.NewKind[any]("fine", falldue.KindConfig{})
		for _, c := range []struct {
			name, says string
			kind       falldue.Kind[any]
			args       any
			opts       []falldue.EnqueueOptions
		}{
			{"empty kind", `kind ""`, falldue.NewKind[any]("", falldue.KindConfig{}), 1, nil},
			{"kind with quotes", `kind "a'b"`, falldue.NewKind[any]("a'b", falldue.KindConfig{}), 1, nil},
			{"long kind", "kind", falldue.NewKind[any](strings.Repeat("k", 101), falldue.KindConfig{}), 1, nil},
			{"queue with a space", `queue "a b"`, ok, 1, []falldue.EnqueueOptions{{Queue: "a b"}}},
			{"payload too large", "1000", ok, strings.Repeat("x", 999), nil},
			{"invalid UTF-8", "UTF-8", ok, "a\xffb", nil},
			{"NUL", "NUL", ok, "a\x00b", nil},
			{"huge integer", "123456789012345678901234567890", ok, jsonNumber("123456789012345678901234567890"), nil},
			{"huge exponent", "1e999", ok, jsonNumber("1e999"), nil},
			{"not JSON", "json", ok, math.Inf(1), nil},
			{"negative delay", "-1ns", ok, 1, []falldue.EnqueueOptions{{Delay: -1}}},
			{"delay too long", "Delay", ok, 1, []falldue.EnqueueOptions{{Delay: math.MaxInt64}}},
			{"delay and time", "both", ok, 1, []falldue.EnqueueOptions{{Delay: 1, RunAt: time.Now()}}},
			{"time too late", "RunAt", ok, 1, []falldue.EnqueueOptions{{RunAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}}},
			{"priority too high", "32768", ok, 1, []falldue.EnqueueOptions{{Priority: new(32768)}}},
			{"priority too low", "-32769", ok, 1, []falldue.EnqueueOptions{{Priority: new(-32769)}}},
			{"no By", "By is not set: must be", ok, 1, []falldue.EnqueueOptions{{Unique: falldue.Unique{WhileWaiting: true}}}},
			{"options twice", "2 EnqueueOptions", ok, 1, []falldue.EnqueueOptions{{}, {}}},
			{"no kind", "empty Kind", falldue.Kind[any]{}, 1, nil},
			{"negative attempts", "-1", ok, 1, []falldue.EnqueueOptions{{MaxAttempts: -1}}},
		} {
			_, err := c.kind.Enqueue(t.Context(), q, c.args, c.opts...)
			if !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("%s: got error %v, want ErrInvalid", c.name, err)
				continue
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %q does not say %q", c.name, err, c.says)
			}
		}
		if _, err := ok.EnqueueMany(t.Context(), q, []any{1, 2, "\x00"}); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), ": task 2: ") {
			t.Errorf("one bad task of three: got error %v, want ErrInvalid and task 2", err)
		}
		if counts, err := ops.New(q).Counts(t.Context()); err != nil || len(counts) != 0 {
			t.Errorf("the table holds %v (error %v), want nothing", counts, err)
		}
	}},
	{"every payload that is accepted is returned unchanged", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[any]("payload", falldue.KindConfig{})
		for _, args := range []any{
			nil, true, 0, -1, int64(math.MaxInt64), uint64(math.MaxUint64), 0.1, 1e300, 5e-324, "", "ünïcödé 🎈 \u2028 \ufffd", `back\slash "quoted" 'single'`,
			[]any{}, map[string]any{"a": []int{1, 2}, "": map[string]any{}}, strings.Repeat("long ", 20_000),
		} {
			id := enqueue(t, q, k, args)
			if got, want := string(readTask(t, q, id).Payload), toJSON(t, args); got != want {
				t.Errorf("payload %.100s was returned as %.100s", want, got)
			}
		}
	}},
}
