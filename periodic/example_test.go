package periodic_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/periodic"
)

// SendReport sends the report of a shop.
var SendReport = falldue.NewKind[ReportArgs]("report.send", falldue.KindConfig{})

// ReportArgs are the arguments of a report.
type ReportArgs struct {
	Shop string `json:"shop"`
}

// openQueue returns a queue on a new SQLite database.
func openQueue() (q *falldue.Queue, end func()) {
	folder, err := os.MkdirTemp("", "periodic-")
	if err != nil {
		log.Panic(err)
	}
	db := sqlx.MustConnect("sqlite", "file:"+filepath.Join(folder, "app.db")+"?_pragma=journal_mode(wal)&_txlock=immediate")
	if q, err = falldue.New(db, falldue.Config{}); err == nil {
		err = q.Migrate(context.Background())
	}
	if err != nil {
		log.Panic(err)
	}
	return q, func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
}

// A worker that enqueues the tasks of schedules as well. Any number of processes may run this.
func ExampleScheduler_RunWorker() {
	q, end := openQueue()
	defer end()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	falldue.Handle(q, SendReport, func(_ context.Context, t falldue.Task[ReportArgs]) error {
		fmt.Println("the report of", t.Args.Shop)
		stop() // for the example; a service goes on
		return nil
	})
	schedules, err := periodic.New(q,
		periodic.Schedule{Name: "nightly", Spec: "30 2 * * *", Zone: "Europe/Berlin", Task: SendReport.Params(ReportArgs{"Berlin"})},
		periodic.Schedule{Name: "often", Spec: "@every 1s", NoOverlap: true, Task: SendReport.Params(ReportArgs{"Oslo"})})
	if err != nil {
		log.Panic(err)
	}
	if err := schedules.RunWorker(ctx); err != nil {
		log.Panic(err)
	}
	// Output: the report of Oslo
}

// A report about the day before each tick.
func ExampleSchedule_taskAt() {
	sendDay := falldue.NewKind[string]("day.send", falldue.KindConfig{})
	q, end := openQueue()
	defer end()
	yesterday := periodic.Schedule{Name: "yesterday", Spec: "30 2 * * *", Zone: "Europe/Berlin", TaskAt: func(tick time.Time) falldue.EnqueueParams {
		return sendDay.Params(tick.AddDate(0, 0, -1).Format(time.DateOnly))
	}}
	schedules, err := periodic.New(q, yesterday)
	if err != nil {
		log.Panic(err)
	}
	if _, err := schedules.Tick(context.Background()); err != nil { // Run does this at each tick
		log.Panic(err)
	}
	list, err := periodic.List(context.Background(), q)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(list[0].Kind, list[0].Next.In(time.UTC).Minute())
	// Output: day.send 30
}

// What other processes and people do with schedules.
func ExampleList() {
	q, end := openQueue()
	defer end()
	ctx := context.Background()
	schedules, err := periodic.New(q, periodic.Schedule{Name: "nightly", Spec: "@daily", Task: SendReport.Params(ReportArgs{"Oslo"})})
	if err != nil {
		log.Panic(err)
	}
	if _, err := schedules.Tick(ctx); err != nil { // stores the schedule; Run does, too
		log.Panic(err)
	}

	if err := periodic.Pause(ctx, q, "nightly", falldue.Note{Who: "ada", Why: "the data are incomplete"}); err != nil {
		log.Panic(err)
	}
	task, err := periodic.Trigger(ctx, q, "nightly")
	if err != nil {
		log.Panic(err)
	}
	list, err := periodic.List(ctx, q)
	if err != nil {
		log.Panic(err)
	}
	for _, s := range list {
		fmt.Println(s.Name, s.Spec, s.Zone, "last task:", s.LastTask == task)
		fmt.Println("paused by", s.PausedBy, "since", s.Now.Sub(s.PausedAt).Round(time.Minute), "ago:", s.PausedWhy)
	}
	// Output:
	// nightly @daily UTC last task: true
	// paused by ada since 0s ago: the data are incomplete
}

// A schedule continues at its next tick.
func ExampleResume() {
	q, end := openQueue()
	defer end()
	ctx := context.Background()
	schedules, err := periodic.New(q, periodic.Schedule{Name: "nightly", Spec: "@daily", Task: SendReport.Params(ReportArgs{"Oslo"})})
	if err != nil {
		log.Panic(err)
	}
	if _, err := schedules.Tick(ctx); err != nil { // stores the schedule; Run does, too
		log.Panic(err)
	}
	if err := periodic.Pause(ctx, q, "nightly"); err != nil {
		log.Panic(err)
	}
	if err := periodic.Resume(ctx, q, "nightly"); err != nil {
		log.Panic(err)
	}
	list, err := periodic.List(ctx, q)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("paused:", list[0].Paused, "next tick to come:", list[0].Next.After(list[0].Now))
	// Output: paused: false next tick to come: true
}

// A schedule that is no longer in the code of any process is deleted.
func ExampleRemove() {
	q, end := openQueue()
	defer end()
	ctx := context.Background()
	before, err := periodic.New(q, periodic.Schedule{Name: "nightly", Spec: "@daily", Task: SendReport.Params(ReportArgs{"Oslo"})})
	if err != nil {
		log.Panic(err)
	}
	if _, err := before.Tick(ctx); err != nil { // by the release before
		log.Panic(err)
	}

	if err := periodic.Remove(ctx, q, "nightly"); err != nil {
		log.Panic(err)
	}
	err = periodic.Remove(ctx, q, "nightly")
	fmt.Println(errors.Is(err, falldue.ErrNotFound), err)
	// Output: true falldue: no schedule "nightly"
}

// The clocks of New York skip the hour from 2 to 3, and repeat that from 1 to 2.
func ExampleSpec_Next() {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		log.Panic(err)
	}
	for _, c := range []struct {
		spec string
		from time.Time
	}{
		{"30 2 * * *", time.Date(2026, time.March, 8, 0, 0, 0, 0, zone)},
		{"30 1 * * *", time.Date(2026, time.November, 1, 0, 0, 0, 0, zone)},
	} {
		spec, err := periodic.Parse(c.spec, "America/New_York")
		if err != nil {
			log.Panic(err)
		}
		first := spec.Next(c.from, c.from)
		second := spec.Next(c.from, first)
		fmt.Println(first.Format(time.DateTime+" MST"), "then", second.Format(time.DateTime+" MST"))
	}
	// Output:
	// 2026-03-08 03:00:00 EDT then 2026-03-09 02:30:00 EDT
	// 2026-11-01 01:30:00 EDT then 2026-11-02 01:30:00 EST
}
