package store

import (
	"cmp"
	"context"
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
	// Distribution counts durations by their length.
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

// MinuteParams select the sums that [Store.Minutes] returns.
type MinuteParams struct {
	From, To        time.Time
	Step            time.Duration // one of Steps
	Queue, Kind     string        // "" for all
	ByQueue, ByKind bool          // else the sums of all are added
}

// Minutes returns the sums of the spans that begin from one time to another, in the order of time. Spans without
// sums are missing.
func (s *Store) Minutes(ctx context.Context, p MinuteParams) (list []SpanSums, err error) {
	group := statements.MinuteParams{ByQueue: p.ByQueue, ByKind: p.ByKind}
	stmt := s.fixed(fmt.Sprintf("read minutes %v", group), func(server dialect.Server, tables dialect.Tables) statements.Stmt {
		return statements.ReadMinutes(server, tables, group)
	})
	values := statements.Values{"span": int64(p.Step / time.Second), "since": p.From.UnixMicro(), "upto": p.To.UnixMicro(), "queue": p.Queue, "kind": p.Kind, "all_queues": 0, "all_kinds": 0}
	if p.Queue == "" {
		values["all_queues"] = 1
	}
	if p.Kind == "" {
		values["all_kinds"] = 1
	}
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
			upto := time.Now().AddDate(100, 0, 0).UnixMicro() // the last statement deletes all old rows
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
