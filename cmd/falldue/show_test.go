package main

import (
	"context"
	"errors"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/steps"
)

// TestShowHasTheProgress: of a task that failed after it had reported some, and its steps, and the stack of
// one that panicked.
func TestShowHasTheProgress(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.run("enqueue", "import")
		s.run("enqueue", "charge")
		s.work(func(q *falldue.Queue) {
			falldue.Handle(q, falldue.NewKind[struct{}]("import", falldue.KindConfig{}), func(ctx context.Context, task falldue.Task[struct{}]) error {
				task.Progress(0.4, "line 400")
				if _, err := steps.Do(ctx, task, "fetch", func(context.Context) (int, error) { return 400, nil }); err != nil {
					return err
				}
				return errors.New("line 401 is empty")
			})
			falldue.Handle(q, falldue.NewKind[struct{}]("charge", falldue.KindConfig{}), func(context.Context, falldue.Task[struct{}]) error {
				panic("no card")
			})
		}, func(q *falldue.Queue) bool {
			first, err := q.Task(t.Context(), 1)
			second, other := q.Task(t.Context(), 2)
			return err == nil && other == nil && first.LastError != "" && second.LastError != ""
		})
		contains(t, s.run("show", "1"), `(?m)^progress +40 %, line 400, \S+ ago$`, `(?m) line 401 is empty$`, `(?m)^1 +fetch +done +0 +\S+ \S+ +400$`)
		contains(t, s.run("show", "1", "--json"), `"progress":{"fraction":0.4,"message":"line 400","fence":1,`, `"steps":\[{"number":1,"name":"fetch","done":true,"crashes":0,"started_at":"\S+","updated_at":"\S+","result":400}\]`)
		contains(t, s.run("show", "2", "--stacks"), `(?m) panic: no card$`, `(?m)^stack of attempt 1:\n  goroutine `)
	})
}

// TestShowRefusesOtherNumbersOfFutureAttempts: even if the policy is not known, and the number is of no use.
func TestShowRefusesOtherNumbersOfFutureAttempts(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"-1", "0", "1000001", "x", "1.5", "99999999999999999999"} {
		want := `--future "` + value + `": must be a whole number from 1 to 1,000,000`
		if _, err := execute(t, "show", "1", "--future", value); err == nil || err.Error() != want || exitStatus(err) != exitUsage {
			t.Errorf("error %v, status %d; want %s", err, exitStatus(err), want)
		}
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.run("enqueue", "mail")
		s.run("show", "1", "--future", "1")
		s.run("show", "1", "--future", "1000000")
	})
}
