package ops_test

import (
	"reflect"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

func TestWhyOfABlockedTask(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		b := newBacklog(t, engine)
		i, kind := b.ops(nil), falldue.NewKind[int]("mail", falldue.KindConfig{})
		ids, err := flow.Batch(kind.Params(1), kind.Params(2)).Then(kind.Params(3)).Enqueue(t.Context(), b.queue)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.queue.Cancel(t.Context(), ids[0]); err != nil {
			t.Fatal(err)
		}
		w := b.why(i, ids[2])
		want := ops.WhyMembers{Counts: flow.Counts{Pending: 1, Cancelled: 1}, WaitsFor: ids[1:2], Failed: ids[:1], OnDeath: flow.StaysBlocked}
		if c := onlyReason[ops.WhyMembers](t, w); !reflect.DeepEqual(c, want) || len(w.Conditions) != 2 || !w.Next().IsZero() || w.Runnable() {
			t.Errorf("%+v, want %+v", w.Conditions, want)
		}
	})
}
