package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/worker"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// story is a shop whose partner has been down for 40 minutes: 20,000 webhooks wait for a retry, 340 are
// dead, and all else is well. Names, numbers and texts are long and hostile here and there.
type story struct {
	url   string
	queue *falldue.Queue
	db    *sqlx.DB
	// waits is a webhook that waits for a retry, dead one that is dead, and publishes a task of a flow.
	waits, dead, publishes int64
	began                  time.Time // when the workers announced themselves first
}

const (
	storyWaiting, storyDead = 20_000, 340
	storyDown               = 40 * time.Minute
	longName                = "reports.quarterly-reconciliation-of-all-ledgers-with-the-external-auditor"
	hostile                 = `</script><img src=x onerror=alert(1)>`

	thumbnails, mails, failing = 2_400, 600, 1_900 // runs of all workers a minute
	announced                  = 15 * time.Second  // before the story begins
)

// perWorker returns the share of one of the three workers.
func perWorker(runs int64) int64 { return runs / 3 }

type args struct {
	Order    int    `json:"order"`
	Customer string `json:"customer"`
	Note     string `json:"note,omitempty"`
}

// newStory tells the story in a database, and serves its page under a path.
func newStory(t *testing.T, o dash.Options) *story {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "story.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	q, err := falldue.New(db, falldue.Config{Logger: slog.New(slog.DiscardHandler), Release: "2026.11.3",
		Queues: map[string]falldue.QueueConfig{"default": {Concurrency: 24}, "webhooks": {Concurrency: 40, Limits: []falldue.Limit{falldue.AtMost(60)}}, "reports": {Concurrency: 4}}})
	must(t, err)
	must(t, q.Migrate(t.Context()))
	s := &story{queue: q, db: db}
	s.handle()
	s.enqueue(t)
	s.announce(t)
	s.history(t)
	s.change(t)
	o.Logger = slog.New(slog.DiscardHandler)
	h, err := dash.New(q, o)
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle("/ops/falldue/", http.StripPrefix("/ops/falldue", h))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.Close()
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s.url = server.URL + "/ops/falldue/"
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kinds are the kinds of the shop.
var kinds = map[string]falldue.KindConfig{
	"webhook.send":   {Queue: "webhooks", Policy: backoff.ParseDeferred("min(15s * 2^n, 1h); jitter 0.2 * delay; attempts 12"), Limits: []falldue.Limit{falldue.AtMost(4).PerKey()}},
	"mail.send":      {Limits: []falldue.Limit{falldue.Rate(600, time.Minute)}},
	"card.charge":    {Policy: backoff.ParseDeferred("zizq; attempts 25"), Limits: []falldue.Limit{falldue.InOrder()}},
	"page.render":    {},
	"book.publish":   {},
	longName:         {Queue: "reports"},
	"thumbnail.make": {},
}

func (s *story) handle() {
	for name, cfg := range kinds {
		falldue.Handle(s.queue, falldue.NewKind[args](name, cfg), func(context.Context, falldue.Task[args]) error { return errors.New("not in this story") })
	}
}

func kind(name string) falldue.Kind[args] { return falldue.NewKind[args](name, kinds[name]) }

func (s *story) enqueue(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var list []args
	for i := range storyWaiting + storyDead {
		list = append(list, args{Order: 810_000 + i, Customer: fmt.Sprintf("customer:%d", i%97)})
	}
	list[storyWaiting].Note = hostile
	receipts, err := kind("webhook.send").EnqueueMany(ctx, s.queue, list, falldue.EnqueueOptions{Key: "customer:42", Timeout: 90 * time.Second, Metadata: map[string]string{"trace": "7f3a90c1d2"}})
	must(t, err)
	first := receipts[0].ID
	s.waits, s.dead = first+7, first+storyWaiting
	const failure = "POST https://api.partner.example/v2/orders: 503 Service Unavailable (request "
	now := `cast(unixepoch('subsec') * 1000000 as integer)`
	s.exec(t, `update falldue_tasks set attempts = 1 + (id % 6), created_at = `+now+` - 2400000000 + (id - ?) * 100000, first_attempted_at = `+now+` - 2390000000, attempted_at = `+now+` - 1000000 * (id % 350),
		updated_at = `+now+` - 1000000 * (id % 350), last_error = ? || (id * 7919) || ')' where kind = 'webhook.send'`, first, failure)
	s.exec(t, `update falldue_tasks set state = 'dead', attempts = 12, last_error = case when id % 3 = 0 then '410 Gone: the subscription "' || id || '" was cancelled by its owner' else last_error end where id >= ?`, s.dead)
	s.exec(t, `update falldue_tasks set attempts = 4, updated_at = `+now+` - 20000000 where id = ?`, s.waits)
	s.exec(t, `update falldue_tasks set last_error = ? where id = ?`, hostile, s.dead)
	for attempt, ago := range []int{2300, 2270, 2200, 20} {
		s.exec(t, `insert into falldue_attempts (task_id, fence, attempt, outcome, worker, finished_at, duration_us, error, stack) values (?, ?, ?, 'retried', 'worker-a4f1', `+now+` - ?, 30012345, ?, ?)`,
			s.waits, attempt+1, attempt+1, ago*1_000_000, failure+fmt.Sprint(attempt*9973)+")", "goroutine 71 [running]:\nshop.(*partner).post(0xc000123)\n\t/src/shop/partner.go:88 +0x1d4")
	}
	for i, id := range []int64{first + 11, first + 12, first + 13, first + 14, first + 15, first + 16} { // which run
		s.exec(t, `update falldue_tasks set claimed_by = 'worker-a4f1', fence = fence + 1, updated_at = `+now+` + 600000000 where id = ?`, id) // longer than a slow machine takes for all pages
		s.exec(t, `insert into falldue_permits (name, n, task_id, fence) select ?, ?, id, fence from falldue_tasks where id = ?`, fmt.Sprintf("kind webhook.send running of customer:%d", 42+i/4), i%4, id)
	}
	for name, n := range map[string]int{"mail.send": 60, "thumbnail.make": 1200, "card.charge": 25, longName: 2} {
		_, err := kind(name).EnqueueMany(ctx, s.queue, make([]args, n), falldue.EnqueueOptions{Key: "customer:7", Delay: time.Hour})
		must(t, err)
	}
	f := flow.Batch()
	cover := f.Add(kind("thumbnail.make").Params(args{}))
	publish := []flow.Node{}
	for range 3 {
		var chapter []flow.Node
		for i := range 12 {
			chapter = append(chapter, f.Add(kind("page.render").Params(args{Order: i}), flow.After(cover)))
		}
		publish = append(publish, f.Add(kind("book.publish").Params(args{}), flow.After(chapter...)))
	}
	f.Add(kind(longName).Params(args{}), flow.After(publish...), flow.RunAnyway())
	ids, err := f.Enqueue(ctx, s.queue)
	must(t, err)
	s.publishes = ids[13]
	s.exec(t, `update falldue_tasks set state = 'done' where id = ?`, ids[0])
	s.exec(t, `update falldue_edges set outcome = 'done' where task_id = ?`, ids[0])
	s.exec(t, `update falldue_tasks set state = 'open', updated_at = `+now+` + 600000000 where id between ? and ?`, ids[1], ids[12])
	s.exec(t, `update falldue_tasks set state = 'dead', last_error = 'font not found' where id = ?`, ids[5])
}

func (s *story) exec(t *testing.T, query string, values ...any) {
	t.Helper()
	_, err := s.db.Exec(query, values...)
	must(t, err)
}

// announce announces three workers, as they do every 15 seconds: two of the release before, with what they have run of late.
func (s *story) announce(t *testing.T) {
	t.Helper()
	info := hooks.Of[interface{ WorkerConfig() worker.Config }](s.queue).WorkerConfig().Info
	now := time.Now().UnixMicro()
	overrides, err := ops.New(s.queue).Overrides(t.Context())
	must(t, err)
	applied := map[string]int64{}
	for _, o := range overrides {
		applied[o.String()] = o.At.UnixMicro()
	}
	first, since := s.began.IsZero(), time.Duration(0)
	if !first {
		since = time.Since(s.began)
	} else {
		s.began = time.Now().Add(-announced)
	}
	for i, release := range []string{"2026.11.3", "2026.11.3", "2026.11.2"} {
		if info.Applied = applied; i == 2 { // which has missed the change
			info.Applied = nil
		}
		info.Host, info.PID, info.Release = fmt.Sprintf("shop-worker-%d.eu-central.internal", i+1), 4121+i, release
		recent := store.Recent{Running: map[string]int{"default": 9, "webhooks": 31 - i}, Over: 5 * time.Minute, LatestOver: time.Minute,
			Kinds:  map[string]store.Runs{"webhook.send": {Failed: 5 * perWorker(failing)}, "mail.send": {Done: 5 * perWorker(mails), Failed: 2}, "thumbnail.make": {Done: 5 * perWorker(thumbnails)}},
			Latest: map[string]store.Runs{"webhook.send": {Failed: perWorker(failing)}, "mail.send": {Done: perWorker(mails)}, "thumbnail.make": {Done: perWorker(thumbnails)}}}
		for k := range 12 {
			recent.Longest = append(recent.Longest, store.RunningTask{ID: s.waits + int64(100*i+k+1), Kind: "webhook.send", Queue: "webhooks", Attempt: 2 + k%3, Since: now - int64(29-k)*1_000_000})
		}
		must(t, hooks.StoreOf(s.queue).Announce(t.Context(), store.Worker{ID: fmt.Sprintf("worker-a4f%d", i+1), Running: 40 - i, Done: 1_234_567 + int64(since.Minutes()*float64(perWorker(mails+thumbnails))), Failed: 98_765 + int64(since.Minutes()*float64(perWorker(failing)))}, recent, info))
	}
	if first {
		s.exec(t, `update falldue_workers set started_at = started_at - 93784000000, seen_at = seen_at - ?`, announced.Microseconds())
	}
}

// history stores the last hour: webhooks failing for the last 40 minutes, and a backlog that grows.
func (s *story) history(t *testing.T) {
	t.Helper()
	table := hooks.StoreOf(s.queue)
	for minute := 1; minute <= 60; minute++ {
		back := time.Duration(minute) * time.Minute
		wave := int64(40 * math.Sin(float64(minute)/5))
		run := store.Distribution{}
		rows := []store.Sums{
			{Queue: "default", Kind: "thumbnail.make", Started: thumbnails + wave, Done: thumbnails + wave, Run: run},
			{Queue: "default", Kind: "mail.send", Started: mails + wave, Done: mails + wave, Failed: 1},
			{Queue: "webhooks", Kind: "webhook.send", Started: 900, Done: 900},
		}
		if back < storyDown {
			rows[2].Done, rows[2].Failed, rows[2].Dead = 0, failing+3*wave, 8
			rows[2].Waiting, rows[2].OldestDue = store.NotNull(storyWaiting-int64(minute)*500), store.NotNull((storyDown-back).Microseconds()/7)
		} else {
			rows[2].Waiting, rows[2].OldestDue = store.NotNull[int64](30), store.NotNull((2 * time.Second).Microseconds())
		}
		must(t, table.AddMinutes(t.Context(), rows, back))
	}
}

// change pauses, sets a policy, defines schedules and stores deeds.
func (s *story) change(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	note := falldue.Note{Who: "grace.hopper@shop.example", Why: "the auditor asked us to wait until the ledgers are closed (INC-4711)"}
	must(t, s.queue.Pause(ctx, falldue.Subject{Kind: longName}, falldue.PauseOptions{Note: note}))
	override, err := backoff.ParseOverride("max(original, 10m); jitter 2m")
	must(t, err)
	o := ops.New(s.queue)
	must(t, o.SetPolicy(ctx, falldue.Subject{Kind: "card.charge"}, override, ops.OverrideOptions{Until: time.Now().Add(2 * time.Hour), Note: falldue.Note{Who: "ada", Why: "the bank asked for fewer retries"}}))
	sched, err := periodic.New(s.queue,
		periodic.Schedule{Name: "monthly-invoices", Spec: "0 6 1 * *", Task: kind("card.charge").Params(args{})},
		periodic.Schedule{Name: "warm-the-caches", Spec: "@every 5m", Task: kind("thumbnail.make").Params(args{})},
		periodic.Schedule{Name: longName, Spec: "0 3 * * 1-5", Task: kind(longName).Params(args{})})
	must(t, err)
	_, err = sched.Tick(ctx)
	must(t, err)
	must(t, periodic.Pause(ctx, s.queue, "monthly-invoices", note))
	for _, d := range []ops.Deed{
		{Note: falldue.Note{Who: "ada", Why: "the partner is back"}, Action: "retry", Target: "all tasks with kind:webhook.send state:dead at 20 a second", Changed: 12_480},
		{Note: note, Action: "pause", Target: "kind:" + longName}, {Note: falldue.Note{Who: "ada"}, Action: "cancel", Target: "task 812 of kind mail.send, failed: the task is done"},
		{Note: falldue.Note{Who: hostile, Why: hostile + strings.Repeat(" and more", 20)}, Action: "delete", Target: "task 813 of kind mail.send", Changed: 1},
	} {
		must(t, o.Record(ctx, d))
	}
}

// ramp lets the webhooks that are due run over half an hour: the partner has been back for some minutes.
func (s *story) ramp(t *testing.T) {
	t.Helper()
	o := ops.New(s.queue)
	p, err := o.Profile(t.Context())
	must(t, err)
	webhooks := falldue.Subject{Kind: "webhook.send"}
	steps, err := p.Release(webhooks, false, 30*time.Minute)
	must(t, err)
	must(t, o.SetPolicy(t.Context(), webhooks, steps[0].Formula, ops.OverrideOptions{Steps: steps[1:], Until: p.At.Add(30 * time.Minute), Note: falldue.Note{Who: "ada", Why: "the partner is back"}}))
	const passed = 430_000_000 // microseconds since
	s.exec(t, `update falldue_changes set created_at = created_at - ?, ends_at = ends_at - ? where subject = 'kind:webhook.send'`, passed, passed)
	s.exec(t, `update falldue_tasks set updated_at = updated_at - ? where kind = 'webhook.send' and state = 'open' and claimed_by = ''`, passed)
	var extra int // seconds, of the step in effect
	_, err = fmt.Sscanf(steps[passed/60_000_000].Formula.String(), "original + %ds", &extra)
	must(t, err)
	s.exec(t, `update falldue_tasks set state = 'done' where kind = 'webhook.send' and state = 'open' and claimed_by = '' and updated_at + min(15000000 * (1 << attempts), 3600000000) * 1.1 + ? <= cast(unixepoch('subsec') * 1000000 as integer)`, extra*1_000_000)
}

// paths are all pages of the story, by the names of their pictures.
func (s *story) paths() map[string]string {
	return map[string]string{
		"overview": "", "tasks": "tasks?kind=webhook.send&phase=backing_off", "tasks-all": "tasks", "task": fmt.Sprint("task?id=", s.waits), "task-dead": fmt.Sprint("task?id=", s.dead),
		"running": "running", "failures": "failures", "queues": "queues", "limits": "limits", "policies": "policies",
		"limit-keys": "limits?owner=kind+webhook.send&limit=AtMost(4).PerKey()",
		"policy":     "policy?subject=kind%3Awebhook.send&form=slow&factor=4&until=2h&weigh=1", "forecast": "forecast?read=1",
		"policy-set": "policy?subject=kind%3Acard.charge", "policy-herd": "policy?subject=kind%3Awebhook.send&form=set&override=delay+1s&weigh=1",
		"simulate":  "simulate?kind=webhook.send&policies=zizq%0Adelay+30s%0Adelay+5m%3B+jitter+1m&outage=30m&rate=15&handler=300ms&handlers=40&do=1",
		"schedules": "schedules", "workers": "workers", "changes": "changes", "doctor": "doctor?run=1", "enqueue": "new?kind=mail.send&queue=default",
		"bulk": "bulk?do=retry&kind=webhook.send&state=dead", "flow": fmt.Sprint("flow?id=", s.publishes), "missing": "task?id=999999999",
	}
}
