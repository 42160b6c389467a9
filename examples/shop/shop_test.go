package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/tasktest"
)

// newDatabase makes an empty database for a test, on the server that SHOP_TEST_DSN names.
func newDatabase(t *testing.T) (dsn string) {
	t.Helper()
	server := os.Getenv("SHOP_TEST_DSN")
	if server == "" {
		t.Fatal("SHOP_TEST_DSN names no server; allowed are postgres://user:password@localhost/postgres and user:password@tcp(localhost)/mysql, with a user who may create databases")
	}
	db, err := open(server)
	if err != nil {
		t.Fatal(err)
	}
	name := "shop_test_" + strings.ToLower(rand.Text())
	if _, err := db.ExecContext(t.Context(), "create database "+name); err != nil {
		t.Fatalf("SHOP_TEST_DSN: %v", err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), "drop database "+name); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	})
	address, params, _ := strings.Cut(server, "?")
	return address[:strings.LastIndex(address, "/")+1] + name + "?" + params
}

// world is a shop, and the bank, the mail server and the clock of a test.
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

func newWorld(t *testing.T) *world {
	t.Parallel()
	db, err := open(newDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w := &world{clock: tasktest.NewClock(t, db), payments: map[string]int{}, paying: map[string]bool{}}
	if w.shop, err = newShop(db, w); err != nil {
		t.Fatal(err)
	}
	if err := w.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
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

func (w *world) place(t *testing.T, customer string) (o Order) {
	t.Helper()
	w.request(t, "POST", "/orders", fmt.Sprintf(`{"customer": %q, "coffee": "Sidamo"}`, customer), http.StatusOK, &o)
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
	placed = "ada: we have your order of Sidamo"
	paid   = "ada: thank you for your payment"
)

func TestOrder(t *testing.T) {
	w := newWorld(t)
	o := w.place(t, "ada")
	tasktest.RequireEnqueued(t, w.queue, charging, Charge{o.ID, o.Customer})
	tasktest.Drain(t, w.queue)
	w.request(t, "GET", "/orders/"+o.ID, "", http.StatusOK, &o)
	if o.Status != "paid" || w.payments[o.ID] != 1150 {
		t.Errorf("the order is %+v, the payments are %v", o, w.payments)
	}
	w.wantSent(t, placed, paid)
}

// TestOperatorsSeeTheTasks: on the shop's own server.
func TestOperatorsSeeTheTasks(t *testing.T) {
	w := newWorld(t)
	w.place(t, "ada")
	recorder := httptest.NewRecorder()
	w.routes().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ops/falldue/", nil))
	if text := recorder.Body.String(); recorder.Code != http.StatusOK || !strings.Contains(text, "charge") || !strings.Contains(text, "roastery") {
		t.Errorf("status %d: %s", recorder.Code, text)
	}
}

func TestOrderThatIsWrong(t *testing.T) {
	w := newWorld(t)
	var said string
	for _, body := range []string{`{"customer": "ada", "coffee": "tea"}`, `{"coffee": "Sidamo"}`, `{`} {
		w.request(t, "POST", "/orders", body, http.StatusUnprocessableEntity, &said)
	}
	w.request(t, "GET", "/orders/none", "", http.StatusNotFound, &said)
	tasktest.RequireNoneEnqueued(t, w.queue, charging)
	tasktest.RequireNoneEnqueued(t, w.queue, mailing)
}

// TestOrderWithoutItsTasks: an order whose tasks cannot be stored is not stored either.
func TestOrderWithoutItsTasks(t *testing.T) {
	w := newWorld(t)
	w.db.MustExec("drop table falldue_tasks")
	var said string
	w.request(t, "POST", "/orders", `{"customer": "ada", "coffee": "Sidamo"}`, http.StatusInternalServerError, &said)
	var orders int
	if err := w.db.Get(&orders, "select count(*) from orders"); err != nil || orders != 0 {
		t.Errorf("%d orders are stored, want none; error %v", orders, err)
	}
}

func TestBankThatIsDown(t *testing.T) {
	w := newWorld(t)
	w.bankErrs = []error{errDown, errDown}
	o := w.place(t, "ada")
	w.clock.Advance(t, w.queue, 3*time.Hour)
	if w.payments[o.ID] != 1150 {
		t.Errorf("the payments are %v", w.payments)
	}
	w.wantSent(t, placed, paid)
}

func TestPaymentsAreRetriedForTwoDays(t *testing.T) {
	tasktest.AssertTotal(t, charging.Config().Policy, 47*time.Hour, 48*time.Hour)
}

// TestMailServerThatIsDown: the second mail waits for the first.
func TestMailServerThatIsDown(t *testing.T) {
	w := newWorld(t)
	w.mailErrs = []error{errDown}
	w.place(t, "ada")
	tasktest.Drain(t, w.queue)
	w.wantSent(t)
	w.clock.Advance(t, w.queue, time.Hour)
	w.wantSent(t, placed, paid)
}

// TestPaymentsOfACustomer: a worker charges two customers at once, and none of them twice. When
// it is stopped, it finishes the payments that have begun.
func TestPaymentsOfACustomer(t *testing.T) {
	w := newWorld(t)
	w.began, w.goOn = make(chan string, 10), make(chan bool)
	for range 3 {
		w.place(t, "ada")
	}
	w.place(t, "bob")
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- w.schedules.RunWorker(ctx) }()
	if first, second := <-w.began, <-w.began; first == second {
		t.Errorf("the bank charges %s and %s at once", first, second)
	}
	close(w.goOn)
	<-w.began
	<-w.began
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if len(w.payments) != 4 || len(w.twice) > 0 {
		t.Errorf("the payments are %v, want 4; of these customers there were two at once: %v", w.payments, w.twice)
	}
	tasktest.RequireNoneEnqueued(t, w.queue, charging)
}

// TestInvoices goes through the end of a month.
func TestInvoices(t *testing.T) {
	w := newWorld(t)
	for _, customer := range []string{"ada", "ada", "bob", "eve"} {
		w.place(t, customer)
	}
	month := w.clock.Now(t).UTC().Format("2006-01")
	w.db.MustExec(w.db.Rebind("update orders set month = ?"), month)
	w.db.MustExec("update orders set month = '2020-01' where customer = 'eve'")
	tasktest.Drain(t, w.queue)
	w.sent = nil
	w.clock.Advance(t, w.queue, 32*24*time.Hour)
	for _, want := range []string{
		"ada: your invoice of " + month + ": 23.00 euros",
		"bob: your invoice of " + month + ": 11.50 euros",
		"bookkeeper: the 2 invoices of " + month + " are written",
	} {
		if !slices.Contains(w.sent, want) {
			t.Errorf("the mails are %q, without %q", w.sent, want)
		}
	}
}

// TestMailAboutInvoicesWaits: the bookkeeper's mail waits until all invoices are written.
func TestMailAboutInvoicesWaits(t *testing.T) {
	w := newWorld(t)
	month := w.place(t, "ada").Month
	tasktest.Drain(t, w.queue)
	if _, err := closing.Enqueue(t.Context(), w.queue, Month{month}); err != nil {
		t.Fatal(err)
	}
	tasktest.RunOne(t, w.queue)
	tasktest.RequireEnqueued(t, w.queue, invoicing, Invoice{"ada", month})
	if mail := tasktest.RequireEnqueued(t, w.queue, mailing, Mail{"bookkeeper", "the 1 invoices of " + month + " are written"}); mail.State != falldue.StateBlocked {
		t.Errorf("before the invoice is written the mail is %s", mail.State)
	}
	tasktest.Drain(t, w.queue)
	tasktest.RequireNoneEnqueued(t, w.queue, mailing)
}

func TestInvoiceThatIsAskedForTwice(t *testing.T) {
	w := newWorld(t)
	month := w.place(t, "ada").Month
	tasktest.Drain(t, w.queue)
	w.sent = nil
	var first, second, third falldue.Receipt
	w.request(t, "POST", "/invoices/ada/"+month, "", http.StatusOK, &first)
	w.request(t, "POST", "/invoices/ada/"+month, "", http.StatusOK, &second)
	if first.Existed || !second.Existed || first.ID != second.ID {
		t.Errorf("the invoices are %+v and %+v", first, second)
	}
	tasktest.Drain(t, w.queue)
	w.wantSent(t, "ada: your invoice of "+month+": 11.50 euros")
	w.request(t, "POST", "/invoices/ada/"+month, "", http.StatusOK, &third)
	if third.Existed {
		t.Errorf("after an invoice that is sent, the next one is %+v", third)
	}
}

// TestServiceFinishesRequests: a request that has begun when the service is stopped is answered.
func TestServiceFinishesRequests(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- serve(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stopping := make(chan bool)
			r.Context().Value(http.ServerContextKey).(*http.Server).RegisterOnShutdown(func() { close(stopping) })
			stop()
			select {
			case <-stopping:
				w.WriteHeader(http.StatusTeapot)
			case <-r.Context().Done(): // the connection was cut off
			}
		}), time.Minute)
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

// TestServiceCutsOffRequests: one that never ends does not keep the service from stopping.
func TestServiceCutsOffRequests(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- serve(ctx, listener, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			stop()
			<-r.Context().Done()
		}), time.Millisecond)
	}()
	if answer, err := http.Get("http://" + listener.Addr().String()); err == nil {
		_ = answer.Body.Close()
		t.Errorf("status %s, want a connection that was cut off", answer.Status)
	}
	if err := <-stopped; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("serve returned %v, want that its time was over", err)
	}
}

// TestProgram runs the worker as the command line does, beside a service of another pool.
func TestProgram(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	for range 2 {
		if err := run(t.Context(), dsn, "migrate"); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), dsn, "close"); err == nil || !strings.Contains(err.Error(), "migrate, serve or work") {
		t.Errorf("an unknown command: error %v", err)
	}
	db, err := open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	service, err := newShop(db, console{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := service.place(t.Context(), "ada", "Gesha")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- run(ctx, dsn, "work") }()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(5 * time.Minute); o.Status != "paid"; <-look.C {
		if o, err = service.order(t.Context(), o.ID); err != nil || time.Now().After(deadline) {
			t.Fatalf("waited five minutes for the payment: the order is %+v, error %v", o, err)
		}
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
