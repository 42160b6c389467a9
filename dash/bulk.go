package dash

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/ops"
)

const (
	// previewMost is how many tasks a preview counts.
	previewMost = 10_000
	// From typedFrom tasks on, the user types the number of tasks.
	typedFrom = 1000
	// jobsAtOnce is how many changes of many tasks run concurrently, and jobsKept how many the page
	// remembers.
	jobsAtOnce = 2
	jobsKept   = 50
)

// bulkActions are the changes of many tasks.
var bulkActions = map[string]Action{"retry": Retry, "run": Run, "cancel": Cancel, "delete": Delete}

// bulkView is a change of many tasks before it is made.
type bulkView struct {
	Do      string
	Fields  map[string]string
	Names   []string
	Words   string
	Target  Target
	Report  ops.BulkReport
	Sample  []falldue.TaskInfo
	Trouble *trouble
	// Typed is the number that the user must type, or "".
	Typed string
	Pace  float64
}

// readBulk returns the action and the filter of parameters, and checks the user's permission.
func (in *request) readBulk(do string, get func(string) string) (f ops.Filter, v bulkView, err error) {
	v = bulkView{Do: do, Fields: map[string]string{}}
	params := map[string][]string{}
	for _, name := range filterFields {
		if value := strings.TrimSpace(get(name)); value != "" {
			params[name] = []string{value}
			v.Fields[name] = value
			v.Names = append(v.Names, name)
			v.Words += " " + name + ":" + value
		}
	}
	v.Words = strings.TrimSpace(v.Words)
	v.Target = Target{Queue: v.Fields["queue"], Kind: v.Fields["kind"], Bulk: true}
	action, known := bulkActions[do]
	if !known {
		return f, v, mistake("do must be retry, run, cancel or delete")
	}
	if err := in.need(action, v.Target); err != nil {
		return f, v, err
	}
	if v.Fields["match"] != "" {
		if err := in.need(ViewPayload, v.Target); err != nil {
			return f, v, err
		}
	}
	f, err = parseFilter(params)
	return f, v, err
}

// many returns the call that changes many tasks.
func (h *Handler) many(do string) func(context.Context, ops.Filter, ...ops.BulkOptions) (ops.BulkReport, error) {
	switch do {
	case "retry":
		return h.ops.RetryMany
	case "run":
		return h.ops.RunNowMany
	case "cancel":
		return h.ops.CancelMany
	}
	return h.ops.DeleteMany
}

func bulkPage(in *request) (page, error) {
	f, v, err := in.readBulk(in.query.Get("do"), in.query.Get)
	if err != nil {
		return page{}, err
	}
	ctx, cancel := context.WithTimeout(in.r.Context(), readLimit)
	defer cancel()
	if v.Report, err = in.h.many(v.Do)(ctx, f, ops.BulkOptions{DryRun: true, Limit: previewMost}); err != nil {
		return page{}, err
	}
	if v.Do == "retry" && f.State == "" && f.Phase == "" {
		f.State = falldue.StateDead
	}
	if v.Do == "run" && f.State == "" && f.Phase == "" {
		f.State = falldue.StateOpen
	}
	sample, err := in.h.ops.Tasks(ctx, f, ops.ListOptions{Limit: 3, Newest: true})
	v.Sample, v.Trouble = sample.Tasks, troubleOf(err)
	if v.Report.Changed >= typedFrom || v.Do == "delete" {
		v.Typed = strconv.FormatInt(v.Report.Changed, 10)
	}
	v.Pace = ops.PaceOf(in.h.reads.pulse.get(ctx).Value.Workers).Of(f.Kind)
	return page{Title: strings.ToUpper(v.Do[:1]) + v.Do[1:] + " all matching tasks", Nav: "tasks", Regions: []region{{ID: "bulk", Template: "bulk", Data: v}}}, nil
}

// bulkPost begins a change of many tasks.
func bulkPost(a Action) func(*request) (done, error) {
	return func(in *request) (done, error) {
		f, v, err := in.readBulk(string(a), in.r.PostFormValue)
		d := done{entry: Entry{Target: v.Target, Detail: v.Words, Why: in.r.PostFormValue("why")}}
		if err != nil {
			return d, err
		}
		var o ops.BulkOptions
		if want := in.r.PostFormValue("expected"); want != "" && strings.ReplaceAll(strings.TrimSpace(in.r.PostFormValue("typed")), ",", "") != want {
			return d, mistake("The number that you typed is not " + want + ". Nothing was changed.")
		}
		if a == Delete && in.r.PostFormValue("expected") == "" {
			return d, mistake("Type the number of tasks to delete. Nothing was changed.")
		}
		if text := strings.TrimSpace(in.r.PostFormValue("rate")); text != "" && (a == Retry || a == Run) {
			if o.Spread.Rate, err = strconv.ParseFloat(text, 64); err != nil || o.Spread.Rate <= 0 {
				return d, mistake("The rate " + strconv.Quote(text) + " is not a number above 0.")
			}
			d.entry.Detail += fmt.Sprintf(" at %g a second", o.Spread.Rate)
		}
		job, err := in.h.jobs.begin(in, d.entry, a, f, o)
		if err != nil {
			return d, err
		}
		d.logged = true // the job logs itself when it ends
		d.to = link("job", "id", strconv.FormatInt(job, 10))
		return d, nil
	}
}

// job is a change of many tasks that runs or has run.
type job struct {
	ID      int64
	Entry   Entry
	Action  Action
	Started time.Time

	mu     sync.Mutex
	report ops.BulkReport
	err    error
	ended  time.Time
	stop   context.CancelFunc
}

// jobs are the changes of many tasks of a handler.
type jobs struct {
	mu      sync.Mutex
	list    map[int64]*job
	last    int64
	slots   chan struct{}
	closed  bool
	running sync.WaitGroup
}

func (j *jobs) init() {
	j.list, j.slots = map[int64]*job{}, make(chan struct{}, jobsAtOnce)
}

// begin starts a change in a goroutine that close waits for.
func (j *jobs) begin(in *request, e Entry, a Action, f ops.Filter, o ops.BulkOptions) (int64, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(in.r.Context()))
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		stop()
		return 0, errClosed
	}
	j.last++
	e.Action, e.At, e.User, e.Addr = a, time.Now(), in.user, in.r.RemoteAddr
	one := &job{ID: j.last, Entry: e, Action: a, Started: time.Now(), stop: stop}
	j.list[one.ID] = one
	delete(j.list, one.ID-jobsKept)
	o.Report = one.set
	h := in.h
	j.running.Go(func() {
		defer stop()
		var report ops.BulkReport
		err := ctx.Err()
		select {
		case j.slots <- struct{}{}:
			report, err = h.many(string(a))(ctx, f, o)
			<-j.slots
		case <-ctx.Done():
		}
		one.mu.Lock()
		one.report, one.err, one.ended = report, err, time.Now()
		one.mu.Unlock()
		e := one.Entry
		e.Count, e.Err = report.Changed, err
		h.record(ctx, e)
		h.changedNow()
	})
	return one.ID, nil
}

func (j *job) set(r ops.BulkReport) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.report = r
}

func (j *jobs) get(text string) (*job, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	j.mu.Lock()
	defer j.mu.Unlock()
	if one := j.list[id]; one != nil && err == nil {
		return one, nil
	}
	return nil, store.Missing(fmt.Sprintf("falldue: no change %.100q: this process knows only the changes made since it started", text))
}

// close stops all changes and waits for them.
func (j *jobs) close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	for _, one := range j.list {
		one.stop()
	}
	j.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		j.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// jobView is a change as a page shows it.
type jobView struct {
	*job
	Report ops.BulkReport
	Ended  bool
	Took   time.Duration
	Err    *trouble
}

func jobPage(in *request) (page, error) {
	one, err := in.h.jobs.get(in.query.Get("id"))
	if err != nil {
		return page{}, err
	}
	one.mu.Lock()
	v := jobView{job: one, Report: one.report, Ended: !one.ended.IsZero(), Err: troubleOf(one.err)}
	v.Took = time.Since(one.Started)
	if v.Ended {
		v.Took = one.ended.Sub(one.Started)
	}
	one.mu.Unlock()
	return page{Title: "Change " + strconv.FormatInt(one.ID, 10), Nav: "tasks", Live: !v.Ended, Regions: []region{{ID: "job", Template: "job", Data: v}}}, nil
}

// stopJob stops a change after its batch. A user who may make such a change may stop it.
func stopJob(in *request) (done, error) {
	one, err := in.h.jobs.get(in.r.PostFormValue("job"))
	if err != nil {
		return done{logged: true}, errForbidden
	}
	d := done{to: link("job", "id", strconv.FormatInt(one.ID, 10), "done", "stopped"), entry: Entry{Action: one.Action, Target: one.Entry.Target, Detail: "stop change " + strconv.FormatInt(one.ID, 10), Why: in.r.PostFormValue("why")}}
	if err := in.need(one.Action, one.Entry.Target); err != nil {
		return d, err
	}
	one.stop()
	return d, nil
}
