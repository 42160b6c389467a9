package tasktest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// Enqueued is a task that has been enqueued.
type Enqueued[A any] struct {
	falldue.TaskInfo
	// Args are the arguments with which the task was enqueued.
	Args A
}

// All returns the unfinished tasks of a kind, ordered by their IDs.
func All[A any](t testing.TB, q *falldue.Queue, k falldue.Kind[A]) []Enqueued[A] {
	t.Helper()
	return all(t, k, pagesOf(t, q))
}

// AllTx is like [All] inside tx: it also returns tasks that tx has enqueued.
func AllTx[A any](t testing.TB, q *falldue.Queue, tx falldue.Tx, k falldue.Kind[A]) []Enqueued[A] {
	t.Helper()
	return all(t, k, pagesIn(t, q, tx))
}

// RequireEnqueued fails the test unless exactly one unfinished task of a kind has the arguments args. It returns that
// task. Arguments are compared after a round trip through JSON.
func RequireEnqueued[A any](t testing.TB, q *falldue.Queue, k falldue.Kind[A], args A) falldue.TaskInfo {
	t.Helper()
	return requireOne(t, k, pagesOf(t, q), args)
}

// RequireEnqueuedTx is like [RequireEnqueued] inside tx: it also sees tasks that tx has enqueued.
func RequireEnqueuedTx[A any](t testing.TB, q *falldue.Queue, tx falldue.Tx, k falldue.Kind[A], args A) falldue.TaskInfo {
	t.Helper()
	return requireOne(t, k, pagesIn(t, q, tx), args)
}

// RequireNoneEnqueued fails the test if the kind has an unfinished task.
func RequireNoneEnqueued[A any](t testing.TB, q *falldue.Queue, k falldue.Kind[A]) {
	t.Helper()
	requireNone(t, k, All(t, q, k))
}

// RequireNoneEnqueuedTx is like [RequireNoneEnqueued] inside tx: it also sees tasks that tx has enqueued.
func RequireNoneEnqueuedTx[A any](t testing.TB, q *falldue.Queue, tx falldue.Tx, k falldue.Kind[A]) {
	t.Helper()
	requireNone(t, k, AllTx(t, q, tx, k))
}

const pageSize = 1000

// pages returns a page of tasks.
type pages func(ops.Filter, ops.ListOptions) (ops.Page, error)

func pagesOf(t testing.TB, q *falldue.Queue) pages {
	t.Helper()
	requireQueue(t, q)
	return func(f ops.Filter, o ops.ListOptions) (ops.Page, error) { return ops.New(q).Tasks(t.Context(), f, o) }
}

func pagesIn(t testing.TB, q *falldue.Queue, tx falldue.Tx) pages {
	t.Helper()
	requireQueue(t, q)
	return func(f ops.Filter, o ops.ListOptions) (ops.Page, error) {
		return ops.New(q).TasksTx(t.Context(), tx, f, o)
	}
}

func unfinished(t falldue.TaskInfo) bool {
	return t.State == falldue.StateOpen || t.State == falldue.StateSnoozed || t.State == falldue.StateBlocked
}

func all[A any](t testing.TB, k falldue.Kind[A], list pages) (found []Enqueued[A]) {
	t.Helper()
	if k.Name() == "" {
		t.Fatal("tasktest: the Kind is empty: make it with NewKind")
	}
	for after := int64(0); ; {
		page, err := list(ops.Filter{Kind: k.Name()}, ops.ListOptions{Limit: pageSize, After: after})
		if err != nil {
			t.Fatalf("tasktest: list the tasks of kind %q: %v", k.Name(), err)
		}
		for _, info := range page.Tasks {
			if !unfinished(info) {
				continue
			}
			if info.DecodeError != nil {
				t.Fatalf("tasktest: task %d of kind %q: %v", info.ID, k.Name(), info.DecodeError)
			}
			one := Enqueued[A]{TaskInfo: info}
			if err := json.Unmarshal(info.Payload, &one.Args); err != nil {
				t.Fatalf("tasktest: task %d of kind %q: %v", info.ID, k.Name(), err)
			}
			found = append(found, one)
		}
		if !page.More {
			return found
		}
		after = page.Next
	}
}

func requireOne[A any](t testing.TB, k falldue.Kind[A], list pages, args A) falldue.TaskInfo {
	t.Helper()
	found := all(t, k, list)
	want, err := stored(args)
	if err != nil {
		t.Fatalf("tasktest: the arguments of kind %q: %v", k.Name(), err)
	}
	var same []falldue.TaskInfo
	for _, one := range found {
		if reflect.DeepEqual(one.Args, want) {
			same = append(same, one.TaskInfo)
		}
	}
	if len(same) != 1 {
		t.Fatalf("tasktest: %d tasks of kind %q are enqueued with %+v, want 1; %s%s", len(same), k.Name(), args, listing(found), otherKinds(list, k.Name(), len(found)))
	}
	return same[0]
}

func requireNone[A any](t testing.TB, k falldue.Kind[A], found []Enqueued[A]) {
	t.Helper()
	if len(found) > 0 {
		t.Fatalf("tasktest: %d tasks of kind %q are enqueued, want none; %s", len(found), k.Name(), listing(found))
	}
}

// stored returns arguments as a handler gets them.
func stored[A any](args A) (read A, err error) {
	text, err := json.Marshal(args)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	return read, err
}

// maxListed is how many tasks an error names.
const maxListed = 10

func listing[A any](found []Enqueued[A]) string {
	if len(found) == 0 {
		return "no task of the kind waits or runs"
	}
	var text strings.Builder
	text.WriteString("these wait or run:")
	for i, one := range found {
		if i == maxListed {
			fmt.Fprintf(&text, "\n\tand %d more", len(found)-i)
			break
		}
		fmt.Fprintf(&text, "\n\ttask %d in queue %q: %s", one.ID, one.Queue, one.Payload)
	}
	return text.String()
}

// otherKinds names the kinds of unfinished tasks if none of the n is of the kind.
func otherKinds(list pages, kind string, n int) string {
	if n > 0 {
		return ""
	}
	page, err := list(ops.Filter{}, ops.ListOptions{Limit: pageSize})
	if err != nil {
		return "" // the error is about the tasks of the kind
	}
	var names []string
	for _, info := range page.Tasks {
		if unfinished(info) && info.Kind != kind {
			names = append(names, info.Kind)
		}
	}
	if slices.Sort(names); len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; tasks of kinds %q do", slices.Compact(names))
}
