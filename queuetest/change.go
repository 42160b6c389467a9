package queuetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

var changeCases = []conformanceCase{
	{"ChangeTask gives a waiting task another time, queue, priority, arguments and keys, and never a running one", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{DoneRetention: time.Hour, Queues: map[string]falldue.QueueConfig{"other": {}}})
		k := falldue.NewKind[string]("changed", falldue.KindConfig{Policy: parsePolicy(t, "delay 1h")}).KeyedBy(func(s string) string { return "of:" + s })
		o, once := ops.New(q), falldue.Unique{By: falldue.ByArgs()}
		id := enqueue(t, q, k, "before", falldue.EnqueueOptions{Delay: time.Hour, Unique: once})
		taken := enqueue(t, q, k, "taken", falldue.EnqueueOptions{Delay: time.Hour, Unique: once})
		was := readTask(t, q, id)
		exists := new(falldue.ExistsError)
		if err := o.ChangeTask(t.Context(), id, ops.TaskChange{Params: new(k.Params("taken", falldue.EnqueueOptions{Unique: once}))}); !errors.As(err, &exists) || exists.ID != taken {
			t.Errorf("a key that another task holds: %v", err)
		}
		if err := o.ChangeTask(t.Context(), id, ops.TaskChange{Fence: &was.Fence, Params: new(k.Params("after", falldue.EnqueueOptions{Unique: once})), Priority: new(7)}); err != nil {
			t.Fatal(err)
		}
		now := readTask(t, q, id)
		if now.Key != "of:after" || now.Priority != 7 || !now.UpdatedAt.Equal(was.UpdatedAt) || string(now.Payload) != `"after"` || now.Queue != falldue.DefaultQueue {
			t.Errorf("the task is %+v", now)
		}
		if err := o.ChangeTask(t.Context(), id, ops.TaskChange{Fence: &was.Fence, Queue: "late"}); !errors.Is(err, falldue.ErrWrongState) {
			t.Errorf("a change with the fence before: %v", err)
		}
		for args, existed := range map[string]bool{"before": false, "after": true} {
			if r, err := k.Enqueue(t.Context(), q, args, falldue.EnqueueOptions{Unique: once, Delay: time.Hour}); err != nil || r.Existed != existed {
				t.Errorf("the unique key of %q: existed %t, want %t (error %v)", args, r.Existed, existed, err)
			}
		}
		running, release := make(chan string, 1), make(chan struct{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[string]) error {
			running <- task.Args
			<-release
			return nil
		})
		startWorker(t, q)
		if err := o.ChangeTask(t.Context(), id, ops.TaskChange{RunAt: time.Now().Add(-time.Hour), Queue: "other", Args: "at last"}); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, running, "the task to run"); got != "at last" {
			t.Errorf("the handler has %q", got)
		}
		if err := o.ChangeTask(t.Context(), id, ops.TaskChange{Queue: "late"}); !errors.Is(err, falldue.ErrRunning) {
			t.Errorf("a change of a running task: %v", err)
		}
		close(release)
		waitForState(t, q, id, falldue.StateDone)
		if err := o.ChangeTask(t.Context(), id, ops.TaskChange{Queue: "late"}); !errors.Is(err, falldue.ErrWrongState) {
			t.Errorf("a change of a done task: %v", err)
		}
		if err := o.ChangeTask(t.Context(), taken, ops.TaskChange{Queue: "no spaces"}); !errors.Is(err, falldue.ErrInvalid) {
			t.Errorf("an invalid queue: %v", err)
		}
	}},
	{"a paused queue, kind, key or policy starts no task on any worker until it is resumed, and others continue", func(t *testing.T, f *fixture) {
		for _, subject := range []falldue.Subject{{Queue: "default"}, {Kind: "paused"}, {Key: "customer 7"}, {Queue: "default", Kind: "paused"}, {Policy: "own"}} {
			q, other := f.queue(t, falldue.Config{Queues: twoQueues}), f.queueOn(t, f.open(t), falldue.Config{Queues: twoQueues})
			paused := falldue.NewKind[noteArgs]("paused", falldue.KindConfig{DoneRetention: time.Hour})
			free := falldue.NewKind[noteArgs]("free", falldue.KindConfig{DoneRetention: time.Hour, Queue: "other"})
			for _, one := range []*falldue.Queue{q, other} {
				falldue.Handle(one, paused, func(context.Context, falldue.Task[noteArgs]) error { return nil })
				falldue.Handle(one, free, func(context.Context, falldue.Task[noteArgs]) error { return nil })
			}
			own := parsePolicy(t, "delay 7s")
			opts := falldue.EnqueueOptions{Key: "customer 7", Policy: own}
			if subject.Policy != "" { // by the key that tasks have
				first := enqueue(t, q, paused, noteArgs{}, opts)
				subject.Policy = readTask(t, q, first).Policy
				if err := q.Delete(t.Context(), first); err != nil {
					t.Fatal(err)
				}
			}
			pauses := falldue.PauseOptions{Note: falldue.Note{Who: "ann", Why: "the shop is closed – ☂"}}
			if err := q.Pause(t.Context(), subject, pauses); err != nil {
				t.Fatal(err)
			}
			list, err := ops.New(other).Pauses(t.Context())
			if err != nil || len(list) != 1 || list[0].String() != subject.String() || list[0].Who != "ann" || list[0].Why != pauses.Why || !list[0].Until.IsZero() {
				t.Fatalf("the pauses are %+v (error %v)", list, err)
			}
			stopOne, stopOther := startWorker(t, q), startWorker(t, other)
			id := enqueue(t, q, paused, noteArgs{}, opts)
			for range 5 { // tasks that are enqueued later are done first
				waitForState(t, q, enqueue(t, q, free, noteArgs{}), falldue.StateDone)
			}
			if info := readTask(t, q, id); info.State != falldue.StateOpen || info.Fence != 0 {
				t.Errorf("while %s is paused its task is %+v", subject, info)
			}
			if err := other.Resume(t.Context(), subject, falldue.Note{Who: "bob"}); err != nil {
				t.Fatal(err)
			}
			waitForState(t, q, id, falldue.StateDone)
			if list, err := ops.New(q).Pauses(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("after the end the pauses are %+v (error %v)", list, err)
			}
			stopOne()
			stopOther()
		}
	}},
	{"a pause stops a worker that runs, which gives back what it has not started; a pause with an end ends by itself", func(t *testing.T, f *fixture) {
		q, control := f.queue(t, falldue.Config{Queues: map[string]falldue.QueueConfig{"default": {Concurrency: 2}}}), f.queueOn(t, f.open(t), falldue.Config{})
		k := falldue.NewKind[bool]("stops", falldue.KindConfig{DoneRetention: time.Hour})
		started, end := make(chan int64, 100), make(chan struct{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[bool]) error {
			started <- task.ID
			if task.Args {
				<-end
			}
			return nil
		})
		probe := falldue.NewKind[noteArgs]("probe", falldue.KindConfig{})
		probing, probed := make(chan struct{}), make(chan struct{})
		falldue.Handle(q, probe, func(ctx context.Context, _ falldue.Task[noteArgs]) error {
			close(probing)
			<-ctx.Done()
			close(probed)
			return nil
		})
		startWorker(t, q)
		running := enqueue(t, q, k, true)
		receive(t, started, "the first task to start")
		if err := control.Pause(t.Context(), falldue.Subject{Kind: "stops"}); err != nil {
			t.Fatal(err)
		}
		// A worker that has read a later change has read the pause.
		id := enqueue(t, q, probe, noteArgs{})
		receive(t, probing, "the probe to start")
		if err := control.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		receive(t, probed, "the probe to end")
		waiting := enqueue(t, q, k, false)
		close(end)
		waitForState(t, q, running, falldue.StateDone)
		if info := readTask(t, q, waiting); info.Fence != 0 || info.State != falldue.StateOpen {
			t.Errorf("the paused task is %+v", info)
		}
		until := soon(t, q, waiting, time.Second, func(until time.Time) error {
			return control.Pause(t.Context(), falldue.Subject{Kind: "stops"}, falldue.PauseOptions{Until: until})
		})
		if info := waitForState(t, q, waiting, falldue.StateDone); info.AttemptedAt.Before(until.Add(-time.Millisecond)) {
			t.Errorf("the pause until %v has ended at %v", until, info.AttemptedAt)
		}
	}},
	{"a pause or an override with an end in the past is refused, and the one in effect continues", func(t *testing.T, f *fixture) {
		q, k := f.queue(t, falldue.Config{}), falldue.NewKind[noteArgs]("paused", falldue.KindConfig{})
		mail := falldue.Subject{Kind: "paused"}
		now := readTask(t, q, enqueue(t, q, k, noteArgs{})).Now
		if err := q.Pause(t.Context(), mail, falldue.PauseOptions{Note: falldue.Note{Why: "for good"}}); err != nil {
			t.Fatal(err)
		}
		setPolicy(t, q, mail, "2 * original", ops.OverrideOptions{Note: falldue.Note{Why: "for good"}})
		for name, change := range map[string]func(until time.Time) error{
			"pause": func(until time.Time) error {
				return q.Pause(t.Context(), mail, falldue.PauseOptions{Until: until})
			},
			"override": func(until time.Time) error {
				return ops.New(q).SetPolicy(t.Context(), mail, parseOverride(t, "3 * original"), ops.OverrideOptions{Until: until})
			},
		} {
			for _, until := range []time.Time{now, now.Add(-time.Hour)} {
				want := "Until " + until.UTC().String() + " is in the past: must be after"
				if err := change(until); !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), want) {
					t.Errorf("a %s: error %v, want %q", name, err, want)
				}
			}
		}
		if list, err := ops.New(q).Pauses(t.Context()); err != nil || len(list) != 1 || list[0].Why != "for good" {
			t.Errorf("the pauses are %+v (error %v)", list, err)
		}
		if list, err := ops.New(q).Overrides(t.Context()); err != nil || len(list) != 1 || list[0].Why != "for good" {
			t.Errorf("the overrides are %+v (error %v)", list, err)
		}
	}},
	{"a pause makes a worker give back the tasks that it has claimed and not started, which use up no attempt", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{ShutdownTimeout: -1, Queues: map[string]falldue.QueueConfig{"default": {Concurrency: 1}, "other": {}}})
		control := f.queueOn(t, f.open(t), falldue.Config{})
		k := falldue.NewKind[bool]("ahead", falldue.KindConfig{})
		started, end := make(chan falldue.RunInfo, 1000), make(chan struct{})
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[bool]) error {
			started <- task.RunInfo
			if task.Args {
				select {
				case <-end:
				case <-ctx.Done():
				}
			}
			return nil
		})
		probe := falldue.NewKind[noteArgs]("probe", falldue.KindConfig{Queue: "other"})
		probing, probed := make(chan struct{}), make(chan struct{})
		falldue.Handle(q, probe, func(ctx context.Context, _ falldue.Task[noteArgs]) error {
			close(probing)
			<-ctx.Done()
			close(probed)
			return nil
		})
		startWorker(t, q)
		cancelled := enqueue(t, q, probe, noteArgs{})
		receive(t, probing, "the probe to start")
		const quick = 200 // after which the worker claims ahead
		if _, err := k.EnqueueMany(t.Context(), q, make([]bool, quick)); err != nil {
			t.Fatal(err)
		}
		for range quick {
			receive(t, started, "the quick tasks to start")
		}
		enqueue(t, q, k, true)
		receive(t, started, "the long task to start")
		waiting, err := k.EnqueueMany(t.Context(), q, make([]bool, 3))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range waiting { // a claim may skip the first ones, whose rows the enqueue still locks
			waitFor(t, q, r.ID, "claimed ahead", func(i falldue.TaskInfo) bool { return i.Fence > 0 })
		}
		if err := q.Pause(t.Context(), falldue.Subject{Kind: "ahead"}); err != nil {
			t.Fatal(err)
		}
		// A worker that has read a later change has read the pause. It reads them at once after
		// another pause of its own.
		if err := control.Cancel(t.Context(), cancelled); err != nil {
			t.Fatal(err)
		}
		if err := q.Pause(t.Context(), falldue.Subject{Key: "nobody"}); err != nil {
			t.Fatal(err)
		}
		receive(t, probed, "the probe to end")
		close(end)
		for _, r := range waiting {
			info := waitFor(t, q, r.ID, "given back", func(i falldue.TaskInfo) bool { return i.ClaimedBy == "" })
			if info.Fence == 0 || info.Attempts != 0 || info.State != falldue.StateOpen {
				t.Errorf("a task that was given back is %+v; want it claimed once, and no attempt", info)
			}
		}
		select {
		case m := <-started:
			t.Errorf("a paused task has started: %+v", m)
		default:
		}
		if err := q.Resume(t.Context(), falldue.Subject{Kind: "ahead"}); err != nil {
			t.Fatal(err)
		}
		for range waiting {
			if m := receive(t, started, "the tasks to start"); m.Attempt != 1 || m.Fence < 2 {
				t.Errorf("after the pause a task starts as attempt %d, claim %d; want 1 and 2", m.Attempt, m.Fence)
			}
		}
	}},
	{"the handler of a task that is cancelled on another worker ends within seconds, with the cause ErrCancelled", func(t *testing.T, f *fixture) {
		q, control := f.queue(t, falldue.Config{Lease: 10 * time.Minute}), f.queueOn(t, f.open(t), falldue.Config{})
		k := falldue.NewKind[noteArgs]("long", falldue.KindConfig{})
		started, ended := make(chan falldue.RunInfo, 10), make(chan error, 10)
		falldue.Handle(q, k, func(ctx context.Context, task falldue.Task[noteArgs]) error {
			started <- task.RunInfo
			if task.Fence > 1 {
				return nil
			}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil
		})
		startWorker(t, q)
		id := enqueue(t, q, k, noteArgs{})
		receive(t, started, "the task to start")
		if err := control.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		cause := receive(t, ended, "the handler's context to end")
		if !errors.Is(cause, falldue.ErrCancelled) || !errors.Is(cause, falldue.ErrLeaseLost) {
			t.Errorf("the cause is %v, want ErrCancelled", cause)
		}
		if info := readTask(t, q, id); info.State != falldue.StateCancelled || info.ClaimedBy != "" {
			t.Errorf("the cancelled task is %+v", info)
		}
		// The change is still read, and concerns no later run.
		if err := control.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if again := receive(t, started, "the task to start again"); again.Fence != 3 {
			t.Errorf("the second run is %+v", again)
		}
		waitForDeletion(t, q, id)
	}},
	{"a cancel and a settle at the same moment have one winner", func(t *testing.T, f *fixture) {
		q, control := f.queue(t, falldue.Config{}), f.queueOn(t, f.open(t), falldue.Config{})
		k := falldue.NewKind[noteArgs]("races", falldue.KindConfig{DoneRetention: time.Hour})
		started, end := make(chan int64), make(chan struct{})
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			started <- task.ID
			<-end
			return nil
		})
		startWorker(t, q)
		for range 10 {
			enqueue(t, q, k, noteArgs{})
			id := receive(t, started, "a task to start")
			cancelled := make(chan error)
			go func() { cancelled <- control.Cancel(t.Context(), id) }()
			end <- struct{}{}
			err := receive(t, cancelled, "the cancel to end")
			if err != nil && !errors.Is(err, falldue.ErrWrongState) {
				t.Fatal(err)
			}
			want := falldue.StateCancelled
			if err != nil {
				want = falldue.StateDone
			}
			if info := readTask(t, q, id); info.State != want {
				t.Errorf("after a cancel whose error was %v the task is %s", err, info.State)
			}
		}
	}},
}

var twoQueues = map[string]falldue.QueueConfig{"default": {}, "other": {}}
