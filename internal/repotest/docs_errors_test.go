package repotest

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/periodic"
	"github.com/falldue/falldue/sealed"
)

// TestDocumentsShowTheErrors makes errors, and finds their texts in the documents that
// people search for them.
func TestDocumentsShowTheErrors(t *testing.T) {
	t.Parallel()
	q, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{})
	if err == nil {
		err = q.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for document, errs := range map[string][]error{
		"docs/limits.md":       limitErrors(t, q),
		"docs/unique.md":       uniqueErrors(t, q),
		"docs/flow.md":         flowErrors(t, q),
		"docs/periodic.md":     scheduleErrors(t, q),
		"docs/sealed.md":       sealedErrors(t),
		"docs/manage-tasks.md": {runningError(t, q), stateError(t, q)},
		"docs/progress.md":     {noResultError(t, q)},
	} {
		text := wordsOf(readFile(t, document))
		for _, err := range errs {
			if err == nil {
				t.Errorf("%s: one of its errors is nil", document)
			} else if !strings.Contains(text, wordsOf(cause(err))) {
				t.Errorf("%s lacks the error\n%v", document, err)
			}
		}
	}
}

// cause returns the text of an error without the call that returned it, which limits.md
// and unique.md say once.
func cause(err error) string {
	return regexp.MustCompile(`^enqueue( "charge")?: `).ReplaceAllString(err.Error(), "")
}

// anyID is an id in an error, of which documents show another one.
var anyID = regexp.MustCompile(`(task |running: )\d+`)

// wordsOf returns a text with single spaces, and with the id 1.
func wordsOf(text string) string {
	return anyID.ReplaceAllString(strings.Join(strings.Fields(text), " "), "${1}1")
}

func limitErrors(t *testing.T, q *falldue.Queue) (errs []error) {
	for _, list := range [][]falldue.Limit{
		{falldue.AtMost(0)},
		{falldue.Rate(5000, time.Hour)},
		{falldue.Rate(5, 0)},
		{falldue.Rate(5, time.Minute).Burst(2000)},
		{falldue.Rate(2_000_000, time.Second).Burst(10)},
		{falldue.Rate(1, 366*24*time.Hour).Burst(1000)},
		{falldue.Rate(5, time.Minute).Burst(0)},
		{falldue.AtMost(5), falldue.AtMost(6)},
		{nil},
	} {
		_, err := falldue.NewKind[int]("charge", falldue.KindConfig{Limits: list}).Enqueue(t.Context(), q, 1)
		errs = append(errs, err)
	}
	_, err := falldue.New(testdb.Open(t, testdb.SQLite), falldue.Config{
		Queues: map[string]falldue.QueueConfig{"images": {Limits: []falldue.Limit{falldue.InOrder()}}},
	})
	return append(errs, err)
}

func uniqueErrors(t *testing.T, q *falldue.Queue) (errs []error) {
	kind := falldue.NewKind[struct {
		Customer int `json:"customer"`
	}]("report", falldue.KindConfig{})
	for _, u := range []falldue.Unique{
		{By: falldue.ByFields("customr")}, {By: falldue.ByArgs(), For: 1}, {By: falldue.ByKey("")}, {WhileWaiting: true},
		{By: falldue.ByArgs(), OnConflict: falldue.ConflictFail}, {By: falldue.ByArgs(), OnConflict: falldue.ConflictFail},
	} {
		_, err := kind.Enqueue(t.Context(), q, struct {
			Customer int `json:"customer"`
		}{42}, falldue.EnqueueOptions{Unique: u})
		errs = append(errs, err)
	}
	text := falldue.NewKind[string]("text", falldue.KindConfig{})
	fail := falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs(), OnConflict: falldue.ConflictFail}}
	_, err := q.EnqueueMany(t.Context(), text.Params("a", fail), text.Params("a", fail))
	errs = append(errs, err)
	return append(errs[:4], errs[5:]...) // the first to hold the key is stored
}

func flowErrors(t *testing.T, q *falldue.Queue) []error {
	kind := falldue.NewKind[int]("ship", falldue.KindConfig{})
	var g, other flow.Flow
	g.Add(kind.Params(1))
	g.Add(kind.Params(2), flow.After(other.Add(kind.Params(3))))
	_, after := g.Enqueue(t.Context(), q)
	var h flow.Flow
	h.Add(kind.Params(1), flow.After(h.Add(kind.Params(2))), flow.RunAnyway(), flow.CancelOnDeath())
	_, deaths := h.Enqueue(t.Context(), q)
	_, unique := flow.Batch(kind.Params(1, falldue.EnqueueOptions{Unique: falldue.Unique{By: falldue.ByArgs()}})).Enqueue(t.Context(), q)
	return []error{after, deaths, unique}
}

func scheduleErrors(t *testing.T, q *falldue.Queue) (errs []error) {
	task := falldue.NewKind[int]("report", falldue.KindConfig{}).Params(1)
	good := periodic.Schedule{Name: "nightly", Spec: "@daily", Task: task}
	for _, list := range [][]periodic.Schedule{
		{{Name: "nightly", Spec: "30 25 * * *", Task: task}},
		{{Name: "nightly", Spec: "0 0 30 2 *", Task: task}},
		{{Name: "nightly", Spec: "@every 100ms", Task: task}},
		{{Name: "nightly", Spec: "@daily", Zone: "Mars", Task: task}},
		{{Name: "nightly", Spec: "@daily", Missed: periodic.All(0), Task: task}},
		{{Name: "nightly", Spec: "@daily", Missed: periodic.All(5), NoOverlap: true, Task: task}},
		{good, good},
		{{Name: "every night", Spec: "@daily", Task: task}},
	} {
		_, err := periodic.New(q, list...)
		errs = append(errs, err)
	}
	return append(errs, periodic.Pause(t.Context(), q, "nightly"))
}

func sealedErrors(t *testing.T) (errs []error) {
	secret, other := make([]byte, 32), []byte(strings.Repeat("k", 32))
	for _, keys := range [][]sealed.Key{
		nil, {{ID: "2026", Secret: secret}, {ID: "2026", Secret: secret}}, {{ID: "a:b", Secret: secret}}, {{ID: "2026", Secret: secret[:5]}},
	} {
		_, err := sealed.New(keys...)
		errs = append(errs, err)
	}
	codec := func(id string, secret []byte) *sealed.Codec {
		c, err := sealed.New(sealed.Key{ID: id, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	place := falldue.Place{Kind: "pay", Column: "payload"}
	for _, from := range []*sealed.Codec{codec("2025", secret), codec("2026", other)} {
		stored, err := from.Encode(place, []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = codec("2026", secret).Decode(place, stored)
		errs = append(errs, err)
	}
	_, err := codec("2026", secret).Strict().Decode(place, []byte("1"))
	return append(errs, err)
}

// stateError retries a task that waits.
func stateError(t *testing.T, q *falldue.Queue) error {
	receipt, err := falldue.NewKind[int]("waiting", falldue.KindConfig{}).Enqueue(t.Context(), q, 1)
	if err != nil {
		t.Fatal(err)
	}
	return q.Retry(t.Context(), receipt.ID)
}

// runningError deletes a task that runs.
func runningError(t *testing.T, q *falldue.Queue) (err error) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	kind := falldue.NewKind[int]("running", falldue.KindConfig{})
	falldue.Handle(q, kind, func(ctx context.Context, task falldue.Task[int]) error {
		defer stop()
		err = q.Delete(ctx, task.ID)
		return nil
	})
	if _, err := kind.Enqueue(ctx, q, 1); err != nil {
		t.Fatal(err)
	}
	if err := q.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, falldue.ErrRunning) {
		t.Errorf("deleting a task that runs: %v", err)
	}
	return err
}

func noResultError(t *testing.T, q *falldue.Queue) error {
	receipt, err := falldue.NewKind[int]("resultless", falldue.KindConfig{}).Enqueue(t.Context(), q, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = falldue.ResultOf[int](t.Context(), q, receipt.ID)
	return err
}
