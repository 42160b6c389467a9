package moving_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

const invoiceJob = "Shop::InvoiceJob"

var (
	later   = time.Date(2037, time.January, 2, 3, 4, 5, 250_000_000, time.UTC)
	latest  = later.AddDate(0, 0, 1)
	seconds = func(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
)

// store stores a job as Sidekiq and Faktory do: in front of the list of a queue, or in a
// sorted set by its time.
func store(t *testing.T, server *miniredis.Miniredis, key, job string, at time.Time) {
	t.Helper()
	var err error
	if at.IsZero() {
		_, err = server.Lpush(key, job)
	} else {
		_, err = server.ZAdd(key, seconds(at), job)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestJobsOfSidekiqMove: jobs wait in queues, for their time, and for a retry. They have
// as many attempts left as Sidekiq would have made. Dead jobs, and those that a process of
// Sidekiq Pro holds, do not move.
func TestJobsOfSidekiqMove(t *testing.T) {
	server := miniredis.RunT(t)
	if _, err := server.SAdd("queues", "default", "low"); err != nil {
		t.Fatal(err)
	}
	for _, j := range []struct {
		key, job string
		at       time.Time
	}{
		{key: "queue:default", job: `{"retry":true,"queue":"default","class":"Shop::InvoiceJob","args":[1,9007199254740993,"é"],"jid":"a1","created_at":1767323045123,"enqueued_at":1767323045123}`},
		{key: "queue:default", job: `{"retry":4,"queue":"default","class":"Shop::InvoiceJob","args":[2],"jid":"a2"}`},
		{key: "queue:default", job: `{"retry":false,"queue":"default","class":"Shop::InvoiceJob","args":[3],"jid":"a3"}`},
		{key: "queue:default", job: `{"retry":true,"retry_for":3600,"queue":"default","class":"Shop::InvoiceJob","args":[4],"jid":"a4"}`},
		{key: "queue:low", job: `{"retry":true,"queue":"low","class":"Sidekiq::ActiveJob::Wrapper","wrapped":"Shop::InvoiceJob","args":[{"job_class":"Shop::InvoiceJob","job_id":"b1","queue_name":"low","arguments":[5,{"_aj_globalid":"gid://shop/Order/5"}],"executions":0}],"jid":"a5"}`},
		{key: "schedule", at: later, job: `{"retry":true,"queue":"default","class":"Shop::InvoiceJob","args":[6],"jid":"a6"}`},
		{key: "retry", at: latest, job: `{"retry":true,"queue":"default","class":"Shop::InvoiceJob","args":[7],"jid":"a7","error_message":"boom","error_class":"RuntimeError","failed_at":1767323045123,"retry_count":0}`},
		{key: "retry", at: latest.Add(time.Second), job: `{"retry":3,"queue":"low","class":"Shop::InvoiceJob","args":[8],"jid":"a8","error_message":"boom","failed_at":1767323045123,"retried_at":1767323045123,"retry_count":2}`},
		{key: "dead", at: later, job: `{"retry":true,"queue":"default","class":"Shop::InvoiceJob","args":[91],"jid":"a91","retry_count":25}`},
		{key: "queue:sq|host|default", job: `{"retry":true,"queue":"default","class":"Shop::InvoiceJob","args":[92],"jid":"a92"}`},
	} {
		store(t, server, j.key, j.job, j.at)
	}
	want := []task{
		{Queue: "default", Kind: invoiceJob, Payload: `[1,9007199254740993,"é"]`, MaxAttempts: 26},
		{Queue: "default", Kind: invoiceJob, Payload: `[2]`, MaxAttempts: 5},
		{Queue: "default", Kind: invoiceJob, Payload: `[3]`, MaxAttempts: 1},
		{Queue: "default", Kind: invoiceJob, Payload: `[4]`},
		{Queue: "low", Kind: invoiceJob, Payload: `[5,{"_aj_globalid":"gid://shop/Order/5"}]`, MaxAttempts: 26},
		{Queue: "default", Kind: invoiceJob, Payload: `[6]`, MaxAttempts: 26, At: later},
		{Queue: "default", Kind: invoiceJob, Payload: `[7]`, MaxAttempts: 25, At: latest},
		{Queue: "low", Kind: invoiceJob, Payload: `[8]`, MaxAttempts: 1, At: latest.Add(time.Second)},
	}
	checkMove(t, "sidekiq", "redis://"+server.Addr(), want)
}

// TestJobsOfFaktoryMove: the same for Faktory.
func TestJobsOfFaktoryMove(t *testing.T) {
	server := miniredis.RunT(t)
	if _, err := server.SAdd("queues", "default"); err != nil {
		t.Fatal(err)
	}
	for _, j := range []struct {
		key, job string
		at       time.Time
	}{
		{key: "q:default", job: `{"jid":"a1","queue":"default","jobtype":"Shop::InvoiceJob","args":[1],"created_at":"2026-01-02T03:04:05.123456789Z","retry":25}`},
		{key: "q:default", job: `{"jid":"a2","queue":"default","jobtype":"Shop::InvoiceJob","args":[2]}`},
		{key: "q:default", job: `{"jid":"a3","queue":"default","jobtype":"Shop::InvoiceJob","args":[3],"retry":-1}`},
		{key: "q:default", job: `{"jid":"a4","queue":"default","jobtype":"Shop::InvoiceJob","args":[4],"retry":5,"failure":{"retry_count":1,"remaining":4,"failed_at":"2026-01-02T03:04:05Z","message":"boom"}}`},
		{key: "scheduled", at: later, job: `{"jid":"a5","queue":"default","jobtype":"Shop::InvoiceJob","args":[5],"retry":25,"at":"2037-01-02T03:04:05.25Z"}`},
		{key: "retries", at: latest, job: `{"jid":"a6","queue":"default","jobtype":"Shop::InvoiceJob","args":[6],"retry":25,"failure":{"retry_count":0,"remaining":25,"failed_at":"2026-01-02T03:04:05Z"}}`},
		{key: "dead", at: later, job: `{"jid":"a91","queue":"default","jobtype":"Shop::InvoiceJob","args":[91],"retry":25,"failure":{"retry_count":25,"remaining":0}}`},
		{key: "working", at: later, job: `{"job":{"jid":"a92","queue":"default","jobtype":"Shop::InvoiceJob","args":[92]}}`},
	} {
		store(t, server, j.key, j.job, j.at)
	}
	want := []task{
		{Queue: "default", Kind: invoiceJob, Payload: `[1]`, MaxAttempts: 26},
		{Queue: "default", Kind: invoiceJob, Payload: `[2]`, MaxAttempts: 26},
		{Queue: "default", Kind: invoiceJob, Payload: `[3]`, MaxAttempts: 1},
		{Queue: "default", Kind: invoiceJob, Payload: `[4]`, MaxAttempts: 4},
		{Queue: "default", Kind: invoiceJob, Payload: `[5]`, MaxAttempts: 26, At: later},
		{Queue: "default", Kind: invoiceJob, Payload: `[6]`, MaxAttempts: 25, At: latest},
	}
	checkMove(t, "sidekiq", "redis://"+server.Addr(), want)
}
