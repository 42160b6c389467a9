package queuetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

var filterCases = []conformanceCase{
	{"filters know the age and the key of tasks", func(t *testing.T, f *fixture) {
		q := f.queue(t, falldue.Config{})
		k := falldue.NewKind[int]("aged", falldue.KindConfig{})
		long := strings.Repeat("a key of more than 64 bytes ", 5)
		var ids []int64
		for i, key := range []string{"", "customer 7", long, "", "customer 7"} {
			opts := falldue.EnqueueOptions{Key: key}
			if i < 3 {
				opts.RunAt = time.Now().Add(-2 * time.Hour)
			}
			ids = append(ids, enqueue(t, q, k, i, opts))
		}
		if _, err := f.db.ExecContext(t.Context(), "update falldue_tasks set created_at = updated_at"); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			filter ops.Filter
			want   []int64
		}{
			{ops.Filter{OlderThan: time.Hour}, ids[:3]},
			{ops.Filter{OlderThan: 3 * time.Hour}, nil},
			{ops.Filter{NewerThan: time.Hour}, ids[3:]},
			{ops.Filter{NewerThan: 3 * time.Hour}, ids},
			{ops.Filter{OlderThan: time.Hour, NewerThan: 3 * time.Hour}, ids[:3]},
			{ops.Filter{OlderThan: time.Hour, NewerThan: 90 * time.Minute}, nil},
			{ops.Filter{Key: "customer 7"}, []int64{ids[1], ids[4]}},
			{ops.Filter{Key: "customer 7", NewerThan: time.Hour}, ids[4:]},
			{ops.Filter{Key: long}, ids[2:3]},
			{ops.Filter{Key: "customer"}, nil},
		} {
			list, err := listed(ops.New(q).Tasks(t.Context(), c.filter))
			if got := idsOf(list); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("Tasks with %+v has %v, error %v, want %v", c.filter, got, err, c.want)
			}
			if report, err := ops.New(q).CancelMany(t.Context(), c.filter, ops.BulkOptions{DryRun: true}); err != nil || report.Changed != int64(len(c.want)) {
				t.Errorf("a dry run with %+v counts %+v, error %v, want %d", c.filter, report, err, len(c.want))
			}
		}
		for _, filter := range []ops.Filter{{OlderThan: time.Hour, Key: long}, {Key: "customer 7", NewerThan: time.Hour}} {
			if report, err := ops.New(q).DeleteMany(t.Context(), filter); err != nil || report.Changed != 1 {
				t.Errorf("a delete with %+v: %+v, error %v; want 1 deleted", filter, report, err)
			}
		}
		for i, id := range ids {
			if _, err := q.Task(t.Context(), id); (err == nil) != (i != 2 && i != 4) {
				t.Errorf("after the deletes task number %d: error %v", i, err)
			}
		}
	}},
}

func idsOf(list []falldue.TaskInfo) (ids []int64) {
	for _, task := range list {
		ids = append(ids, task.ID)
	}
	return ids
}
