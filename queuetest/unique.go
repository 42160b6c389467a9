package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// orderArgs are the arguments of unique tasks.
type orderArgs struct {
	Customer string `json:"customer"`
	Note     string `json:"note,omitempty"`
}

// unique returns the options of a unique task.
func unique(u falldue.Unique) falldue.EnqueueOptions { return falldue.EnqueueOptions{Unique: u} }

// byArgs are the options of a task whose arguments are unique while it is not finished.
var byArgs = unique(falldue.Unique{By: falldue.ByArgs()})

// enqueueUnique enqueues a task and returns its receipt.
func enqueueUnique[A any](t *testing.T, q *falldue.Queue, k falldue.Kind[A], args A, o falldue.EnqueueOptions) falldue.Receipt {
	t.Helper()
	r, err := k.Enqueue(t.Context(), q, args, o)
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	return r
}

// wantNew enqueues a task that does not exist yet, and returns its ID.
func wantNew[A any](t *testing.T, what string, q *falldue.Queue, k falldue.Kind[A], args A, o falldue.EnqueueOptions) int64 {
	t.Helper()
	r := enqueueUnique(t, q, k, args, o)
	if r.Existed || r.ID == 0 {
		t.Fatalf("%s: the receipt is %+v, want a new task", what, r)
	}
	return r.ID
}

// wantExisting enqueues a task that exists with an ID.
func wantExisting[A any](t *testing.T, what string, id int64, q *falldue.Queue, k falldue.Kind[A], args A, o falldue.EnqueueOptions) {
	t.Helper()
	if r := enqueueUnique(t, q, k, args, o); r != (falldue.Receipt{ID: id, Existed: true}) {
		t.Fatalf("%s: the receipt is %+v, want the existing task %d", what, r, id)
	}
}

// blocking is a handler whose runs start and end when the test says so.
type blocking struct {
	started chan int64
	end     chan error
}

func block[A any](q *falldue.Queue, k falldue.Kind[A]) blocking {
	b := blocking{make(chan int64, 10), make(chan error)}
	falldue.Handle(q, k, func(_ context.Context, task falldue.Task[A]) error {
		b.started <- task.ID
		return <-b.end
	})
	return b
}

var uniqueCases = []conformanceCase{
	{"a unique task exists once until it is done, and then another one may be enqueued", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.done", falldue.KindConfig{})
		other := falldue.NewKind[orderArgs]("unique.other", falldue.KindConfig{})
		runs := block(q, k)
		a := wantNew(t, "the first", q, k, orderArgs{Customer: "a"}, byArgs)
		wantExisting(t, "an equal one", a, q, k, orderArgs{Customer: "a"}, byArgs)
		wantExisting(t, "an equal one in another queue", a, q, k, orderArgs{Customer: "a"}, falldue.EnqueueOptions{Queue: "other", Priority: new(7), Unique: byArgs.Unique})
		wantNew(t, "one with other arguments", q, k, orderArgs{Customer: "a", Note: "x"}, falldue.EnqueueOptions{Delay: time.Hour, Unique: byArgs.Unique})
		wantNew(t, "one of another kind", q, other, orderArgs{Customer: "a"}, byArgs)
		if id := enqueue(t, q, k, orderArgs{Customer: "a"}, byArgs); id != a {
			t.Errorf("Enqueue with Unique returned %d, want the id of the holder, %d", id, a)
		}
		startWorker(t, q)
		receive(t, runs.started, "the task to run")
		wantExisting(t, "an equal one while it runs", a, q, k, orderArgs{Customer: "a"}, byArgs)
		runs.end <- nil
		waitForDeletion(t, q, a)
		b := wantNew(t, "one after it was done", q, k, orderArgs{Customer: "a"}, falldue.EnqueueOptions{Delay: time.Hour, Unique: byArgs.Unique})
		if b == a {
			t.Errorf("both have the id %d", a)
		}
	}},
	{"a unique task may be unique by fields, by its kind, or by a text", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.by", falldue.KindConfig{})
		by := func(by falldue.UniqueBy) falldue.EnqueueOptions { return unique(falldue.Unique{By: by}) }
		customer := falldue.ByFields("customer")
		a := wantNew(t, "by customer", q, k, orderArgs{"a", "x"}, by(customer))
		wantExisting(t, "by customer", a, q, k, orderArgs{"a", "y"}, by(customer))
		wantNew(t, "by another customer", q, k, orderArgs{"b", "x"}, by(customer))
		both := wantNew(t, "by both fields", q, k, orderArgs{"a", "x"}, by(falldue.ByFields("customer", "note")))
		wantExisting(t, "by both fields in another order", both, q, k, orderArgs{"a", "x"}, by(falldue.ByFields("note", "customer")))
		wantNew(t, "by a field that is left out", q, k, orderArgs{"a", ""}, by(falldue.ByFields("customer", "note")))
		kind := wantNew(t, "by kind", q, k, orderArgs{"a", "x"}, by(falldue.ByKind()))
		wantExisting(t, "by kind", kind, q, k, orderArgs{"b", "z"}, by(falldue.ByKind()))
		key := wantNew(t, "by a text", q, k, orderArgs{"a", "x"}, by(falldue.ByKey("a\x00é \n")))
		wantExisting(t, "by a text", key, q, k, orderArgs{"b", "y"}, by(falldue.ByKey("a\x00é \n")))
		wantNew(t, "by another text", q, k, orderArgs{"a", "x"}, by(falldue.ByKey("a\x00é ")))
	}},
	{"a task that is unique while it waits may be enqueued again as soon as it runs", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.waiting", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h")})
		o := unique(falldue.Unique{By: falldue.ByArgs(), WhileWaiting: true})
		runs := block(q, k)
		stop := startWorker(t, q)
		a := wantNew(t, "the first", q, k, orderArgs{}, o)
		receive(t, runs.started, "the first to run")
		runs.end <- errFlaky
		waitFor(t, q, a, "waiting for its retry", func(i falldue.TaskInfo) bool { return i.ClaimedBy == "" && i.Attempts == 1 })
		wantExisting(t, "one while the first waits for its retry", a, q, k, orderArgs{}, o)
		if err := q.Cancel(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		b := wantNew(t, "one after the first was cancelled", q, k, orderArgs{}, o)
		receive(t, runs.started, "the second to run")
		later := unique(o.Unique)
		later.Delay = time.Hour
		c := wantNew(t, "one while the second runs", q, k, orderArgs{}, later)
		runs.end <- falldue.Snooze(time.Hour)
		waitForState(t, q, b, falldue.StateSnoozed)
		wantExisting(t, "one while the third waits", c, q, k, orderArgs{}, o)
		stop()
	}},
	{"a task that is unique for a time keeps its key for that time, whatever becomes of it", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.for", falldue.KindConfig{})
		o := unique(falldue.Unique{By: falldue.ByArgs(), For: time.Hour})
		a := wantNew(t, "the first", q, k, orderArgs{}, o)
		if err := q.Cancel(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		wantExisting(t, "one after the first was cancelled", a, q, k, orderArgs{}, o)
		short := unique(falldue.Unique{By: falldue.ByKey("short"), For: time.Millisecond})
		b := wantNew(t, "one for a millisecond", q, k, orderArgs{}, short)
		deadline := time.Now().Add(waitTimeout)
		for r := (falldue.Receipt{ID: b, Existed: true}); r.Existed; r = enqueueUnique(t, q, k, orderArgs{}, short) {
			if r.ID != b || time.Now().After(deadline) {
				t.Fatalf("the receipt is %+v, want task %d for a millisecond and then a new one", r, b)
			}
		}
		runs := make(chan int64, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[orderArgs]) error { runs <- task.ID; return nil })
		startWorker(t, q)
		receive(t, runs, "a task to run")
		c := wantNew(t, "one that is done immediately", q, k, orderArgs{Customer: "c"}, o)
		waitForDeletion(t, q, c)
		wantExisting(t, "one after the first was done and deleted", c, q, k, orderArgs{Customer: "c"}, o)
	}},
	inCallersTx("with ConflictFail the error of a task that exists has the id of the holder, and a transaction can continue", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.fail", falldue.KindConfig{})
		o := unique(falldue.Unique{By: falldue.ByArgs(), OnConflict: falldue.ConflictFail})
		a := wantNew(t, "the first", q, k, orderArgs{Customer: "a"}, o)
		wantExists := func(what string, id int64, err error) {
			t.Helper()
			if e, ok := errors.AsType[*falldue.ExistsError](err); !errors.Is(err, falldue.ErrExists) || !ok || e.ID != id {
				t.Errorf("%s: error %v, want ErrExists with task %d", what, err, id)
			}
		}
		_, err := k.Enqueue(t.Context(), q, orderArgs{Customer: "a"}, o)
		wantExists("Enqueue", a, err)
		_, err = q.EnqueueMany(t.Context(), k.Params(orderArgs{Customer: "b"}, o), k.Params(orderArgs{Customer: "a"}, o))
		wantExists("EnqueueMany", a, err)
		_, err = q.EnqueueMany(t.Context(), k.Params(orderArgs{Customer: "b"}, o), k.Params(orderArgs{Customer: "b"}, o))
		wantExists("EnqueueMany of two equal ones", 0, err)
		tx := f.mustBegin(t)
		_, err = k.EnqueueTx(t.Context(), q, tx.Tx, orderArgs{Customer: "a"}, o)
		wantExists("EnqueueTx", a, err)
		c, err := k.EnqueueTx(t.Context(), q, tx.Tx, orderArgs{Customer: "c"}, o)
		if err != nil || c.Existed {
			t.Fatalf("after the error: %+v, %v", c, err)
		}
		if _, err = k.EnqueueTx(t.Context(), q, tx.Tx, orderArgs{Customer: "c"}, o); err == nil {
			t.Error("the transaction does not see its own task")
		}
		wantExists("EnqueueTx in the same transaction", c.ID, err)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{}))
		if err != nil || len(list) != 2 || list[0].ID != a || list[1].ID != c.ID {
			t.Errorf("the table has %+v (error %v), want tasks %d and %d", list, err, a, c.ID)
		}
	}),
	{"with ConflictReplace a waiting task gets the payload and the time of the new one, and a running one is succeeded", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.replace", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h")})
		o := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByFields("customer"), OnConflict: falldue.ConflictReplace}, Delay: time.Hour}
		a := wantNew(t, "the first", q, k, orderArgs{"a", "1"}, o)
		o.Delay = 2 * time.Hour
		wantExisting(t, "the second", a, q, k, orderArgs{"a", "2"}, o)
		info := readTask(t, q, a)
		if off := info.UpdatedAt.Sub(info.Now.Add(2 * time.Hour)).Abs(); string(info.Payload) != toJSON(t, orderArgs{"a", "2"}) || off > time.Minute {
			t.Errorf("the task has the payload %s and waits until %v; now is %v", info.Payload, info.UpdatedAt, info.Now)
		}
		runs := block(q, k)
		startWorker(t, q)
		o.Delay = 0
		wantExisting(t, "the third", a, q, k, orderArgs{"a", "3"}, o)
		receive(t, runs.started, "the task to run immediately")
		runs.end <- errFlaky
		waitFor(t, q, a, "waiting for its retry", func(i falldue.TaskInfo) bool { return i.ClaimedBy == "" && i.Attempts == 1 })
		wantExisting(t, "the fourth, while the first waits for its retry", a, q, k, orderArgs{"a", "4"}, o)
		receive(t, runs.started, "the retry to run immediately")
		if info := readTask(t, q, a); string(info.Payload) != toJSON(t, orderArgs{"a", "4"}) || info.Attempts != 2 {
			t.Errorf("the retry is %+v", info)
		}
		o.Delay = time.Hour
		b := wantNew(t, "the fifth, while the first runs", q, k, orderArgs{"a", "5"}, o)
		wantExisting(t, "the sixth, while the fifth waits", b, q, k, orderArgs{"a", "6"}, o)
		runs.end <- nil
		waitForDeletion(t, q, a)
		wantExisting(t, "the seventh, after the first is done", b, q, k, orderArgs{"a", "7"}, o)
	}},
	{"a debounce runs once, after the last enqueue and with its arguments, and while it runs the next one waits", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.debounce", falldue.KindConfig{})
		last := falldue.Unique{By: falldue.ByFields("customer"), WhileWaiting: true, OnConflict: falldue.ConflictReplace}
		debounce := func(d time.Duration) falldue.EnqueueOptions { return falldue.EnqueueOptions{Unique: last, Delay: d} }
		started, end := make(chan string, 10), make(chan struct{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[orderArgs]) error {
			started <- task.Args.Note
			<-end
			return nil
		})
		startWorker(t, q)
		a := wantNew(t, "the first", q, k, orderArgs{"a", "1"}, debounce(time.Hour))
		for _, d := range []time.Duration{30 * time.Minute, 2 * time.Hour} { // earlier and later than the one before
			wantExisting(t, "one while the first waits", a, q, k, orderArgs{"a", d.String()}, debounce(d))
			if info := readTask(t, q, a); info.UpdatedAt.Sub(info.Now.Add(d)).Abs() > time.Minute {
				t.Errorf("after an enqueue with a delay of %v the task is due %v from now", d, info.UpdatedAt.Sub(info.Now))
			}
		}
		wantExisting(t, "the last", a, q, k, orderArgs{"a", "last"}, debounce(time.Millisecond))
		if got := receive(t, started, "the task to run"); got != "last" {
			t.Errorf("the task ran with the arguments %s, want the last", got)
		}
		b := wantNew(t, "one while the task runs", q, k, orderArgs{"a", "after"}, debounce(time.Hour))
		end <- struct{}{}
		waitForDeletion(t, q, a)
		wantExisting(t, "one after the task is done", b, q, k, orderArgs{"a", "end"}, debounce(0))
		if got := receive(t, started, "the next task to run"); got != "end" {
			t.Errorf("the next task ran with the arguments %s", got)
		}
		end <- struct{}{}
		waitForDeletion(t, q, b)
		if len(started) > 0 {
			t.Error("a third task ran")
		}
	}},
	{"a throttle runs the first task immediately, skips others in its time, and then runs one again", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.throttle", falldue.KindConfig{})
		throttle := func(d time.Duration) falldue.EnqueueOptions {
			return unique(falldue.Unique{By: falldue.ByFields("customer"), For: d})
		}
		runs := make(chan string, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[orderArgs]) error { runs <- task.Args.Note; return nil })
		startWorker(t, q)
		a := wantNew(t, "the first", q, k, orderArgs{"a", "first"}, throttle(time.Hour))
		if got := receive(t, runs, "the first task to run"); got != "first" {
			t.Errorf("the task %s ran", got)
		}
		waitForDeletion(t, q, a)
		wantExisting(t, "one in the time of the first, which is done", a, q, k, orderArgs{"a", "second"}, throttle(time.Hour))
		b := wantNew(t, "one of another customer", q, k, orderArgs{"b", "other"}, throttle(time.Millisecond))
		if got := receive(t, runs, "the task of the other customer to run"); got != "other" {
			t.Errorf("the task %s ran", got)
		}
		deadline := time.Now().Add(waitTimeout)
		for r := (falldue.Receipt{ID: b, Existed: true}); r.Existed; r = enqueueUnique(t, q, k, orderArgs{"b", "next"}, throttle(time.Hour)) {
			if time.Now().After(deadline) {
				t.Fatalf("the receipt is %+v long after the time of task %d", r, b)
			}
		}
		if got := receive(t, runs, "the next task of that customer to run"); got != "next" {
			t.Errorf("the task %s ran", got)
		}
	}},
	{"a trailing throttle runs once, that time after the first enqueue, and skips others until the task starts", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.trailing", falldue.KindConfig{})
		pending := falldue.Unique{By: falldue.ByFields("customer"), WhileWaiting: true}
		throttle := func(d time.Duration) falldue.EnqueueOptions { return falldue.EnqueueOptions{Unique: pending, Delay: d} }
		started, end := make(chan string, 10), make(chan struct{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[orderArgs]) error {
			started <- task.Args.Note
			<-end
			return nil
		})
		startWorker(t, q)
		a := wantNew(t, "the first", q, k, orderArgs{"a", "first"}, throttle(time.Hour))
		due := readTask(t, q, a).UpdatedAt
		for _, d := range []time.Duration{0, 30 * time.Minute, 2 * time.Hour} {
			wantExisting(t, "one while the first waits", a, q, k, orderArgs{"a", d.String()}, throttle(d))
		}
		if at := readTask(t, q, a).UpdatedAt; !at.Equal(due) {
			t.Errorf("the task is due at %v, want %v as before the skipped ones", at, due)
		}
		if err := ops.New(q).RunNow(t.Context(), a); err != nil { // as after that time
			t.Fatal(err)
		}
		if got := receive(t, started, "the task to run"); got != "first" {
			t.Errorf("the task ran with the arguments %s, want the first", got)
		}
		b := wantNew(t, "one while the task runs", q, k, orderArgs{"a", "next"}, throttle(time.Hour))
		close(end)
		waitForDeletion(t, q, a)
		wantExisting(t, "one after the task is done", b, q, k, orderArgs{"a", "last"}, throttle(time.Hour))
		if len(started) > 0 {
			t.Error("the next task ran before its time")
		}
	}},
	{"with ConflictReplace a waiting task gets the key of the new one, even if it has run", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[orderArgs]("unique.key", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h"), Limits: []falldue.Limit{falldue.InOrder()}}).
			KeyedBy(func(a orderArgs) string { return a.Customer })
		o := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByKind(), OnConflict: falldue.ConflictReplace}}
		wantKey := func(what string, id int64, want orderArgs) {
			t.Helper()
			if info := readTask(t, q, id); info.Key != want.Customer || string(info.Payload) != toJSON(t, want) {
				t.Errorf("%s: the task has the key %q and the payload %s, want the ones of %+v", what, info.Key, info.Payload, want)
			}
		}
		receipts, err := q.EnqueueMany(t.Context(), k.Params(orderArgs{"ada", "1"}, o), k.Params(orderArgs{"eve", "2"}, o))
		if err != nil {
			t.Fatal(err)
		}
		id := receipts[0].ID
		wantKey("two of one call", id, orderArgs{"eve", "2"})
		wantExisting(t, "the third", id, q, k, orderArgs{"bob", "3"}, o)
		wantKey("while it waits", id, orderArgs{"bob", "3"})
		runs := block(q, k)
		startWorker(t, q)
		receive(t, runs.started, "the task to run")
		runs.end <- errFlaky
		waitFor(t, q, id, "waiting for its retry", func(i falldue.TaskInfo) bool { return i.ClaimedBy == "" && i.Attempts == 1 })
		wantExisting(t, "another key while it waits for its retry", id, q, k, orderArgs{"ada", "4"}, o)
		wantKey("after that", id, orderArgs{"ada", "4"})
		receive(t, runs.started, "the retry to run immediately")
		runs.end <- nil
		waitForDeletion(t, q, id)
	}},
	{"with ConflictReplace a task replaces one that is the same in all, too", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.same", falldue.KindConfig{})
		o := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs(), OnConflict: falldue.ConflictReplace}, RunAt: time.Now().Add(time.Hour).Truncate(time.Second)}
		a := wantNew(t, "the first", q, k, orderArgs{"a", "1"}, o)
		for range 2 {
			wantExisting(t, "the same again", a, q, k, orderArgs{"a", "1"}, o)
		}
	}},
	{"a key that is held for a time is released when its task is deleted before it is done, and by a call", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{DoneRetention: time.Hour}), falldue.NewKind[orderArgs]("unique.release", falldue.KindConfig{})
		other := falldue.NewKind[orderArgs]("unique.other", falldue.KindConfig{})
		runs := block(q, k)
		stop := startWorker(t, q)
		release := func(k falldue.Kind[orderArgs], customer string, want bool) {
			t.Helper()
			if released, err := k.ReleaseUnique(t.Context(), q, orderArgs{Customer: customer}, falldue.ByFields("customer")); err != nil || released != want {
				t.Errorf("release: %v, error %v; want %v", released, err, want)
			}
		}
		for _, conflict := range []falldue.Conflict{falldue.ConflictSkip, falldue.ConflictReplace} {
			o := falldue.EnqueueOptions{Delay: time.Hour, Unique: falldue.Unique{By: falldue.ByFields("customer"), For: time.Hour, OnConflict: conflict}}
			// Cancelled and deleted, or deleted while it waits.
			a := wantNew(t, "the first", q, k, orderArgs{"ada", "1"}, o)
			if err := q.Cancel(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			wantExisting(t, "after the first was cancelled", a, q, k, orderArgs{"ada", "2"}, o)
			for range 2 {
				if err := q.Delete(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				a = wantNew(t, "after it was deleted", q, k, orderArgs{"ada", "3"}, o)
			}
			// A call, of other tasks and of this one.
			release(other, "ada", false)
			release(k, "eve", false)
			wantExisting(t, "after keys of others were released", a, q, k, orderArgs{"ada", "4"}, o)
			if err := q.Cancel(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			release(k, "ada", true)
			release(k, "ada", false)
			// One that is done is not done again, though it is deleted.
			o.Delay = 0
			b := wantNew(t, "after the key was released", q, k, orderArgs{"ada", "5"}, o)
			receive(t, runs.started, "the task to run")
			runs.end <- nil
			waitForState(t, q, b, falldue.StateDone)
			if err := q.Delete(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			wantExisting(t, "after the one that is done was deleted", b, q, k, orderArgs{"ada", "6"}, o)
			release(k, "ada", true)
		}
		stop()
		var invalid falldue.Kind[orderArgs]
		for _, by := range []falldue.UniqueBy{{}, falldue.ByFields("customr"), falldue.ByKey("")} {
			if _, err := k.ReleaseUnique(t.Context(), q, orderArgs{}, by); !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("release by %+v: error %v, want ErrInvalid", by, err)
			}
		}
		if _, err := invalid.ReleaseUnique(t.Context(), q, orderArgs{}, falldue.ByKind()); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("release of an empty kind: error %v, want ErrInvalid", err)
		}
	}},
	{"of equal unique tasks of one call one is stored, in the order of the call", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.many", falldue.KindConfig{})
		old := wantNew(t, "one before", q, k, orderArgs{Customer: "3"}, byArgs)
		params := make([]falldue.EnqueueParams, 1203)
		for i := range params {
			params[i] = k.Params(orderArgs{Customer: fmt.Sprint(i % 700)}, byArgs)
		}
		receipts, err := q.EnqueueMany(t.Context(), params...)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range receipts {
			switch {
			case i == 3 && r != falldue.Receipt{ID: old, Existed: true}, i >= 700 && r != falldue.Receipt{ID: receipts[i-700].ID, Existed: true}, i != 3 && i < 700 && r.Existed:
				t.Fatalf("receipt %d is %+v", i, r)
			}
		}
		for _, i := range []int{0, 2, 499, 500, 699} {
			if info := readTask(t, q, receipts[i].ID); string(info.Payload) != toJSON(t, orderArgs{Customer: fmt.Sprint(i)}) {
				t.Errorf("task %d has the payload %s", i, info.Payload)
			}
		}
		if counts, err := ops.New(q).Counts(t.Context()); err != nil || len(counts) != 1 || counts[0].Tasks != 700 {
			t.Errorf("the table has %v (error %v), want 700 tasks", counts, err)
		}
		mixed := []falldue.EnqueueParams{k.Params(orderArgs{Customer: "3"}), k.Params(orderArgs{Customer: "3"}, byArgs), k.Params(orderArgs{Customer: "new"}, byArgs)}
		receipts, err = q.EnqueueMany(t.Context(), mixed...)
		if err != nil || len(receipts) != 3 || receipts[1].ID != old || receipts[0].ID == old || receipts[2].ID == old {
			t.Errorf("EnqueueMany with and without Unique: %v, %v; the holder is %d", receipts, err, old)
		}
	}},
	{"a dead task is not retried while another one has its unique key, and takes it back otherwise", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.revived", falldue.KindConfig{})
		a := wantNew(t, "the first", q, k, orderArgs{}, byArgs)
		cancel := func(id int64) {
			t.Helper()
			if err := q.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		cancel(a)
		b := wantNew(t, "one after the first was cancelled", q, k, orderArgs{}, byArgs)
		err := q.Retry(t.Context(), a)
		if e, ok := errors.AsType[*falldue.ExistsError](err); !errors.Is(err, falldue.ErrExists) || !ok || e.ID != b {
			t.Errorf("Retry while task %d has the key: error %v", b, err)
		}
		if info := readTask(t, q, a); info.State != falldue.StateCancelled {
			t.Errorf("the task is %s", info.State)
		}
		cancel(b)
		if err := q.Retry(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		wantExisting(t, "after the first was retried", a, q, k, orderArgs{}, byArgs)
		cancel(a)
		if err := q.Retry(t.Context(), a); err != nil {
			t.Fatalf("retry of a holder: %v", err)
		}
		wantExisting(t, "after the first was retried again", a, q, k, orderArgs{}, byArgs)
		cancel(a)
		hour := unique(falldue.Unique{By: falldue.ByArgs(), For: time.Hour})
		c := wantNew(t, "one for an hour", q, k, orderArgs{}, hour)
		cancel(c)
		if err := q.Retry(t.Context(), a); err != nil {
			t.Fatalf("retry in the hour of a cancelled task: %v", err)
		}
		wantExisting(t, "after the first was retried in the hour of a cancelled task", a, q, k, orderArgs{}, byArgs)
		cancel(a)
		wantExisting(t, "one for an hour, in the hour of a cancelled task", a, q, k, orderArgs{}, hour)
	}},
	{"an invalid unique task is refused", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[orderArgs]("unique.invalid", falldue.KindConfig{})
		for what, u := range map[string]falldue.Unique{
			"a misspelt field":  {By: falldue.ByFields("costumer")},
			"no field":          {By: falldue.ByFields()},
			"an empty text":     {By: falldue.ByKey("")},
			"a negative time":   {By: falldue.ByArgs(), For: -time.Second},
			"too short a time":  {By: falldue.ByArgs(), For: 1},
			"both":              {By: falldue.ByArgs(), For: time.Hour, WhileWaiting: true},
			"too long a time":   {By: falldue.ByArgs(), For: 1<<63 - 1},
			"no known conflict": {By: falldue.ByArgs(), OnConflict: 7},
		} {
			if receipt, err := k.Enqueue(t.Context(), q, orderArgs{}, unique(u)); !errors.Is(err, falldue.ErrInvalid) {
				t.Errorf("%s became task %d (error %v), want ErrInvalid", what, receipt.ID, err)
			}
		}
		type shipping struct {
			City string `json:",omitempty"`
		}
		type billing struct {
			City string `json:",omitempty"`
		}
		for what, enqueue := range map[string]func(falldue.EnqueueOptions) (falldue.Receipt, error){
			"a field of an embedded struct with a tag": func(o falldue.EnqueueOptions) (falldue.Receipt, error) {
				type order struct {
					ID       int `json:"id"`
					shipping `json:"shipping"`
				}
				return falldue.NewKind[order]("unique.tagged", falldue.KindConfig{}).Enqueue(t.Context(), q, order{}, o)
			},
			"a field that two embedded structs share": func(o falldue.EnqueueOptions) (falldue.Receipt, error) {
				type order struct {
					ID int `json:"id"`
					shipping
					billing
				}
				return falldue.NewKind[order]("unique.shared", falldue.KindConfig{}).Enqueue(t.Context(), q, order{}, o)
			},
		} {
			o := unique(falldue.Unique{By: falldue.ByFields("City")})
			if receipt, err := enqueue(o); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), `"City"`) {
				t.Errorf("%s became task %d (error %v), want ErrInvalid", what, receipt.ID, err)
			}
		}
		if receipt, err := falldue.NewKind[int]("unique.number", falldue.KindConfig{}).Enqueue(t.Context(), q, 1, unique(falldue.Unique{By: falldue.ByFields("x")})); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("a field of a number became task %d (error %v), want ErrInvalid", receipt.ID, err)
		}
	}},
}
