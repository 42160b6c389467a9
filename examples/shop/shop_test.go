package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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

// world is the bank, the mail server and the clock of a test.
type world struct {
	*shop
	clock *tasktest.Clock

	mu       sync.Mutex
	bankErrs []error         // what the bank returns first
	mailErrs []error         // what the mail server returns first
	payments map[string]int  // by their keys
	sent     []string        // mails
	paying   map[string]bool // customers
	twice    []string        // customers with two payments at once
	began    chan string     // gets each customer whose payment begins, if not nil
	goOn     chan bool       // payments wait until it is closed
}

func (w *world) Charge(_ context.Context, key, customer string, cents int) error {
	if err := w.next(&w.bankErrs); err != nil {
		return err
	}
	w.mu.Lock()
	if w.paying[customer] {
		w.twice = append(w.twice, customer)
	}
	w.paying[customer], w.payments[key] = true, cents
	w.mu.Unlock()
	if w.began != nil {
		w.began <- customer
		<-w.goOn
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.paying, customer)
	return nil
}

func (w *world) Send(_ context.Context, _ string, m Mail) error {
	if err := w.next(&w.mailErrs); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, m.To+": "+m.Text)
	return nil
}

// next takes the first of a list of errors.
func (w *world) next(list *[]error) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(*list) > 0 {
		err, *list = (*list)[0], (*list)[1:]
	}
	return err
}

// each runs a test on each engine, with a new shop.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	testdb.Each(t, func(t *testing.T, engine string) {
		db := testdb.Open(t, engine)
		w := &world{clock: tasktest.NewClock(t, db), payments: map[string]int{}, paying: map[string]bool{}}
		var err error
		if w.shop, err = newShop(db, w, w); err != nil {
			t.Fatal(err)
		}
		w.today = func() string { return w.clock.Now(t).Format(time.DateOnly) }
		if err := w.migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, w)
	})
}

// request sends a request to the shop, and reads the answer into answer.
func (w *world) request(t *testing.T, method, path, body string, want int, answer any) {
	t.Helper()
	recorder := httptest.NewRecorder()
	w.routes().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	if recorder.Code != want {
		t.Fatalf("%s %s: status %d: %s", method, path, recorder.Code, recorder.Body)
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, recorder.Body)
	}
}

func (w *world) order(t *testing.T, customer string, bags int) (o Order) {
	t.Helper()
	w.request(t, "POST", "/orders", fmt.Sprintf(`{"customer": %q, "coffee": "Sidamo", "bags": %d}`, customer, bags), http.StatusCreated, &o)
	return o
}

func (w *world) wantSent(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(w.sent, want) {
		t.Errorf("the mails are %q, want %q", w.sent, want)
	}
}

var errDown = errors.New("no such host")

const (
	placed  = "ada: we have your order of Sidamo"
	paid    = "ada: thank you for your payment"
	refused = "ada: your bank has declined the payment"
)

func TestOrder(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		o := w.order(t, "ada", 2)
		tasktest.RequireEnqueued(t, w.queue, charging, Charge{o.ID})
		tasktest.Drain(t, w.queue)
		w.request(t, "GET", "/orders/"+o.ID, "", http.StatusOK, &o)
		if o.Status != "paid" || w.payments[o.ID] != 2300 {
			t.Errorf("the order is %+v, the payments are %v", o, w.payments)
		}
		w.wantSent(t, placed, paid)
	})
}

func TestOrderThatIsWrong(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, body := range []string{`{"customer": "ada", "coffee": "tea", "bags": 1}`, `{"coffee": "Sidamo", "bags": 1}`, `{"customer": "ada", "coffee": "Huila", "bags": 101}`, `{`} {
			var said string
			w.request(t, "POST", "/orders", body, http.StatusUnprocessableEntity, &said)
		}
		var said string
		w.request(t, "GET", "/orders/none", "", http.StatusNotFound, &said)
		w.request(t, "GET", "/exports/1", "", http.StatusNotFound, &said)
		tasktest.RequireNoneEnqueued(t, w.queue, charging)
		tasktest.RequireNoneEnqueued(t, w.queue, mailing)
	})
}

func TestBankThatDeclines(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.bankErrs = []error{errDeclined}
		o := w.order(t, "ada", 1)
		tasktest.Drain(t, w.queue)
		w.request(t, "GET", "/orders/"+o.ID, "", http.StatusOK, &o)
		if o.Status != "declined" {
			t.Errorf("the order is %+v", o)
		}
		w.wantSent(t, placed, refused)
	})
}

func TestBankThatIsDown(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.bankErrs = []error{errDown, errDown}
		o := w.order(t, "ada", 1)
		w.clock.Advance(t, w.queue, 3*time.Hour)
		if w.payments[o.ID] != 1150 {
			t.Errorf("the payments are %v", w.payments)
		}
		w.wantSent(t, placed, paid)
	})
}

// TestMailServerThatIsDown: the second mail waits for the first.
func TestMailServerThatIsDown(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.mailErrs = []error{errDown}
		w.order(t, "ada", 1)
		tasktest.Drain(t, w.queue)
		w.wantSent(t)
		w.clock.Advance(t, w.queue, time.Hour)
		w.wantSent(t, placed, paid)
	})
}

func TestPaymentsAreRetriedForTwoDays(t *testing.T) {
	tasktest.AssertTotal(t, charging.Config().Policy, 47*time.Hour, 48*time.Hour)
}

// TestPaymentsOfACustomer: a worker charges two customers at once, and none of them twice.
func TestPaymentsOfACustomer(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.began, w.goOn = make(chan string, 10), make(chan bool)
		for range 3 {
			w.order(t, "ada", 1)
		}
		w.order(t, "bob", 1)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- w.work(ctx) }()
		if first, second := <-w.began, <-w.began; first == second {
			t.Errorf("the bank charges %s and %s at once", first, second)
		}
		close(w.goOn)
		<-w.began
		<-w.began
		stop() // the payments that have begun are finished
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if len(w.payments) != 4 || len(w.twice) > 0 {
			t.Errorf("the payments are %v, want 4; of these customers there were two at once: %v", w.payments, w.twice)
		}
		tasktest.RequireNoneEnqueued(t, w.queue, charging)
	})
}

func TestExport(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		var first, second struct {
			Task    int64
			Existed bool
		}
		w.order(t, "ada", 1)
		w.order(t, "ada", 2)
		w.request(t, "POST", "/customers/ada/exports", "", http.StatusAccepted, &first)
		w.request(t, "POST", "/customers/ada/exports", "", http.StatusAccepted, &second)
		if first.Existed || !second.Existed || first.Task != second.Task {
			t.Errorf("the exports are %+v and %+v", first, second)
		}
		path := fmt.Sprint("/exports/", first.Task)
		var progress struct{ State falldue.State }
		w.request(t, "GET", path, "", http.StatusAccepted, &progress)
		tasktest.Drain(t, w.queue)
		var orders []Order
		w.request(t, "GET", path, "", http.StatusOK, &orders)
		if progress.State != falldue.Open || len(orders) != 2 || orders[0].Customer != "ada" {
			t.Errorf("the export was %s, and is %+v", progress.State, orders)
		}
		w.request(t, "POST", "/customers/ada/exports", "", http.StatusAccepted, &second)
		if second.Existed {
			t.Errorf("after an export that is done, the next one is %+v", second)
		}
	})
}

// TestInvoices goes through a month.
func TestInvoices(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		if _, err := w.schedules(); err != nil {
			t.Fatal(err)
		}
		now := w.clock.Now(t)
		w.clock.Jump(t, time.Date(now.Year()+1, time.January, 31, 12, 0, 0, 0, time.UTC).Sub(now))
		w.order(t, "ada", 1)
		w.order(t, "ada", 2)
		w.order(t, "bob", 4)
		w.clock.Advance(t, w.queue, 12*time.Hour)
		w.order(t, "ada", 3) // in February
		w.sent = nil
		w.clock.Advance(t, w.queue, 24*time.Hour)
		month := fmt.Sprint(now.Year()+1, "-01")
		for _, want := range []string{
			"ada: your invoice of " + month + ": 34.50 euros", "bob: your invoice of " + month + ": 46.00 euros",
			"bookkeeper: 2 invoices of " + month + ": 80.50 euros", // after both
		} {
			if !slices.Contains(w.sent, want) {
				t.Errorf("the mails are %q, without %q", w.sent, want)
			}
		}
		w.sent = nil
		w.clock.Advance(t, w.queue, 28*24*time.Hour)
		month = fmt.Sprint(now.Year()+1, "-02")
		if !slices.Contains(w.sent, "ada: your invoice of "+month+": 34.50 euros") || !slices.Contains(w.sent, "bookkeeper: 1 invoices of "+month+": 34.50 euros") {
			t.Errorf("the mails are %q", w.sent)
		}
	})
}

// TestServiceFinishesRequests: a request that has begun when the service is stopped is answered.
func TestServiceFinishesRequests(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	begun := make(chan bool)
	stopped := make(chan error, 1)
	go func() {
		stopped <- serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-ctx.Done()
			w.WriteHeader(http.StatusTeapot)
		}))
	}()
	go func() {
		<-begun
		stop()
	}()
	answer, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusTeapot {
		t.Errorf("status %s", answer.Status)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestProgram runs the worker as the command line does, beside a service of another pool.
func TestProgram(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite {
			t.Skip("the program has no driver of SQLite")
		}
		dsn := testdb.DSN(t, engine)
		for range 2 {
			if err := run(t.Context(), dsn, "migrate"); err != nil {
				t.Fatal(err)
			}
		}
		if err := run(t.Context(), dsn, "close"); err == nil || !strings.Contains(err.Error(), "migrate, serve and work") {
			t.Errorf("an unknown command: error %v", err)
		}
		db, err := open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		service, err := newShop(db, logBank{}, logMailer{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := service.place(t.Context(), Order{Customer: "ada", Coffee: "Gesha", Bags: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- run(ctx, dsn, "work") }()
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for deadline := time.Now().Add(time.Minute); o.Status != "paid"; <-look.C {
			if o, err = service.order(t.Context(), o.ID); err != nil || time.Now().After(deadline) {
				t.Fatalf("waited a minute for the payment: the order is %+v, error %v", o, err)
			}
		}
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// TestReportWaitsForInvoices: the report of a month runs when all of its invoices are written.
func TestReportWaitsForInvoices(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		o := w.order(t, "ada", 1)
		tasktest.Drain(t, w.queue)
		month := Month{o.Placed[:len("2006-01")]}
		if _, err := closing.Enqueue(t.Context(), w.queue, month, nil); err != nil {
			t.Fatal(err)
		}
		tasktest.RunOne(t, w.queue)
		if report := tasktest.RequireEnqueued(t, w.queue, reporting, month); report.State != falldue.Blocked {
			t.Errorf("before the invoices are written the report is %s", report.State)
		}
		tasktest.Drain(t, w.queue)
		tasktest.RequireNoneEnqueued(t, w.queue, reporting)
	})
}
