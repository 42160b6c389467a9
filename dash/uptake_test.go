package dash_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dash"
	"github.com/falldue/falldue/internal/hooks"
	"github.com/falldue/falldue/internal/store"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestUptakeIsShown: the page of a policy shows which workers apply an override, which cannot, and which have not announced it.
func TestUptakeIsShown(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything}).fill()
	table, o := hooks.StoreOf(s.queue), ops.New(s.queue)
	subject := falldue.Subject{Kind: "webhook"}
	override, err := backoff.ParseOverride("4 * original")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.SetPolicy(t.Context(), subject, override); err != nil {
		t.Fatal(err)
	}
	list, err := o.Overrides(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	kinds := map[string]store.WorkerKind{"webhook": {Policy: "1h"}}
	announce := func(id string, info store.WorkerInfo) {
		t.Helper()
		info.Kinds = kinds
		if err := table.Announce(t.Context(), store.Worker{ID: id}, store.Recent{}, info); err != nil {
			t.Fatal(err)
		}
	}
	announce("quick", store.WorkerInfo{Applied: map[string]int64{"kind:webhook": list[0].At.UnixMicro()}})
	announce("slow", store.WorkerInfo{Applied: map[string]int64{"kind:webhook": list[0].At.UnixMicro() - 1}})
	announce("unable", store.WorkerInfo{Refused: []store.Refusal{{Subject: "kind:webhook", Error: "too large"}}})
	dash.Expire(s.h)
	s.see("policy?subject=kind:webhook", "Applied on 1 of 3 workers", "applies it", "has not reported it yet", "cannot apply it: too large")
	s.see("policies", "on 1 of 3 workers")
	if err := o.ClearPolicy(t.Context(), subject); err != nil {
		t.Fatal(err)
	}
	announce("unable", store.WorkerInfo{})
	dash.Expire(s.h)
	s.see("policy?subject=kind:webhook", "The code's policy is back on 1 of 3 workers")
}

// TestRampIsProposed: a change that makes a herd comes with a ramp to the same policy, which can be set.
func TestRampIsProposed(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.SQLite, dash.Options{Allow: everything}).fill()
	params := make([]falldue.EnqueueParams, 1000)
	for i := range params {
		params[i] = webhook.Params(json.RawMessage(`{}`))
	}
	if _, err := s.queue.EnqueueMany(t.Context(), params...); err != nil {
		t.Fatal(err)
	}
	s.db.MustExec(`update falldue_tasks set attempts = 1, fence = 1, updated_at = updated_at - 6000000 * (id % 1000) where kind = 'webhook' and state = 'open'`)
	if err := hooks.StoreOf(s.queue).Announce(t.Context(), store.Worker{ID: "w"}, store.Recent{}, store.WorkerInfo{Kinds: map[string]store.WorkerKind{"webhook": {Policy: "delay 1h; attempts 5"}}}); err != nil {
		t.Fatal(err)
	}
	dash.Expire(s.h)
	text := s.see("policy?subject=kind:webhook&override=30m&until=&weigh=1", "This change causes a retry storm", "Proposed ramp:", "steps in", "per-minute=")
	_, link, _ := strings.Cut(text, `class="button" href="policy?`)
	link, _, _ = strings.Cut(link, "#weighed")
	query, err := url.ParseQuery(strings.ReplaceAll(link, "&amp;", "&"))
	if err != nil {
		t.Fatal(err)
	}
	s.see("policy?"+query.Encode(), "The policy is reached in")
	query.Set("why", "a test")
	query.Set("sure", "1")
	if w := s.post("set-policy", query); w.Code != http.StatusSeeOther {
		t.Fatalf("status %d:\n%s", w.Code, w.Body)
	}
	list, err := ops.New(s.queue).Overrides(t.Context())
	if err != nil || len(list) != 1 || len(list[0].Steps) < 5 || list[0].Steps[len(list[0].Steps)-1].Formula.String() != "30m" {
		t.Errorf("the overrides are %+v, error %v", list, err)
	}
	s.see("policy?subject=kind:webhook&override=30m&per-minute=none&weigh=1", "is not a whole number above 0")
	s.see("policy?subject=queue:default&override=30m&per-minute=5&weigh=1", "a ramp needs a policy or a slowdown, and a kind")
}
