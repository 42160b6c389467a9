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
)

var enqueueCases = []conformance{
	{"a task enqueued in a transaction that is rolled back never was", func(t *testing.T, b *bench) {
		q, k := b.queue(t, falldue.Config{}), falldue.NewKind[note]("rolled.back", falldue.KindConfig{})
		tx := b.db.MustBeginTx(t.Context(), nil)
		own := policy(t, "delay 7s")
		id, err := k.EnqueueTx(t.Context(), q, tx, note{"never"}, &falldue.EnqueueOptions{Policy: &own})
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Task(t.Context(), id); !errors.Is(err, falldue.ErrNotFound) {
			t.Errorf("task %d: got error %v, want ErrNotFound", id, err)
		}
		if counts, err := q.Counts(t.Context()); err != nil || len(counts) != 0 {
			t.Errorf("the table holds %v (error %v), want nothing", counts, err)
		}
	}},
	{"a task enqueued in a transaction that commits runs, through sql.Tx and sqlx.Tx alike", func(t *testing.T, b *bench) {
		q, k := b.queue(t, falldue.Config{}), falldue.NewKind[note]("committed", falldue.KindConfig{})
		ran := make(chan string, 2)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[note]) error {
			ran <- task.Args.Text
			return nil
		})
		txx := b.db.MustBeginTx(t.Context(), nil)
		if _, err := k.EnqueueTx(t.Context(), q, txx, note{"sqlx"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := txx.Commit(); err != nil {
			t.Fatal(err)
		}
		tx, err := b.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.EnqueueTx(t.Context(), q, tx, note{"sql"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		work(t, q)
		got := map[string]bool{receive(t, ran, "the first task"): true, receive(t, ran, "the second task"): true}
		if !got["sqlx"] || !got["sql"] {
			t.Errorf("ran %v, want both", got)
		}
	}},
	{"a worker knows at once of tasks that its own process enqueues", func(t *testing.T, b *bench) {
		q, k := b.queue(t, falldue.Config{PollInterval: time.Hour}), falldue.NewKind[note]("local", falldue.KindConfig{})
		ran := make(chan string, 4)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[note]) error {
			ran <- task.Args.Text
			return nil
		})
		work(t, q)
		for i := range 20 { // of which one at the least meets a worker that is idle
			text := strings.Repeat("x", i)
			id := enqueue(t, q, k, note{text}, []*falldue.EnqueueOptions{nil, {Delay: 50 * time.Millisecond}, {RunAt: time.Now().Add(-time.Minute)}}[i%3])
			if got := receive(t, ran, text); got != text {
				t.Fatalf("ran %q, want %q", got, text)
			}
			untilGone(t, q, id)
		}
	}},
	{"many tasks are enqueued at once, and their ids come in their order", func(t *testing.T, b *bench) {
		q, k := b.queue(t, falldue.Config{}), falldue.NewKind[note]("many", falldue.KindConfig{})
		args := make([]note, 1733)
		for i := range args {
			args[i] = note{strings.Repeat("é\"\\\n{}", i%7) + string(rune('a'+i%26))}
		}
		ids, err := k.EnqueueMany(t.Context(), q, args, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) != len(args) {
			t.Fatalf("got %d ids for %d tasks", len(ids), len(args))
		}
		list, err := q.Tasks(t.Context(), falldue.TaskFilter{Limit: 10_000})
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
		for i, id := range ids {
			if want := jsonOf(t, args[i]); payloads[id] != want {
				t.Fatalf("task %d (the %dth): payload %s, want %s", id, i, payloads[id], want)
			}
		}
	}},
	{"many tasks with options of their own are enqueued at once", func(t *testing.T, b *bench) {
		q, k := b.queue(t, falldue.Config{}), falldue.NewKind[int]("varied", falldue.KindConfig{})
		const far = 48 * time.Hour
		first, err := k.Enqueue(t.Context(), q, -1, nil)
		if err != nil {
			t.Fatal(err)
		}
		at, own := task(t, q, first).Now.Add(far), policy(t, "delay 7s")
		options := []*falldue.EnqueueOptions{
			{}, {Delay: time.Hour}, {RunAt: at}, {Queue: "other", Priority: new(-3), MaxAttempts: 5}, {Policy: &own, Delay: time.Microsecond},
		}
		params := make([]falldue.EnqueueParams, 1001)
		for i := range params {
			params[i] = k.Params(i, options[i%len(options)])
		}
		ids, err := q.EnqueueMany(t.Context(), params...)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 2, 3, 4, 996, 997, 998, 999, 1000} { // of the first batch and of the last
			info, o := task(t, q, ids[i]), options[i%len(options)]
			wait := o.Delay
			if !o.RunAt.IsZero() {
				wait = far
			}
			if off := info.UpdatedAt.Sub(info.CreatedAt) - wait; off < -5*time.Second || off > 5*time.Second {
				t.Errorf("task %d with %+v waits until %v, created at %v", i, o, info.UpdatedAt, info.CreatedAt)
			}
			priority := 0
			if o.Priority != nil {
				priority = *o.Priority
			}
			if string(info.Payload) != jsonOf(t, i) || info.Priority != priority || info.MaxAttempts != o.MaxAttempts ||
				info.Queue != cmp.Or(o.Queue, falldue.DefaultQueue) || (info.Policy == "") != (o.Policy == nil) {
				t.Errorf("task %d with %+v is stored as %+v", i, o, info)
			}
		}
	}},
	{"params of several kinds are enqueued at once, with options of their own", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{})
		k1 := falldue.NewKind[note]("params.one", falldue.KindConfig{Priority: 3})
		k2 := falldue.NewKind[int]("params.two", falldue.KindConfig{Queue: "other"})
		ids, err := q.EnqueueMany(t.Context(), k1.Params(note{"x"}, nil), k2.Params(7, &falldue.EnqueueOptions{Priority: new(-4), MaxAttempts: 9, Queue: "third"}))
		if err != nil {
			t.Fatal(err)
		}
		one, two := task(t, q, ids[0]), task(t, q, ids[1])
		if one.Kind != "params.one" || one.Queue != falldue.DefaultQueue || one.Priority != 3 || one.MaxAttempts != 0 {
			t.Errorf("first task: %+v", one)
		}
		if two.Kind != "params.two" || two.Queue != "third" || two.Priority != -4 || two.MaxAttempts != 9 || string(two.Payload) != "7" {
			t.Errorf("second task: %+v", two)
		}
		if ids, err := q.EnqueueMany(t.Context(), k1.Params(note{"y"}, nil), falldue.EnqueueParams{}); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("params that no kind made became task %d (error %v); want an error", ids, err)
		}
	}},
	{"a delayed task waits, and so does one for an absolute time", func(t *testing.T, b *bench) {
		q, k := b.queue(t, falldue.Config{Concurrency: 1}), falldue.NewKind[note]("delayed", falldue.KindConfig{})
		ran := make(chan string, 4)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[note]) error {
			ran <- task.Args.Text
			return nil
		})
		enqueue(t, q, k, note{"hour"}, &falldue.EnqueueOptions{Delay: time.Hour})
		soon := enqueue(t, q, k, note{"soon"}, &falldue.EnqueueOptions{Delay: 300 * time.Millisecond})
		info := task(t, q, soon)
		if wait := info.UpdatedAt.Sub(info.CreatedAt); wait < 299*time.Millisecond || wait > 301*time.Millisecond {
			t.Errorf("the wait of 300 ms is stored as %v", wait)
		}
		at := info.Now.Add(500 * time.Millisecond)
		later := enqueue(t, q, k, note{"at"}, &falldue.EnqueueOptions{RunAt: at})
		if d := task(t, q, later).UpdatedAt.Sub(at); d < -time.Millisecond || d > time.Millisecond {
			t.Errorf("the moment %v is stored %v off", at, d)
		}
		enqueue(t, q, k, note{"past"}, &falldue.EnqueueOptions{RunAt: at.AddDate(-1, 0, 0)})
		work(t, q)
		for _, want := range []string{"past", "soon", "at"} {
			if got := receive(t, ran, want); got != want {
				t.Fatalf("ran %q, want %q", got, want)
			}
		}
		list, err := q.Tasks(t.Context(), falldue.TaskFilter{})
		// Of the others some may not be settled yet.
		if err != nil || len(list) == 0 || string(list[0].Payload) != `{"text":"hour"}` || list[0].Attempts != 0 {
			t.Errorf("left are %+v (error %v), want the one that waits an hour", list, err)
		}
	}},
	{"bad input is refused with an error that names it, and nothing is stored", func(t *testing.T, b *bench) {
		q := b.queue(t, falldue.Config{MaxPayload: 1000})
		ok := falldue.NewKind[any]("fine", falldue.KindConfig{})
		for _, c := range []struct {
			name, says string
			kind       falldue.Kind[any]
			args       any
			opts       *falldue.EnqueueOptions
		}{
			{"empty kind", `kind ""`, falldue.NewKind[any]("", falldue.KindConfig{}), 1, nil},
			{"kind with quotes", `kind "a'b"`, falldue.NewKind[any]("a'b", falldue.KindConfig{}), 1, nil},
			{"long kind", "kind", falldue.NewKind[any](strings.Repeat("k", 101), falldue.KindConfig{}), 1, nil},
			{"queue with a space", `queue "a b"`, ok, 1, &falldue.EnqueueOptions{Queue: "a b"}},
			{"payload too large", "1000", ok, strings.Repeat("x", 999), nil},
			{"invalid UTF-8", "UTF-8", ok, "a\xffb", nil},
			{"NUL", "NUL", ok, "a\x00b", nil},
			{"huge integer", "123456789012345678901234567890", ok, jsonNumber("123456789012345678901234567890"), nil},
			{"huge exponent", "1e999", ok, jsonNumber("1e999"), nil},
			{"not JSON", "json", ok, math.Inf(1), nil},
			{"negative delay", "-1ns", ok, 1, &falldue.EnqueueOptions{Delay: -1}},
			{"endless delay", "Delay", ok, 1, &falldue.EnqueueOptions{Delay: math.MaxInt64}},
			{"delay and moment", "both", ok, 1, &falldue.EnqueueOptions{Delay: 1, RunAt: time.Now()}},
			{"moment too far", "RunAt", ok, 1, &falldue.EnqueueOptions{RunAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}},
			{"priority too high", "32768", ok, 1, &falldue.EnqueueOptions{Priority: new(32768)}},
			{"priority too low", "-32769", ok, 1, &falldue.EnqueueOptions{Priority: new(-32769)}},
			{"negative attempts", "-1", ok, 1, &falldue.EnqueueOptions{MaxAttempts: -1}},
		} {
			_, err := c.kind.Enqueue(t.Context(), q, c.args, c.opts)
			if !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("%s: got error %v, want ErrInvalid", c.name, err)
				continue
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %q does not say %q", c.name, err, c.says)
			}
		}
		if _, err := ok.EnqueueMany(t.Context(), q, []any{1, 2, "\x00"}, nil); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("one bad task of three: got error %v, want ErrInvalid", err)
		}
		if counts, err := q.Counts(t.Context()); err != nil || len(counts) != 0 {
			t.Errorf("the table holds %v (error %v), want nothing", counts, err)
		}
	}},
	{"every payload that is taken comes back as it was", func(t *testing.T, b *bench) {
		q, k := b.queue(t, falldue.Config{}), falldue.NewKind[any]("payload", falldue.KindConfig{})
		for _, args := range []any{
			nil, true, 0, -1, int64(math.MaxInt64), uint64(math.MaxUint64), 0.1, 1e300, 5e-324, "", "ünïcödé 🎈 \u2028 \ufffd", `back\slash "quoted" 'single'`,
			[]any{}, map[string]any{"a": []int{1, 2}, "": map[string]any{}}, strings.Repeat("long ", 20_000),
		} {
			id := enqueue(t, q, k, args)
			if got, want := string(task(t, q, id).Payload), jsonOf(t, args); got != want {
				t.Errorf("payload %.100s came back as %.100s", want, got)
			}
		}
	}},
}
