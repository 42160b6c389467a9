package faults

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/falldue/falldue"
)

// uniqueKeys is the number of unique keys of a run.
const uniqueKeys = 100

// hold is how long the jobs of a unique key hold it, and what becomes of another job then.
type hold byte

// The holds. Each key has one: its first letter.
const (
	holdUnfinished    hold = 'u'
	holdWaiting       hold = 'w'
	holdFor           hold = 'f'
	replaceUnfinished hold = 'r' // while it is unfinished
	replaceWaiting    hold = 's' // while it waits
	replaceFor        hold = 't'
)

var holds = []hold{holdUnfinished, holdUnfinished, holdWaiting, holdFor, replaceUnfinished, replaceWaiting, replaceFor}

// heldFor is how long the keys of holdFor and replaceFor are held.
const heldFor = time.Second

func holdOf(unique string) hold {
	if unique == "" {
		return 0
	}
	return hold(unique[0])
}

// replaces reports whether a job takes the place of one that waits.
func (h hold) replaces() bool {
	return h == replaceUnfinished || h == replaceWaiting || h == replaceFor
}

// byClaim reports whether a claim may release the key.
func (h hold) byClaim() bool { return h == holdWaiting || h.replaces() }

func (h hold) options() falldue.EnqueueOptions {
	u := falldue.Unique{By: falldue.ByFields("unique")}
	switch h {
	case holdWaiting, replaceWaiting:
		u.WhileWaiting = true
	case holdFor, replaceFor:
		u.For = heldFor
	}
	if h.replaces() {
		u.OnConflict = falldue.ConflictReplace
	}
	return falldue.EnqueueOptions{Unique: u}
}

// replaceable marks the keys of jobs that may take the place of another one. A task may have
// the arguments of several of them, one after the other.
const replaceable = "~"

// lifeOf returns the key of the life to which a task with a key belongs: its ID if its
// arguments may be replaced.
func lifeOf(key string, id int64) string {
	if strings.HasSuffix(key, replaceable) {
		return fmt.Sprint("with-id-", id)
	}
	return key
}

// uniqueParams returns a plain job that holds a unique key, and its own key.
func (e *enqueuer) uniqueParams() (falldue.EnqueueParams, string) {
	e.made++
	n := e.dice.IntN(uniqueKeys)
	h := holds[n%len(holds)]
	job := Job{Key: keyOf(e.Name, e.made), Unique: fmt.Sprint(string(h), n)}
	if h.replaces() {
		job.Key += replaceable
	}
	return e.kinds.plain.Params(job, h.options()), job.Key
}

// uniquely enqueues one or two jobs with unique keys, by themselves or in a transaction.
func (e *enqueuer) uniquely(ctx context.Context) error {
	n := 1 + e.dice.IntN(2)
	params, keys := make([]falldue.EnqueueParams, n), make([]string, n)
	for i := range params {
		params[i], keys[i] = e.uniqueParams()
	}
	var receipts []falldue.Receipt
	var err error
	if e.dice.IntN(2) == 0 {
		receipts, err = e.queue.EnqueueMany(ctx, params...)
	} else {
		receipts, err = e.uniquelyInTransaction(ctx, params)
	}
	if err != nil {
		return err
	}
	for i, r := range receipts {
		what := Acknowledged
		if r.Existed {
			what = Existed
		}
		e.write(what, keys[i:i+1], []int64{r.ID})
	}
	return nil
}

func (e *enqueuer) uniquelyInTransaction(ctx context.Context, params []falldue.EnqueueParams) ([]falldue.Receipt, error) {
	tx, err := begin(ctx, e.db)
	if err != nil {
		return nil, err
	}
	defer tx.close()
	receipts, err := e.queue.EnqueueManyTx(ctx, tx, params...)
	if err != nil {
		return nil, err
	}
	return receipts, tx.Commit()
}

// EnqueueUnique enqueues jobs with few unique keys until ctx ends, and nothing else.
func (r Role) EnqueueUnique(ctx context.Context) error {
	history, err := OpenHistory(r.Folder, r.Name)
	if err != nil {
		return err
	}
	defer history.Close()
	db, q, err := r.open(ctx, nil)
	if err != nil {
		return unless(ctx, err)
	}
	defer db.Close()
	kinds, err := newKinds(r.Policy)
	if err != nil {
		return err
	}
	e := &enqueuer{Role: r, db: db, queue: q, history: history, kinds: kinds, dice: rand.New(rand.NewPCG(r.Seed, rand.Uint64()))}
	for ctx.Err() == nil {
		if err := e.uniquely(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("cannot enqueue", "process", r.Name, "error", err) // a deadlock, for example
		}
	}
	return nil
}

// released returns the first moment at which the key of a task may have been free, or the zero
// time if nobody knows: its first claim may not have been seen.
func (l *life) released() time.Time {
	r := l.rows[0]
	claim, seen := l.claimed()[1]
	switch h := holdOf(r.Unique); {
	case h == holdFor:
		return r.CreatedAt.Add(heldFor)
	case h.byClaim() && !seen && r.Fence > 0:
		return time.Time{}
	case h == replaceFor && claim.After(r.CreatedAt.Add(heldFor)):
		return r.CreatedAt.Add(heldFor)
	case h.byClaim() && seen:
		return claim
	}
	return r.EndedAt
}

// holdersAtOnce returns the tasks that were stored while another one held their unique key.
func holdersAtOnce(lives map[string]*life) (list []finding) {
	holders := map[string][]*life{}
	for _, l := range lives {
		if len(l.rows) == 1 && l.rows[0].Unique != "" {
			holders[l.rows[0].Unique] = append(holders[l.rows[0].Unique], l)
		}
	}
	for unique, all := range holders {
		slices.SortFunc(all, func(a, b *life) int {
			return cmp.Or(a.rows[0].CreatedAt.Compare(b.rows[0].CreatedAt), a.rows[0].EndedAt.Compare(b.rows[0].EndedAt))
		})
		for i, next := range all[1:] {
			holder, at := all[i], next.rows[0].CreatedAt
			if free := holder.released(); at.Before(free) {
				list = append(list, finding{next.key, fmt.Sprintf("it was stored at %v, and task %s held the unique key %s until %v", at, holder.key, unique, free)})
			}
		}
	}
	return list
}

// replacedInVain returns the tasks whose arguments were replaced too late, and those that do
// not have the arguments that replaced theirs.
func replacedInVain(lives map[string]*life) (list []finding) {
	for _, l := range lives {
		if len(l.rows) != 1 || !holdOf(l.rows[0].Unique).replaces() {
			continue
		}
		r := l.rows[0]
		if start, ok := l.start(r.Fence); ok && start.Key != r.Key {
			list = append(list, finding{l.key, fmt.Sprintf("its last run had the arguments of %s, and it has those of %s", start.Key, r.Key)})
		}
		for _, e := range l.existed {
			// An enqueuer makes one after the other. Which of two enqueuers came last nobody knows.
			older := r.Key == l.first || processOf(r.Key) == processOf(e.Key) && numberOf(r.Key) < numberOf(e.Key)
			if older && holdOf(r.Unique) != replaceFor { // which does not replace one that has ended
				list = append(list, finding{l.key, fmt.Sprintf("it has the arguments of %s, and those of %s replaced them", r.Key, e.Key)})
				break
			}
		}
	}
	return list
}

// inTwoTasks returns the keys of replaceable jobs that more than one task had as arguments.
func inTwoTasks(lives map[string]*life) (list []finding) {
	ids := map[string]int64{}
	note := func(key string, id int64) {
		if other, ok := ids[key]; ok && other != id {
			list = append(list, finding{key, fmt.Sprintf("tasks %d and %d have its arguments", other, id)})
		}
		ids[key] = id
	}
	for _, l := range lives {
		for _, r := range l.rows {
			if holdOf(r.Unique).replaces() {
				note(r.Key, r.ID)
			}
		}
		for _, e := range l.started {
			if strings.HasSuffix(e.Key, replaceable) {
				note(e.Key, e.ID)
			}
		}
	}
	return list
}

// withoutHolder returns the tasks that were not stored because of one that is not there.
func withoutHolder(history []Event, table []Row) (list []finding) {
	there := map[int64]bool{}
	for _, r := range table {
		there[r.ID] = true
	}
	for _, e := range history {
		if e.What == Existed && !there[e.ID] {
			list = append(list, finding{e.Key, fmt.Sprintf("it was not stored because of task %d, which is not in the table", e.ID)})
		}
	}
	return list
}
