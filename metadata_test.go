package falldue_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
	"github.com/falldue/falldue/periodic"
)

// TestReservedNamesOfMetadataAreRefused: in each way to enqueue, and nothing is stored. Names
// that only look like reserved ones are kept, also in a flow.
func TestReservedNamesOfMetadataAreRefused(t *testing.T) {
	t.Parallel()
	q := migrated(t, testdb.Open(t, testdb.SQLite))
	k := falldue.NewKind[int]("k", falldue.KindConfig{})
	for _, name := range []string{"falldue.member", "falldue.waiter", "falldue.later"} {
		with := falldue.EnqueueOptions{Metadata: map[string]string{"a": "b", name: "text"}}
		_, one := k.Enqueue(t.Context(), q, 1, with)
		_, many := k.EnqueueMany(t.Context(), q, []int{1, 2}, with)
		_, inFlow := flow.Chain(k.Params(1, with), k.Params(2, with)).Enqueue(t.Context(), q)
		_, scheduled := periodic.New(q, periodic.Schedule{Name: "s", Spec: "@daily", Task: k.Params(1, with)})
		for what, err := range map[string]error{"Enqueue": one, "EnqueueMany": many, "a flow": inFlow, "a schedule": scheduled} {
			if !errors.Is(err, falldue.ErrInvalid) || !strings.Contains(err.Error(), `metadata "`+name+`"; allowed are names that do not begin with "falldue."`) {
				t.Errorf("%s with metadata %s: error %v", what, name, err)
			}
		}
	}

	want := map[string]string{"falldue": "1", "Falldue.member": "2", "x.falldue.member": "3"}
	ids, err := flow.Chain(k.Params(1, falldue.EnqueueOptions{Metadata: want}), k.Params(2, falldue.EnqueueOptions{Metadata: want})).Enqueue(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	list, err := listed(ops.New(q).Tasks(t.Context(), ops.Filter{}, ops.ListOptions{}))
	if err != nil || len(list) != len(ids) {
		t.Errorf("%d tasks are stored, want %d (error %v)", len(list), len(ids), err)
	}
	for _, task := range list {
		if !maps.Equal(task.Metadata, want) {
			t.Errorf("task %d has the metadata %v, want %v", task.ID, task.Metadata, want)
		}
	}
}
