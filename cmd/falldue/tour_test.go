package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// tourFiles are the documents whose commands run on a database.
var tourFiles = []string{"command-line.md", "incident.md"}

// TestTourShowsTheOutputOfCommands runs the commands of these documents, each on a database of
// its own, and compares what they print with what is shown, but for times, durations, charts
// and the names of workers. With -update it writes what they print.
func TestTourShowsTheOutputOfCommands(t *testing.T) {
	for _, name := range tourFiles {
		t.Run(name, func(t *testing.T) { showsTheOutput(t, name) })
	}
}

func showsTheOutput(t *testing.T, name string) {
	t.Helper()
	s := openShop(t, testdb.SQLite)
	s.fill()
	here := time.Local
	time.Local = time.UTC // in which the documents show times
	t.Cleanup(func() { time.Local = here })
	if name == "incident.md" {
		s.incident()
	} else {
		s.serve("charge", "invoice.send", "report")
	}
	t.Setenv(dsnVariable, s.dsn)
	file := filepath.Join("..", "..", "docs", name)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end, prompt = "```console\n", "```\n", "$ falldue "
	var written strings.Builder
	for i, part := range strings.Split(string(text), begin) {
		if i == 0 {
			written.WriteString(part)
			continue
		}
		block, rest, _ := strings.Cut(part, end)
		written.WriteString(begin)
		for _, command := range strings.Split("\n"+block, "\n"+prompt)[1:] {
			line, want, _ := strings.Cut(command, "\n")
			if !*update { // at 09:00 the hold would end while the tasks wait, if it is 08:30
				later := time.Now().UTC().Add(15 * time.Hour).Format("15:04")
				line = strings.Replace(line, "until 09:00", "until "+later, 1)
			}
			want = strings.TrimSuffix(want, "\n") + "\n"
			out, err := execute(t, splitArgs(line)...)
			if status := exitStatus(err); status != 0 && status != exitAttention && status != exitWaits {
				t.Errorf("%s ended with status %d: %v", line, status, err)
			}
			if got := timeless(out); got != timeless(want) && !*update {
				t.Errorf("%s%s prints\n%sbut %s shows\n%s", prompt, line, out, name, want)
			}
			written.WriteString(prompt + line + "\n" + out)
		}
		written.WriteString(end + rest)
	}
	if *update {
		if err := os.WriteFile(file, []byte(written.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// fill stores the tasks of a shop: a charge that failed, a dead mail, a report for later,
// thumbnails that nobody makes, and invoices that failed in the last hour.
func (s shop) fill() {
	s.t.Helper()
	s.run("enqueue", "charge", `{"order": 42}`, "--key", "customer:7")
	s.run("enqueue", "mail.welcome", `{"to": "x@example.org"}`)
	s.run("enqueue", "report", `{"month": "2026-11"}`, "--delay", "10h", "--own-policy", "delay 10m; attempts 4")
	s.work(func(q *falldue.Queue) {
		falldue.Handle(q, falldue.NewKind[struct{}]("charge", falldue.KindConfig{Policy: backoff.Arctan(12 * time.Hour)}), func(context.Context, falldue.Task[struct{}]) error {
			return errors.New("the bank is closed")
		})
		falldue.Handle(q, falldue.NewKind[struct{}]("mail.welcome", falldue.KindConfig{}), func(context.Context, falldue.Task[struct{}]) error {
			return falldue.Discard(errors.New("no such address"))
		})
	}, func(q *falldue.Queue) bool {
		charge, err := q.Task(s.t.Context(), 1)
		mail, other := q.Task(s.t.Context(), 2)
		return err == nil && other == nil && charge.LastError != "" && mail.State == falldue.StateDead
	})
	for i := range 30 {
		s.failed("invoice.send", 20, time.Duration(2*i+1)*time.Minute) // a minute from what the document asks for
	}
	for range 12 {
		s.run("enqueue", "thumbnail", "--queue", "images")
	}
	s.age(5*time.Minute+30*time.Second, "kind = 'thumbnail'")
	s.schedule(periodic.Schedule{Name: "nightly", Spec: "30 2 * * *", Zone: "Europe/Berlin", Task: falldue.NewKind[struct{}]("report", falldue.KindConfig{}).Params(struct{}{})})
}

// schedule stores a schedule.
func (s shop) schedule(one periodic.Schedule) {
	s.t.Helper()
	q, err := falldue.New(s.db, falldue.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	scheduler, err := periodic.New(q, one)
	if err == nil {
		_, err = scheduler.Tick(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// incident makes the invoices of the shop overdue: their provider is slow, and the handlers of
// the worker that runs are busy until the test ends.
func (s shop) incident() {
	s.t.Helper()
	const later = 2 * time.Hour
	s.age(-later, "kind = 'invoice.send'") // none is due until the handlers are busy
	s.db.MustExec(`insert into falldue_attempts (task_id, fence, attempt, outcome, worker, finished_at, duration_us, error)
select id, 1, 1, 'retried', 'vm:4121/33afc8d7cfc7', updated_at, 10000000, 'the provider did not answer within 10s' from falldue_tasks where kind = 'invoice.send'`)
	const handlers = 2
	busy, over := make(chan struct{}, handlers), make(chan struct{})
	for range handlers {
		s.run("enqueue", "statement.send")
	}
	s.serveWith(falldue.Config{Concurrency: handlers}, func(q *falldue.Queue) {
		falldue.Handle(q, falldue.NewKind[struct{}]("statement.send", falldue.KindConfig{}), func(context.Context, falldue.Task[struct{}]) error {
			busy <- struct{}{}
			<-over
			return nil
		})
		falldue.Handle(q, falldue.NewKind[struct{}]("invoice.send", falldue.KindConfig{Policy: backoff.Constant(10 * time.Minute)}), func(context.Context, falldue.Task[struct{}]) error {
			return errors.New("the provider did not answer within 10s")
		})
	}, func() { close(over) })
	for range handlers {
		<-busy
	}
	s.db.MustExec(`update falldue_workers set running = 2, recent = '{"running":{"default":2}}'`) // as the worker does within 15 seconds
	s.age(later+10*time.Minute+30*time.Second, "kind = 'invoice.send'")
	s.db.MustExec("update falldue_attempts set finished_at = (select updated_at from falldue_tasks where id = task_id) where error like 'the provider %'")
	s.db.MustExec("update falldue_tasks set last_error = 'the provider did not answer within 10s' where kind = 'invoice.send'")
}

// serve runs a worker that handles kinds until the test ends.
func (s shop) serve(kinds ...string) {
	s.t.Helper()
	policies := map[string]backoff.Policy{"charge": backoff.Arctan(12 * time.Hour), "invoice.send": backoff.Constant(2 * time.Hour)}
	s.serveWith(falldue.Config{}, func(q *falldue.Queue) {
		for _, kind := range kinds {
			falldue.Handle(q, falldue.NewKind[struct{}](kind, falldue.KindConfig{Policy: policies[kind]}), func(context.Context, falldue.Task[struct{}]) error { return nil })
		}
	}, func() {})
}

// serveWith runs a worker until the test ends, and then calls end before it waits for the
// handlers.
func (s shop) serveWith(c falldue.Config, handle func(*falldue.Queue), end func()) {
	s.t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	q, err := falldue.New(s.db, c)
	if err != nil {
		s.t.Fatal(err)
	}
	handle(q)
	before := s.workers()
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		end()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	for s.workers() == before { // until it has announced itself
		runtime.Gosched()
	}
}

// workers returns how many workers have announced themselves.
func (s shop) workers() int {
	s.t.Helper()
	q, err := falldue.New(s.db, falldue.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := ops.New(q).Workers(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return len(list)
}

var (
	plot  = regexp.MustCompile(`(?m)^.*[┤┼┬╰╭].*\n|^ +([0-9.]+(ms|s|m|h|d)[0-9ms]* *)+\n|^ +[a-z: ]*due in [0-9a-z]+\n`)
	when  = regexp.MustCompile(`(\d{4}-\d\d-\d\d )?\b\d\d:\d\d:\d\d\b`)
	span  = regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s|m|h|d)(\d+[ms])?(\d+s)?\b( – \d+(\.\d+)?(ms|s|m|h|d)(\d+[ms])?)?`)
	who   = regexp.MustCompile(`\S+:\d+/[0-9a-f]{12}`)
	since = regexp.MustCompile(`is SPAN (ahead of|behind)`)
	pages = regexp.MustCompile(`\d+ of \d+ pages|sqlite [0-9.]+|log takes [0-9.]+ \w+|\d+ steps|\b[01] of 1\b`) // and the workers that have applied an override
	share = regexp.MustCompile(`(?m)^ *SPAN +\d+ +delay.*\n`)
	space = regexp.MustCompile(` +`)
)

// timeless returns an output without what differs from run to run.
func timeless(out string) string {
	out = plot.ReplaceAllString(out, "")
	out = when.ReplaceAllString(out, "TIME")
	out = span.ReplaceAllString(out, "SPAN")
	out = who.ReplaceAllString(out, "WORKER")
	out = since.ReplaceAllString(out, "is SPAN beside")
	out = share.ReplaceAllString(out, "")
	out = pages.ReplaceAllString(out, "PAGES")
	return space.ReplaceAllString(out, " ")
}
