package queuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

var metadataCases = []conformanceCase{
	{"metadata is stored with a task, and read by its handler and by all other readers", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{Codec: boxes{"red"}, DoneRetention: time.Hour})
		k := falldue.NewKind[noteArgs]("with.metadata", falldue.KindConfig{Policy: parsePolicy(t, "delay 0")})
		ran := make(chan falldue.RunInfo, 10)
		falldue.Handle(q, k, func(_ context.Context, task falldue.Task[noteArgs]) error {
			ran <- task.RunInfo
			if task.Attempt == 1 {
				return errFlaky
			}
			return nil
		})
		metadata := map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "": "ä\"\\\n\t☃", "empty": ""}
		id := enqueue(t, q, k, noteArgs{}, falldue.EnqueueOptions{Metadata: metadata, Key: "customer:1"})
		startWorker(t, q)
		for range 2 {
			if got := receive(t, ran, "a run"); !maps.Equal(got.Metadata, metadata) || got.Key != "customer:1" {
				t.Errorf("the handler has metadata %v and key %q", got.Metadata, got.Key)
			}
		}
		if info := waitForState(t, q, id, falldue.StateDone); !maps.Equal(info.Metadata, metadata) {
			t.Errorf("the task has metadata %v", info.Metadata)
		}
		page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Kind: k.Name()})
		if err != nil || len(page.Tasks) != 1 || !maps.Equal(page.Tasks[0].Metadata, metadata) {
			t.Errorf("found are %+v (error %v)", page.Tasks, err)
		}
		mixed := make([]falldue.EnqueueParams, 1001)
		for i := range mixed {
			o := falldue.EnqueueOptions{Delay: time.Hour}
			if i%2 == 0 {
				o.Metadata = map[string]string{"n": fmt.Sprint(i)}
			}
			mixed[i] = k.Params(noteArgs{}, o)
		}
		receipts, err := q.EnqueueMany(t.Context(), mixed...)
		if err != nil {
			t.Fatal(err)
		}
		if even, odd := readTask(t, q, receipts[1000].ID).Metadata, readTask(t, q, receipts[999].ID).Metadata; even["n"] != "1000" || odd != nil {
			t.Errorf("tasks of one call have metadata %v and %v", even, odd)
		}
		u := falldue.EnqueueOptions{Delay: time.Hour, Unique: falldue.Unique{By: falldue.ByKey("one"), OnConflict: falldue.ConflictReplace}, Metadata: map[string]string{"n": "first"}}
		first := wantNew(t, "a unique task", q, k, noteArgs{}, u)
		if got := readTask(t, q, first).Metadata["n"]; got != "first" {
			t.Errorf("a unique task has metadata %q", got)
		}
		u.Metadata = map[string]string{"n": "second"}
		wantExisting(t, "its successor", first, q, k, noteArgs{}, u)
		if got := readTask(t, q, first).Metadata["n"]; got != "second" {
			t.Errorf("a task whose payload was replaced has metadata %q", got)
		}
		for what, bad := range map[string]map[string]string{
			"too long": {"a": strings.Repeat("x", 10<<10)}, "not UTF-8": {"a": "\xff"}, "a NUL": {"a\x00": ""},
		} {
			_, err := k.Enqueue(t.Context(), q, noteArgs{}, falldue.EnqueueOptions{Metadata: bad})
			if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), "metadata") {
				t.Errorf("metadata that is %s: error %v", what, err)
			}
		}
	}},
}
