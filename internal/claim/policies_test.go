package claim

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/internal/control"
	"github.com/falldue/falldue/internal/control/controltest"
	"github.com/falldue/falldue/internal/lanes"
	"github.com/falldue/falldue/internal/run"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/sqlgen"
)

// TestPollersGoByOverrides: the lanes that a poller knows are due by an override as soon as it
// takes effect, without a sweep, including lanes with a per-task policy.
func TestPollersGoByOverrides(t *testing.T) {
	t.Parallel()
	kind := control.Compile(backoff.ParseDeferred("1h"))
	pollers, report, log := noUnknown(), control.NewHealthReport(), slog.New(slog.DiscardHandler)
	kinds := map[string]*control.CompiledPolicy{"mail": kind}
	o := control.NewOverrides(controltest.Database{}, kinds, controltest.Effects{OnPolicies: pollers.PoliciesChanged}, report, log)
	own := storable.PolicyKey("delay 2h")
	texts := map[string]string{own: "delay 2h"}
	policies := control.NewTaskPolicies(controltest.Database{OnPolicies: func(context.Context, []string) (map[string]string, error) { return texts, nil }}, controltest.Database{}, report, log)
	p := newTestPoller(PollerConfig{
		Queue: "default", Budget: run.NewBudget(1, 0),
		Policies:     control.NewPolicies("default", kinds, readerOf(nil), policies, o),
		PollInterval: time.Hour, AscendingIDs: true,
	}, fakeFinder{})
	pollers.Add(p)
	at := store.Lane{State: statements.StateOpen, Kind: "mail", Attempts: 1}
	with := at
	with.Policy = own
	now := time.Now()
	p.lanes.Found([]lanes.FirstTask{{Lane: at, Due: now.Add(time.Hour), Delay: time.Hour, Anchor: 7}, {Lane: with, Due: now.Add(2 * time.Hour), Delay: 2 * time.Hour, Anchor: 7}})
	table := &controltest.Table{}
	changes := control.NewChangeReader(table, o, controltest.Effects{}, report, log)
	read := func() {
		t.Helper()
		if err := changes.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	known := make(chan struct{})
	reading, stop := context.WithCancel(t.Context())
	defer stop()
	go policies.Work(reading)
	if policies.PolicyOf("default", with, func() { close(known) }) == nil {
		<-known
	}
	table.Add("queue:default", statements.ChangePolicy, `{"steps":[{"policy":"original / 2"}],"include_own":true}`, now, time.Time{})
	read()
	o.Refresh(t.Context()) // requests the per-task policy
	o.Refresh(t.Context())
	if one, other := p.lanes.Lanes[at].Due.Sub(now), p.lanes.Lanes[with].Due.Sub(now); one != 30*time.Minute || other != time.Hour {
		t.Errorf("the lanes are due in %v and %v, want 30m and 1h", one, other)
	}
	table.Add("queue:default", statements.ChangeClearPolicy, "", now.Add(time.Microsecond), time.Time{})
	read()
	o.Refresh(t.Context())
	if one, other := p.lanes.Lanes[at].Due.Sub(now), p.lanes.Lanes[with].Due.Sub(now); one != time.Hour || other != 2*time.Hour {
		t.Errorf("after the end the lanes are due in %v and %v, want 1h and 2h", one, other)
	}
}

// TestPoliciesAreReadApartFromSweeps: while the policies of 12,000 lanes are read, a sweep
// finds the tasks of other lanes. Reading the policies takes few statements. As soon as the
// policies are known, the lanes are known, too.
func TestPoliciesAreReadApartFromSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const count = 12_000
		log := slog.New(slog.DiscardHandler)
		reads, checks, answer := 0, 0, make(chan struct{})
		stored := map[string]string{} // policies by their keys
		policies := control.NewTaskPolicies(controltest.Database{OnPolicies: func(_ context.Context, keys []string) (map[string]string, error) {
			reads++
			<-answer
			texts := map[string]string{}
			for _, key := range keys {
				texts[key] = stored[key]
			}
			return texts, nil
		}, OnCheck: func(context.Context, []sqlgen.Formula) error { checks++; return nil }}, controltest.Database{}, control.NewHealthReport(), log)
		var heads []store.Head
		for i := range count {
			h, text := head("k", 1, time.Minute), fmt.Sprintf("delay 10s; attempts %d", i+10)
			h.Policy = storable.PolicyKey(text)
			stored[h.Policy] = text
			heads = append(heads, h)
		}
		plain := head("k", 0, 0)
		p := newTestPoller(PollerConfig{
			Queue: "default", PollInterval: time.Second, AscendingIDs: true, Log: log,
			Policies: control.NewPolicies("default", map[string]*control.CompiledPolicy{"k": control.Compile(backoff.Constant(0))}, readerOf(nil), policies, noOverrides()),
		}, fakeFinder{find: func() ([]store.Head, error) { return append(heads, plain), nil }})
		ctx, cancel := context.WithCancel(t.Context())
		go policies.Work(ctx)
		for range 2 {
			if err := p.searchNow(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if due := p.lanes.Due(time.Now(), 2*count); len(due) != 1 || due[0] != plain.Lane {
			t.Errorf("%d lanes are due while policies are read, want that of the plain task", len(due))
		}
		close(answer)
		time.Sleep(time.Minute) // of synctest's clock
		synctest.Wait()
		if due := p.lanes.Due(time.Now(), 2*count); len(due) != count+1 {
			t.Errorf("%d lanes are due when all policies are known, want %d", len(due), count+1)
		}
		if err := p.searchNow(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if most := count/store.MaxBatch + 1; reads > most || checks > most*store.MaxBatch/control.MaxChecked {
			t.Errorf("%d policies were read by %d statements and checked by %d", count, reads, checks)
		}
		cancel()
		synctest.Wait()
	})
}
