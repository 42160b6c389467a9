package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
)

// summary is the result of the day.
type summary struct {
	orders, shipped     int // rows of the shop's own table
	done, dead, waiting int // tasks
	retries             int
	lateness            []time.Duration // of all attempts, sorted
	deadTasks           []deadTask
}

// deadTask is a dead task with its recorded attempts.
type deadTask struct {
	task     falldue.TaskInfo
	attempts []falldue.Attempt
}

// summarize reads the tasks a last time, and prints and returns the summary.
func (w *watcher) summarize(db *sqlx.DB, out io.Writer) (s summary, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	rows, err := w.refresh(ctx)
	if err != nil {
		return s, err
	}
	for _, r := range rows {
		s.retries += max(r.Attempts-1, 0)
		switch r.State {
		case falldue.StateDone:
			s.done++
		case falldue.StateDead:
			s.dead++
			attempts, err := w.queue.Attempts(ctx, r.ID)
			if err != nil {
				return s, err
			}
			s.deadTasks = append(s.deadTasks, deadTask{r.TaskInfo, attempts})
		default:
			s.waiting++
		}
	}
	s.lateness = slices.Sorted(slices.Values(w.lateness))
	const count = `select count(*), count(case when status = 'shipped' then 1 end) from quickstart_orders`
	if err := db.QueryRowContext(ctx, count).Scan(&s.orders, &s.shipped); err != nil {
		return s, err
	}
	s.print(out)
	return s, nil
}

func (s summary) print(out io.Writer) {
	fmt.Fprintf(out, "\nOrders   %d, %d of them shipped\n", s.orders, s.shipped)
	fmt.Fprintf(out, "Tasks    %d done, %d dead, %d waiting, after %d retries\n", s.done, s.dead, s.waiting, s.retries)
	if n := len(s.lateness); n > 0 {
		fmt.Fprintf(out, "Lag      from due to running: median %s, maximum %s of %d\n", formatDuration(s.lateness[n/2]), formatDuration(s.lateness[n-1]), n)
	}
	for _, g := range s.deadTasks {
		fmt.Fprintf(out, "Dead     task %d, %s %s\n", g.task.ID, g.task.Kind, g.task.Payload)
		fmt.Fprintf(out, "         last error: %s\n", g.task.LastError)
		for _, a := range g.attempts {
			fmt.Fprintf(out, "         attempt %d  %s  %-7s  %s\n", a.Attempt, a.FinishedAt.Format("15:04:05.000"), a.Outcome, a.Error)
		}
	}
}
