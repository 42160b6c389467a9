package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestWhyNamesTheTimeOfASequencesHead: a task behind one that has failed names when that one is due.
func TestWhyNamesTheTimeOfASequencesHead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i := b.ops(nil)
		fail := func(context.Context, falldue.Task[json.RawMessage]) error { return errors.New("no") }
		defer b.start(falldue.Config{}, handle(falldue.KindConfig{Policy: backoff.Constant(time.Hour), Limits: []falldue.Limit{falldue.InOrder()}}, fail, "event"))()
		b.workers(i, "the worker", announced(1))
		head := b.enqueue("event", falldue.EnqueueOptions{Key: "seven"})
		b.tried(head)
		w := b.why(i, b.enqueue("event", falldue.EnqueueOptions{Key: "seven"}))
		c := onlyReason[ops.WhySequence](t, w)
		if c.Next != head || !b.near(c.NextDue, w.Task.Now.Add(time.Hour)) || !strings.Contains(c.Describe(w.Task), "is waiting: task ") {
			t.Errorf("%+v: %s", c, c.Describe(w.Task))
		}
		if err := b.queue.Pause(t.Context(), falldue.Subject{Kind: "event"}, falldue.PauseOptions{}); err != nil {
			t.Fatal(err)
		}
		if c := conditionOf[ops.WhySequence](t, b.why(i, w.Task.ID)); !c.NextPaused {
			t.Errorf("while it is paused: %+v", c)
		}
	})
}

// TestRampBelowTheNaturalRate: where more tasks fall due without a ramp than it allows, the steps and the
// error name that reason.
func TestRampBelowTheNaturalRate(t *testing.T) {
	t.Parallel()
	b := newBacklog(t, testdb.SQLite)
	for minute := range 20 {
		b.add("mail", 30, 1, time.Duration(minute)*time.Minute+30*time.Second)
	}
	p, err := b.ops(map[string]backoff.Policy{"mail": backoff.Constant(time.Hour)}).Profile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	steps, err := p.Ramp("mail", backoff.Constant(time.Minute), 10)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(steps, func(s ops.Step) bool { return s.Due > 10 }) {
		t.Errorf("no step names the natural rate: %+v", steps)
	}
	steps, err = p.Ramp("mail", backoff.Constant(time.Minute), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.Due > 100 {
			t.Errorf("with room: %+v", s)
		}
	}
}

// TestWhyOfASequenceWithoutAHead: a kind gets an order when tasks of it have failed already. None of them has begun the
// sequence, and the first one is next.
func TestWhyOfASequenceWithoutAHead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		b.add("mail", 2, 1, time.Hour, falldue.EnqueueOptions{Key: "a"})
		k := falldue.NewKind[string]("mail", falldue.KindConfig{Policy: backoff.Constant(time.Minute), Limits: []falldue.Limit{falldue.InOrder()}})
		falldue.Handle(b.queue, k, func(context.Context, falldue.Task[string]) error { return nil })
		page, err := b.ops(nil).Tasks(t.Context(), ops.Filter{Kind: "mail"})
		if err != nil || len(page.Tasks) != 2 {
			t.Fatal(page, err)
		}
		for i, task := range page.Tasks {
			why, err := b.ops(nil).Why(t.Context(), task.ID)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(why.Conditions, func(c ops.Condition) bool { return c.Name() == "sequence" })
			if at < 0 || why.Conditions[at].Holds() != (i == 0) {
				t.Errorf("task %d: the sequence is not one of %+v, or holds for another than the first task", i, why.Conditions)
			}
		}
	})
}
