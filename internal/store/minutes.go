package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

type (
	// Sums is what happened to the tasks of a queue and a kind in a span of time.
	Sums = statements.Sums
	// SpanSums are the sums of a span.
	SpanSums = statements.SpanSums
	// Distribution is how long some things took.
	Distribution = statements.Distribution
)

// Steps are the lengths of the spans for which sums are kept, with how long they are kept.
var Steps = map[time.Duration]time.Duration{
	time.Minute:      26 * time.Hour,
	10 * time.Minute: 8 * 24 * time.Hour,
	time.Hour:        90 * 24 * time.Hour,
}

// AddMinutes adds sums to the minute, the ten minutes and the hour that include the time back ago. It adds all of
// them, or none after an error other than a lost connection.
func (s *Store) AddMinutes(ctx context.Context, sums []Sums, back time.Duration) error {
	var list []SpanSums
	for _, step := range statements.Steps {
		for _, one := range sums {
			list = append(list, SpanSums{Span: int64(step), Sums: one})
		}
	}
	slices.SortFunc(list, func(a, b SpanSums) int { // all lock rows in the order of their key
		return cmp.Or(cmp.Compare(a.Span, b.Span), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind))
	})
	values := statements.Values{"back": back.Microseconds()}
	_, err := inTx(ctx, s, func(x runner) (struct{}, error) {
		return struct{}{}, inBatches(s, list, func(batch []SpanSums) error {
			rows := statements.MinuteColumns.Rows(len(batch), func(i int) *SpanSums { return &batch[i] })
			_, err := x.exec(ctx, s.batch("add minutes", len(batch), statements.AddMinutes), values, rows)
			return err
		})
	})
	return err
}

// MinuteParams say which sums [Store.Minutes] returns.
type MinuteParams struct {
	From, To        time.Time
	Step            time.Duration // one of Steps
	Queue, Kind     string        // "" for all
	ByQueue, ByKind bool          // else the sums of all are added
}

// Minutes returns the sums of the spans that begin from one time to another, in the order of time. Spans without
// any are missing.
func (s *Store) Minutes(ctx context.Context, p MinuteParams) (list []SpanSums, err error) {
	group := statements.MinuteParams{ByQueue: p.ByQueue, ByKind: p.ByKind}
	stmt := s.fixed(fmt.Sprintf("read minutes %v", group), func(server dialect.Server, tables dialect.Tables) statements.Stmt {
		return statements.ReadMinutes(server, tables, group)
	})
	values := statements.Values{"span": int64(p.Step / time.Second), "since": p.From.UnixMicro(), "upto": p.To.UnixMicro(), "queue": p.Queue, "kind": p.Kind}
	err = s.read(ctx, stmt, values, func() { list = nil }, func(r row) error {
		var sums SpanSums
		err := statements.SpanSumsColumns.Scan(r, &sums)
		list = append(list, sums)
		return err
	})
	return list, err
}

// DropOldMinutes deletes the sums that have been kept for long enough, about a thousand rows at a time.
func (s *Store) DropOldMinutes(ctx context.Context) error {
	for _, step := range statements.Steps {
		keep := Steps[time.Duration(step)*time.Second].Microseconds()
		for full := true; full; {
			upto := time.Now().AddDate(100, 0, 0).UnixMicro() // of the rest, all that are old
			values := statements.Values{"span": int64(step), "keep": keep, "skip": 999}
			err := s.read(ctx, s.fixed("old minutes", statements.OldMinutes), values, func() { full = false }, func(r row) (err error) {
				full = true
				upto, err = r.int(0)
				return err
			})
			if err != nil {
				return err
			}
			values["upto"] = upto
			if _, err := s.affect(ctx, "drop minutes", statements.DropMinutes, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// Gauge is what was measured of the tasks of a queue and a kind.
type Gauge struct {
	Queue string           `json:"queue"`
	Kind  string           `json:"kind"`
	Tasks map[string]int64 `json:"tasks,omitempty"` // estimates, by state
	// OldestDue is for how long the first due task has waited, in microseconds; 0 if none is due.
	OldestDue int64 `json:"oldest_due_us,omitempty"`
}

// Sample is what was last measured of all tasks. It is stored as JSON.
type Sample struct {
	At     time.Time     `json:"-"` // when a process last began to measure; zero if none has
	Age    time.Duration `json:"-"` // since then, by the database's clock
	Took   time.Duration `json:"took_ns"`
	Gauges []Gauge       `json:"gauges"`
}

// Sample returns what was last measured. A process that has taken the sample may be measuring still: then the
// sample is what was measured before.
func (s *Store) Sample(ctx context.Context) (sample Sample, err error) {
	var stored statements.Sample
	err = s.read(ctx, s.fixed("read sample", statements.ReadSample), nil, func() { stored = statements.Sample{} }, func(r row) error {
		return statements.SampleColumns.Scan(r, &stored)
	})
	if err != nil || stored.At == 0 {
		return sample, err
	}
	if stored.Text.Valid {
		if err := json.Unmarshal([]byte(stored.Text.V), &sample); err != nil {
			return Sample{}, fmt.Errorf("falldue: read the sample: %w", err)
		}
	}
	sample.At, sample.Age = Time(stored.At), Duration(stored.Now-stored.At)
	return sample, nil
}

// TakeSample reports whether this process is to measure: the last one did longer ago than age. Of all
// processes that ask, one is told so.
func (s *Store) TakeSample(ctx context.Context, age time.Duration) (mine bool, err error) {
	n, err := s.affect(ctx, "take sample", statements.TakeSample, statements.Values{"age": age.Microseconds()})
	return n > 0, err
}

// PutSample stores what was measured.
func (s *Store) PutSample(ctx context.Context, sample Sample) error {
	text, err := json.Marshal(sample)
	if err != nil {
		return fmt.Errorf("falldue: encode the sample: %w", err)
	}
	_, err = s.affect(ctx, "put sample", statements.PutSample, statements.Values{"sample": string(text)})
	return err
}

// Measured returns the gauges as sums, for adding to a span.
func (s Sample) Measured() (list []Sums) {
	for _, g := range s.Gauges {
		waiting := g.Tasks[statements.StateOpen] + g.Tasks[statements.StateSnoozed] + g.Tasks[statements.StateBlocked]
		list = append(list, Sums{Queue: g.Queue, Kind: g.Kind, Waiting: NotNull(waiting), DeadNow: NotNull(g.Tasks[statements.StateDead]), OldestDue: NotNull(g.OldestDue)})
	}
	return list
}
