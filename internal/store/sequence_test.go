package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/sqlgen"
)

// sequence is the tasks of a key that run in order, under a limit of their kind, too.
type sequence struct {
	t *testing.T
	*Store
	limits []Limit
	ids    []int64
}

const uniqueInSequence = 7

// newSequence stores three tasks. The first one has a unique key.
func newSequence(t *testing.T, s *Store, form LimitForm) *sequence {
	t.Helper()
	for _, table := range []string{"tasks", "uniques", "permits"} {
		s.db.MustExec("delete from falldue_" + table)
	}
	q := &sequence{t: t, Store: s, limits: []Limit{{Name: "kind k order of a", Form: form, Most: 1}, {Name: "kind k running", Form: Running, Most: 1}}}
	entries := make([]Entry, 3)
	for i := range entries {
		entries[i] = Entry{Queue: "default", Kind: "k", Key: "a", Payload: "{}"}
	}
	entries[0].Unique = hashOf(uniqueInSequence)
	receipts, err := s.EnqueueUnique(t.Context(), nil, entries, make([]Unique, len(entries)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range receipts {
		q.ids = append(q.ids, r.ID)
	}
	return q
}

// params returns the parameters of a claim from the lanes of a key.
func (q *sequence) params(key string) ClaimParams {
	formula, err := sqlgen.Compile(sqlgen.Number{})
	if err != nil {
		q.t.Fatal(err)
	}
	p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 5}
	for _, state := range []string{statements.StateOpen, statements.StateSnoozed} {
		for attempts := range 3 {
			at := Lane{State: state, Kind: "k", Key: key, Attempts: attempts}
			limits := slices.Clone(q.limits)
			limits[0].Name = "kind k order of " + key
			p.Sources = append(p.Sources, Source{Lane: at, Running: statements.StateOpen, Delay: NewDelay(formula), Limits: limits})
		}
	}
	return p
}

// claim claims from the lanes of a key, and returns the number of the task that it gets, or -1.
func (q *sequence) claim(key string) (int, *Claim) {
	q.t.Helper()
	result, err := q.ClaimLimited(q.t.Context(), q.params(key))
	if err != nil || len(result.Claims) > 1 {
		q.t.Fatalf("%d claims, error %v", len(result.Claims), err)
	}
	if len(result.Claims) == 0 {
		return -1, nil
	}
	return slices.Index(q.ids, result.Claims[0].ID), result.Claims[0]
}

func (q *sequence) wantNext(key string, want int) *Claim {
	q.t.Helper()
	got, c := q.claim(key)
	if got != want {
		q.t.Errorf("the claim got task %d of the sequence, want %d", got, want)
	}
	return c
}

// end ends a claim whose attempt counts.
func (q *sequence) end(c *Claim, state string) { q.settle(c, state, 0, 0) }

func (q *sequence) settle(c *Claim, state string, more int, wait time.Duration) {
	q.t.Helper()
	if c == nil {
		return
	}
	e := &Settlement{RetainDone: true}
	e.Key, e.State, e.AttemptsDelta, e.Wait = Key{TaskID: c.ID, Fence: c.Fence}, state, more, wait.Microseconds()
	if left, err := q.Settle(q.t.Context(), "w", []*Settlement{e}); err != nil || len(left.Lost) > 0 {
		q.t.Fatal(left, err)
	}
}

// retry retries tasks by their numbers, so that all of them are due after wait, in their order.
func (q *sequence) retry(wait time.Duration, tasks ...int) {
	q.t.Helper()
	q.retryFrom("", wait, tasks...)
}

// retryFrom is retry for tasks in a state that must be named to be retried.
func (q *sequence) retryFrom(state string, wait time.Duration, tasks ...int) {
	q.t.Helper()
	p := ActParams{Action: ActRetry, State: state, Waits: map[int64]time.Duration{}}
	for i, n := range tasks {
		p.IDs, p.Waits[q.ids[n]] = append(p.IDs, q.ids[n]), wait+time.Duration(i-len(tasks))*time.Millisecond
	}
	if acted, err := q.Act(q.t.Context(), p); err != nil || len(acted.Done) != len(tasks) {
		q.t.Fatal(acted, err)
	}
}

// replace replaces the first task, which must wait, by one with a key and a delay.
func (q *sequence) replace(key string, delay time.Duration) {
	q.t.Helper()
	entry := Entry{Queue: "default", Kind: "k", Key: key, Payload: "{}", Delay: delay.Microseconds(), Unique: hashOf(uniqueInSequence)}
	receipts, err := q.EnqueueUnique(q.t.Context(), nil, []Entry{entry}, []Unique{{Conflict: ConflictReplace}})
	if err != nil || receipts[0] != (Receipt{q.ids[0], true}) {
		q.t.Fatal(receipts, err)
	}
}

// change changes the first task, which must wait.
func (q *sequence) change(c WaitingChange) {
	q.t.Helper()
	task, err := q.Task(q.t.Context(), q.ids[0])
	if err != nil {
		q.t.Fatal(err)
	}
	c.Key, c.Queue, c.TaskKey, c.Payload = Key{TaskID: task.ID, Fence: task.Fence}, task.Queue, task.Key, sql.Null[string]{V: "7", Valid: true}
	if changed, err := q.ChangeWaiting(q.t.Context(), c); err != nil || !changed {
		q.t.Fatal(changed, err)
	}
}

// claimInVain makes a claim that finds a task, and then loses one of its permits, or the task itself, to
// another claim. spoil causes the loss.
func (q *sequence) claimInVain(spoil func(found []*Claim, quotas map[string]*quota)) {
	q.t.Helper()
	p := q.params("a")
	before := q.permits()
	claims, err := inTx(q.t.Context(), q.Store, func(x runner) ([]*Claim, error) {
		quotas, err := q.quotas(q.t.Context(), x, p)
		if err != nil {
			return nil, err
		}
		found, rests, err := q.find(q.t.Context(), x, p, quotas)
		if err != nil || len(found) != 1 {
			return nil, cmp.Or(err, fmt.Errorf("found %d tasks", len(found)))
		}
		if err := q.makePermits(q.t.Context(), x, found, quotas); err != nil {
			return nil, err
		}
		spoil(found, quotas)
		return q.takeLimited(q.t.Context(), x, p, found, quotas, rests)
	})
	if err != nil || len(claims) > 0 {
		q.t.Fatalf("a claim in vain got %d tasks, error %v", len(claims), err)
	}
	if after := q.permits(); !slices.Equal(before, after) {
		q.t.Errorf("a claim in vain has changed the permits %v to %v", before, after)
	}
}

// permits returns the tasks that permits name.
func (q *sequence) permits() (list []string) {
	q.t.Helper()
	permits, err := permitsOf(context.Background(), q.Store, q.params("a").Sources[:1])
	if err != nil {
		q.t.Fatal(err)
	}
	for _, p := range permits {
		if p.TaskID != 0 {
			list = append(list, fmt.Sprint(p.Name, " ", p.Key, " ", p.Token))
		}
	}
	return list
}

// TestClaimsInVainOwnNothing: a claim that wins the permit of a sequence and loses the permit of another
// limit, or the task, leaves no trace: its task does not get the place in the sequence, and a task that
// has the place keeps it.
func TestClaimsInVainOwnNothing(t *testing.T) {
	t.Parallel()
	ways := map[string]func(found []*Claim, quotas map[string]*quota){
		"another limit": func(_ []*Claim, quotas map[string]*quota) { quotas["kind k running"].free[0].Token++ },
		"the task":      func(found []*Claim, _ map[string]*quota) { found[0].Fence++ },
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		for way, spoil := range ways {
			for name, form := range map[string]LimitForm{"order": Sequence, "halting order": HaltingSequence} {
				t.Run(name+" lost "+way, func(t *testing.T) {
					fresh := func(t *testing.T) *sequence {
						t.Helper()
						return newSequence(t, s, form)
					}
					t.Run("the first task is replaced with a delay", func(t *testing.T) {
						q := fresh(t)
						q.claimInVain(spoil)
						q.replace("a", time.Hour)
						q.end(q.wantNext("a", 1), statements.StateDone)
					})
					t.Run("it is replaced with another key", func(t *testing.T) {
						q := fresh(t)
						q.claimInVain(spoil)
						q.replace("b", 0)
						q.limits[1].Most = 2
						first := q.wantNext("b", 0)
						q.end(q.wantNext("a", 1), statements.StateDone)
						q.end(first, statements.StateOpen)
						q.end(q.wantNext("a", 2), statements.StateDone)
					})
					t.Run("it has begun", func(t *testing.T) {
						q := fresh(t)
						q.end(q.wantNext("a", 0), statements.StateOpen)
						q.claimInVain(spoil)
						q.end(q.wantNext("a", 0), statements.StateDone)
					})
				})
			}
		}
	})
}

// TestPlacesInASequence: a task has the place in a sequence from its claim until it has ended or is
// replaced. A retried task has a place by its time, as others have, unless its death halts the
// sequence.
func TestPlacesInASequence(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		for name, c := range map[string]struct {
			form LimitForm
			run  func(q *sequence)
		}{
			"dead tasks that are retried run in their order": {Sequence, func(q *sequence) {
				for n := range q.ids {
					q.end(q.wantNext("a", n), statements.StateDead)
				}
				q.retry(0, 0, 1, 2)
				for n := range q.ids {
					q.end(q.wantNext("a", n), statements.StateDone)
				}
			}},
			"a dead task that is retried later does not halt it": {Sequence, func(q *sequence) {
				q.end(q.wantNext("a", 0), statements.StateDead)
				q.retry(time.Hour, 0)
				q.end(q.wantNext("a", 1), statements.StateDone)
			}},
			"a dead task halts it, also when it is retried": {HaltingSequence, func(q *sequence) {
				q.end(q.wantNext("a", 0), statements.StateDead)
				q.wantNext("a", -1)
				q.retry(time.Hour, 0)
				q.wantNext("a", -1)
			}},
			"a done task that is retried later does not halt it": {HaltingSequence, func(q *sequence) {
				q.end(q.wantNext("a", 0), statements.StateDone)
				q.retryFrom(statements.StateDone, time.Hour, 0)
				q.end(q.wantNext("a", 1), statements.StateDone)
			}},
			"a cancelled task that is retried later does not halt it": {HaltingSequence, func(q *sequence) {
				q.end(q.wantNext("a", 0), statements.StateOpen)
				act(q.t, s, ActCancel, q.ids[:1])
				q.retry(time.Hour, 0)
				q.end(q.wantNext("a", 1), statements.StateDone)
			}},
			"a task that has begun and is replaced with a delay does not halt it": {HaltingSequence, func(q *sequence) {
				q.end(q.wantNext("a", 0), statements.StateOpen)
				q.replace("a", time.Hour)
				q.end(q.wantNext("a", 1), statements.StateDone)
			}},
			"nor does one that is replaced with another key": {HaltingSequence, func(q *sequence) {
				q.end(q.wantNext("a", 0), statements.StateOpen)
				q.replace("b", 0)
				q.end(q.wantNext("a", 1), statements.StateDone)
				q.end(q.wantNext("b", 0), statements.StateDone)
			}},
			"a task that has begun and gets other arguments keeps its place": {Sequence, func(q *sequence) {
				q.end(q.wantNext("a", 0), statements.StateOpen)
				q.change(WaitingChange{InPlace: true})
				q.end(q.wantNext("a", 0), statements.StateOpen)
				q.change(WaitingChange{RunAt: sql.Null[int64]{V: 1 << 52, Valid: true}})
				q.end(q.wantNext("a", 1), statements.StateDone)
			}},
			"and so does a dead one that halts it and is retried": {HaltingSequence, func(q *sequence) {
				q.end(q.wantNext("a", 0), statements.StateDead)
				q.retry(0, 0)
				q.change(WaitingChange{InPlace: true})
				q.end(q.wantNext("a", 0), statements.StateDone)
			}},
			"a snoozed task keeps its place": {Sequence, func(q *sequence) {
				q.settle(q.wantNext("a", 0), statements.StateSnoozed, -1, time.Hour)
				q.wantNext("a", -1)
			}},
		} {
			t.Run(name, func(t *testing.T) {
				c.run(newSequence(t, s, c.form))
			})
		}
	})
}

// TestClaimsSeeWhatComesBetween: a task that is cancelled or replaced after a claim has found it is
// not claimed, even where the claim has no lock on its row.
func TestClaimsSeeWhatComesBetween(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := stores(t, engine, 1)[0]
		for what, change := range map[string]func(x runner, q *sequence) error{
			"a cancel": func(x runner, q *sequence) error {
				p := ActParams{Action: ActCancel, IDs: q.ids[:1]}
				found, err := q.allowed(t.Context(), x, p, statements.Unlocked)
				return cmp.Or(err, q.act(t.Context(), x, p, found))
			},
			"a cancel and a retry": func(x runner, q *sequence) error {
				p := ActParams{Action: ActCancel, IDs: q.ids[:1]}
				found, err := q.allowed(t.Context(), x, p, statements.Unlocked)
				err = cmp.Or(err, q.act(t.Context(), x, p, found))
				p.Action = ActRetry
				found, other := q.allowed(t.Context(), x, p, statements.Unlocked)
				return cmp.Or(err, other, q.act(t.Context(), x, p, found))
			},
			"a replacement": func(x runner, q *sequence) error {
				entry := Entry{Queue: "default", Kind: "k", Key: "a", Payload: `{"new":1}`, Unique: hashOf(uniqueInSequence)}
				return q.newUniqueEnqueue(x, []Entry{entry}, []Unique{{Conflict: ConflictReplace}}).run(t.Context(), nil)
			},
		} {
			q := newSequence(t, s, Sequence)
			claims, err := inTx(t.Context(), s, func(x runner) ([]*Claim, error) {
				p := q.params("a")
				found, err := q.findIn(t.Context(), x, p, []wantedTasks{{source: 0, room: 1}})
				if err != nil || len(found) != 1 || found[0].ID != q.ids[0] {
					t.Fatalf("found %d tasks, error %v", len(found), err)
				}
				if err := change(x, q); err != nil {
					return nil, err
				}
				return s.takeAll(t.Context(), x, p, found)
			})
			if err != nil || len(claims) > 0 {
				t.Errorf("%s between a claim's statements: it got %d tasks, error %v", what, len(claims), err)
			}
		}
	})
}

// counting counts the statements of a runner.
type counting struct {
	runner
	n *int
}

func (c counting) query(ctx context.Context, stmt statements.Stmt, values statements.Values, rows []statements.Row, f func(row) error) error {
	*c.n++
	return c.runner.query(ctx, stmt, values, rows, f)
}

// TestTwoStatementsFindAllNextTasks: a claim finds the next tasks of all sequences with two statements, although each
// sequence has several lanes. No lane of a sequence is searched after the first task of the sequence was found locked.
func TestTwoStatementsFindAllNextTasks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		const keys = 30
		s := stores(t, engine, 1)[0]
		var sources []Source
		for _, from := range keyed(t, s, keys, 2, Limit{Form: Sequence, Most: 1}) {
			snoozed := from
			snoozed.State = statements.StateSnoozed
			sources = append(sources, from, snoozed)
		}
		want := keys
		if s.server.Caps.SkipLocked {
			want--
			tasks, err := s.Tasks(t.Context(), Filter{Key: sources[0].Key, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			tx := begin(t, s.db)
			tx.MustExec(fmt.Sprint("update falldue_tasks set payload = payload where id = ", min(tasks[0].ID, tasks[1].ID)))
			defer func() { _ = tx.Rollback() }()
		}
		p := ClaimParams{Queue: "default", Worker: "w", Lease: time.Minute, Limit: 100, Sources: sources}
		_, err := inTx(t.Context(), s, func(x runner) ([]*Claim, error) {
			quotas, err := s.quotas(t.Context(), x, p)
			if err != nil {
				return nil, err
			}
			n := 0
			found, rests, err := s.find(t.Context(), counting{x, &n}, p, quotas)
			if err != nil {
				return nil, err
			}
			if len(found) != want || n != 2 {
				t.Errorf("found %d tasks with %d statements, want %d with 2", len(found), n, want)
			}
			for i, rest := range rests {
				if rest.Why != Saturated {
					t.Errorf("the lane of %+v: %+v", sources[i].Lane, rest)
				}
			}
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
