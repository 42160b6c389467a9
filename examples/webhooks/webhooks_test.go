package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/tasktest"
)

// process is the API or a worker, with its own pool.
type process struct {
	*service
	clock *tasktest.Clock
}

func newProcess(t *testing.T, dsn string) *process {
	t.Helper()
	pool, err := openPool(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.close)
	p := &process{clock: tasktest.NewClock(t, pool.DB, pool.pgx)}
	if p.service, err = newService(pool); err != nil {
		t.Fatal(err)
	}
	if err := p.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// work delivers until the returned function is called. The channel has the outcomes of runs.
func (p *process) work(t *testing.T) (ended <-chan falldue.Event, stop func()) {
	t.Helper()
	outcomes := p.queue.Subscribe(falldue.SubscribeOptions{Outcomes: []falldue.Outcome{
		falldue.OutcomeDone, falldue.OutcomeRetried, falldue.OutcomeRetriedAfter, falldue.OutcomeDead, falldue.OutcomeDiscarded,
	}})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- p.queue.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		outcomes.Close()
	})
	t.Cleanup(stop)
	return outcomes.Events(), stop
}

// call sends a request to a process, and returns the JSON of the answer.
func (p *process) call(t *testing.T, method, path, body string, want int) (answer map[string]any) {
	t.Helper()
	text := p.get(t, method, path, body, want)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return answer
}

func (p *process) get(t *testing.T, method, path, body string, want int) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	p.routes().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	if recorder.Code != want {
		t.Fatalf("%s %s: status %d: %s", method, path, recorder.Code, recorder.Body)
	}
	return recorder.Body.String()
}

// send sends n events of a tenant: "tenant 1", "tenant 2" and so on.
func (p *process) send(t *testing.T, tenant string, n int) {
	t.Helper()
	for i := range n {
		p.call(t, "POST", "/tenants/"+tenant+"/events", fmt.Sprintf("%q", fmt.Sprint(tenant, " ", i+1)), http.StatusOK)
	}
}

// customer is an endpoint of a tenant, which is registered.
type customer struct {
	endpoint
	calls chan string // the tenant, when a call begins
	goOn  chan bool   // calls wait until it is closed

	mu       sync.Mutex
	answers  []int // the first ones; 503 has a Retry-After of 0 seconds
	accepted []string
}

func (p *process) customer(t *testing.T, tenant, policy string, answers ...int) *customer {
	t.Helper()
	c := &customer{calls: make(chan string, 1000), goOn: make(chan bool), answers: answers}
	close(c.goOn)
	partner := &receiver{busy: c.busy, accept: c.accept}
	server := httptest.NewServer(partner)
	t.Cleanup(server.Close)
	body := fmt.Sprintf(`{"url": %q, "policy": %q}`, server.URL, policy)
	text := p.get(t, "POST", "/tenants/"+tenant+"/endpoints", body, http.StatusOK)
	if err := json.Unmarshal([]byte(text), &c.endpoint); err != nil {
		t.Fatal(err)
	}
	partner.secret = c.Secret
	return c
}

func (c *customer) busy(w http.ResponseWriter, r *http.Request) (status int) {
	c.calls <- c.Tenant
	select {
	case <-c.goOn:
	case <-r.Context().Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) > 0 {
		status, c.answers = c.answers[0], c.answers[1:]
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "0")
	}
	return status
}

func (c *customer) accept(body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted = append(c.accepted, body)
}

// wantAccepted fails the test unless the customer has accepted the events of the tenant from 1 to n, in order.
func (c *customer) wantAccepted(t *testing.T, n int) {
	t.Helper()
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("%q", fmt.Sprint(c.Tenant, " ", i+1)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.accepted, want) {
		t.Errorf("the endpoint has accepted %v, want %v", c.accepted, want)
	}
}

// receive receives from a channel.
func receive[T any](t *testing.T, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(testdb.Patience):
		t.Fatalf("waited %s for a %T", testdb.Patience, got)
	}
	return got
}

// wait returns when n more runs have ended with an outcome.
func wait(t *testing.T, events <-chan falldue.Event, outcome falldue.Outcome, n int) {
	t.Helper()
	for n > 0 {
		if e := receive(t, events); e.Outcome == outcome {
			n--
		} else if outcome == falldue.OutcomeDone && (e.Outcome == falldue.OutcomeDead || e.Outcome == falldue.OutcomeDiscarded) {
			t.Fatalf("task %d is %s: %v", e.ID, e.Outcome, e.Err)
		}
	}
}

// TestDeliveries: a worker delivers events that the API has stored, in order to each endpoint, and once.
func TestDeliveries(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		api, worker := newProcess(t, dsn), newProcess(t, dsn)
		ended, stop := worker.work(t)
		steady := api.customer(t, "acme", "")
		busy := api.customer(t, "acme", "delay 0s; attempts 5", http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusServiceUnavailable)
		other := api.customer(t, "zenith", "")
		api.send(t, "acme", 3)
		api.send(t, "zenith", 2)
		wait(t, ended, falldue.OutcomeDone, 8)
		api.call(t, "GET", "/health/readyz", "", http.StatusOK)
		stop()
		steady.wantAccepted(t, 3)
		busy.wantAccepted(t, 3)
		other.wantAccepted(t, 2)
	})
}

// TestTenantsShareNothing: a tenant whose endpoints hang has two calls at a time, and does not delay another tenant.
func TestTenantsShareNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		api, worker := newProcess(t, dsn), newProcess(t, dsn)
		var slow [3]*customer
		goOn := make(chan bool)
		for i := range slow {
			slow[i] = api.customer(t, "acme", "")
			slow[i].goOn = goOn
			slow[i].calls = slow[0].calls
		}
		quick := api.customer(t, "zenith", "")
		api.send(t, "acme", 3)
		ended, stop := worker.work(t)
		receive(t, slow[0].calls)
		receive(t, slow[0].calls)
		api.send(t, "zenith", 2)
		wait(t, ended, falldue.OutcomeDone, 2)
		if n := len(slow[0].calls); n != 0 {
			t.Errorf("%d calls of a tenant run concurrently, want 2", n+2)
		}
		close(goOn)
		wait(t, ended, falldue.OutcomeDone, 9)
		stop()
		quick.wantAccepted(t, 2)
		for _, c := range slow {
			c.wantAccepted(t, 3)
		}
	})
}

// TestRateOfATenant: in a minute a tenant has 100 calls. The suite of falldue tests rates on all databases.
func TestRateOfATenant(t *testing.T) {
	t.Parallel()
	p := newProcess(t, testdb.DSN(t, testdb.SQLite))
	c := p.customer(t, "acme", "")
	p.send(t, "acme", 101)
	began := p.clock.Now(t)
	tasktest.Drain(t, p.queue)
	if p.clock.Now(t).Sub(began) < time.Minute { // else the machine is too slow to tell
		c.wantAccepted(t, 100)
	}
	p.clock.Advance(t, p.queue, time.Minute)
	c.wantAccepted(t, 101)
}

// TestDeadDeliveriesAreReplayed: by their tenant, in order.
func TestDeadDeliveriesAreReplayed(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		api, worker := newProcess(t, dsn), newProcess(t, dsn)
		c := api.customer(t, "acme", "delay 0s; attempts 2", 500, 500, 410, 500, 500)
		other := api.customer(t, "zenith", "", http.StatusGone)
		api.send(t, "acme", 3)
		api.send(t, "zenith", 1)
		ended, stop := worker.work(t)
		wait(t, ended, falldue.OutcomeDead, 2)
		list, _ := api.call(t, "GET", "/tenants/acme/dead", "", http.StatusOK)["dead"].([]any)
		if len(list) != 3 {
			t.Fatalf("the dead deliveries are %v, want 3", list)
		}
		first, _ := list[0].(map[string]any)
		if first["error"] != "the endpoint answers 500 Internal Server Error" || first["attempts"] != 2.0 {
			t.Errorf("the first dead delivery is %v", first)
		}
		if report := api.call(t, "POST", "/tenants/acme/dead/replay", "", http.StatusOK); report["replayed"] != 3.0 {
			t.Errorf("the report is %v, want 3 replayed", report)
		}
		wait(t, ended, falldue.OutcomeDone, 3)
		stop()
		c.wantAccepted(t, 3)
		other.wantAccepted(t, 0)
	})
}

// TestEndpointThatIsRemoved: its deliveries are cancelled.
func TestEndpointThatIsRemoved(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		p := newProcess(t, dsn)
		c, other := p.customer(t, "acme", ""), p.customer(t, "acme", "")
		p.send(t, "acme", 2)
		if report := p.call(t, "DELETE", "/tenants/acme/endpoints/"+c.ID, "", http.StatusOK); report["cancelled"] != 2.0 {
			t.Errorf("the report is %v, want 2 cancelled", report)
		}
		tasktest.Drain(t, p.queue)
		c.wantAccepted(t, 0)
		other.wantAccepted(t, 2)
	})
}

// TestEventWithoutItsDeliveries: an event whose deliveries cannot be stored is not stored either.
func TestEventWithoutItsDeliveries(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		dsn := testdb.DSN(t, engine)
		p := newProcess(t, dsn)
		p.customer(t, "acme", "")
		p.pool.MustExec("drop table falldue_tasks")
		p.call(t, "POST", "/tenants/acme/events", "{}", http.StatusInternalServerError)
		var events int
		if err := p.pool.Get(&events, "select count(*) from events"); err != nil || events != 0 {
			t.Errorf("%d events are stored, want none; error %v", events, err)
		}
	})
}

// TestInputThatIsWrong: the answer names the value and what is allowed.
func TestInputThatIsWrong(t *testing.T) {
	t.Parallel()
	p := newProcess(t, testdb.DSN(t, testdb.SQLite))
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "acme/endpoints", `{"url": "ftp://acme"}`, "http or https"},
		{"POST", "acme/endpoints", `{"url": "http://acme", "policy": "delay x"}`, "such as delay 1m"},
		{"POST", "acme/events", `{`, "unexpected EOF"},
	} {
		answer := p.call(t, c.method, "/tenants/"+c.path, c.body, http.StatusUnprocessableEntity)
		if text, _ := answer["error"].(string); !strings.Contains(text, c.want) {
			t.Errorf("%s with %s: %v, want %q", c.path, c.body, answer, c.want)
		}
	}
	if page := p.get(t, "GET", "/ops/", "", http.StatusOK); !strings.Contains(page, "webhooks") {
		t.Errorf("the page for operators is %s", page)
	}
}

// TestRetriesOfThreeDays: so long the service tries.
func TestRetriesOfThreeDays(t *testing.T) {
	tasktest.AssertTotal(t, deliver.Config().Policy, 54*time.Hour, 72*time.Hour)
}

// TestPartnerAcceptsADeliveryOnce: and refuses those without the right signature.
func TestPartnerAcceptsADeliveryOnce(t *testing.T) {
	var accepted []string
	p := &receiver{
		secret: "secret",
		busy:   func(http.ResponseWriter, *http.Request) int { return 0 },
		accept: func(body string) { accepted = append(accepted, body) },
	}
	for _, c := range []struct {
		secret, id string
		want       int
	}{{"secret", "1", http.StatusOK}, {"secret", "1", http.StatusOK}, {"guess", "2", http.StatusUnauthorized}} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Header.Set("Webhook-Id", c.id)
		r.Header.Set("Webhook-Signature", signature(c.secret, c.id, "{}"))
		recorder := httptest.NewRecorder()
		if p.ServeHTTP(recorder, r); recorder.Code != c.want {
			t.Errorf("%+v: status %d", c, recorder.Code)
		}
	}
	if len(accepted) != 1 {
		t.Errorf("accepted %v, want one delivery", accepted)
	}
}
