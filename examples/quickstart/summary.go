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

// summary is how the day went.
type summary struct {
	orders, shipped     int // rows of the shop's own table
	done, dead, waiting int // tasks
	retries             int
	lates               []time.Duration // of all attempts, sorted
	graves              []grave
}

// grave is a dead task and all that went wrong with it.
type grave struct {
	task     falldue.TaskInfo
	attempts []falldue.Attempt
}

// summarize looks a last time, and writes and returns how the day went.
func (w *watcher) summarize(db *sqlx.DB, out io.Writer) (s summary, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	rows, err := w.look(ctx)
	if err != nil {
		return s, err
	}
	for _, r := range rows {
		s.retries += max(r.Attempts-1, 0)
		switch r.State {
		case falldue.Done:
			s.done++
		case falldue.Dead:
			s.dead++
			attempts, err := w.queue.Attempts(ctx, r.ID)
			if err != nil {
				return s, err
			}
			s.graves = append(s.graves, grave{r.TaskInfo, attempts})
		default:
			s.waiting++
		}
	}
	s.lates = slices.Sorted(slices.Values(w.lates))
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
	if n := len(s.lates); n > 0 {
		fmt.Fprintf(out, "Lag      between falling due and running: median %s, worst %s of %d\n", short(s.lates[n/2]), short(s.lates[n-1]), n)
	}
	for _, g := range s.graves {
		fmt.Fprintf(out, "Dead     task %d, %s %s\n", g.task.ID, g.task.Kind, g.task.Payload)
		fmt.Fprintf(out, "         last error: %s\n", g.task.LastError)
		for _, a := range g.attempts {
			fmt.Fprintf(out, "         attempt %d  %s  %-7s  %s\n", a.Attempt, a.FinishedAt.Format("15:04:05.000"), a.Outcome, a.Error)
		}
	}
}
