package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/storable"
	"github.com/falldue/falldue/internal/store"
)

// Deed is an entry of the audit log: an action of a person on tasks, queues, policies or schedules.
type Deed struct {
	At time.Time // when the deed was recorded; [Ops.Record] sets it
	falldue.Note
	// Action is a word such as retry, and Target names what was changed, such as task 5.
	Action, Target string
	// Changed is how many tasks, schedules, pauses or policies were changed.
	Changed int64
}

// The lengths up to which a deed is kept.
const mostDeedWord, mostDeedText = 200, 4000

// Record stores a deed for [Ops.Audit]. Why and Target are cut after 4,000 characters, and other texts after 200.
// Changes through this package or a [falldue.Queue] are not recorded automatically: package dash records the changes of
// its users.
func (o *Ops) Record(ctx context.Context, d Deed) error {
	if d.Action == "" {
		return fmt.Errorf("ops: %w: an audit entry without an Action", falldue.ErrInvalid)
	}
	return o.store.PutDeed(ctx, store.Deed{
		Who: cut(d.Who, mostDeedWord), Why: cut(d.Why, mostDeedText),
		Action: cut(d.Action, mostDeedWord), Target: cut(d.Target, mostDeedText), Changed: d.Changed,
	})
}

// Audit returns up to limit deeds, newest first. Deeds are kept for 90 days.
func (o *Ops) Audit(ctx context.Context, limit int) ([]Deed, error) {
	rows, err := o.store.Audit(ctx, limit)
	list := make([]Deed, len(rows))
	for i, r := range rows {
		list[i] = Deed{At: store.Time(r.Created), Note: falldue.Note{Who: r.Who, Why: r.Why}, Action: r.Action, Target: r.Target, Changed: r.Changed}
	}
	return list, err
}

// cut returns the first characters of a text, as any database can store them.
func cut(text string, most int) string {
	text = storable.Text(strings.ToValidUTF8(text, "\uFFFD"))
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}
