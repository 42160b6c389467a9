package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/falldue/falldue/internal/statements"
)

// Candidates returns the keys of up to limit due tasks of a lane, in the order of their
// anchors and ids, beginning after the task with the anchor from.Since and the id after.
func (s *Store) Candidates(ctx context.Context, queue string, from Source, after int64, limit int) ([]Candidate, error) {
	return reading(ctx, s, func(x runner) ([]Candidate, error) { return s.candidates(ctx, x, queue, from, after, limit) })
}

func (s *Store) candidates(ctx context.Context, x runner, queue string, from Source, after int64, limit int) (list []Candidate, err error) {
	stmt, values := s.candidatesStmt(queue, from, after, limit)
	err = x.query(ctx, stmt, values, nil, func(r row) error {
		var c Candidate
		err := statements.CandidateColumns.Scan(r, &c)
		list = append(list, c)
		return err
	})
	return list, err
}

// candidatesStmt returns the statement of [Store.Candidates], with its values.
func (s *Store) candidatesStmt(queue string, from Source, after int64, limit int) (statements.Stmt, statements.Values) {
	key := stmtKey{name: "candidates", formulas: s.formulaOf(from)}
	stmt := s.stmt(key, func() statements.Stmt { return statements.Candidates(s.server, s.tables, from.formula()) })
	values := statements.Values{"queue": queue, "since": from.Since, "after": after, "limit": limit}
	statements.SetLane(values, from.Lane)
	return stmt, values
}

// ClaimKeys claims the candidates that have not changed, and returns them in the order of their
// anchors. The candidates are from p's one source. ClaimKeys applies the limits of the source,
// and reports whether a limit holds back the other candidates.
func (s *Store) ClaimKeys(ctx context.Context, p ClaimParams, list []Candidate) (Limited, error) {
	anchors, rows := map[int64]int64{}, statements.FenceColumns.Rows(len(list), func(i int) *Key { return &list[i].Key })
	for _, c := range list {
		anchors[c.TaskID] = c.Anchor
	}
	return inTx(ctx, s, func(x runner) (Limited, error) {
		var found []*Claim
		var scanner claimScanner
		err := x.query(ctx, s.batch("pick", len(list), statements.Pick), nil, rows, func(r row) error {
			c, err := scanner.scan(r, p.Sources)
			if err != nil {
				return err
			}
			if c.Anchor == max(anchors[c.ID], -1<<62) {
				found = append(found, c)
			}
			return nil
		})
		if err != nil {
			return Limited{}, err
		}
		slices.SortFunc(found, func(a, b *Claim) int { return cmp.Or(cmp.Compare(a.Anchor, b.Anchor), cmp.Compare(a.ID, b.ID)) })
		from, rests := p.Sources[0], []Rest{{Why: More}}
		if len(from.Limits) == 0 {
			claims, err := s.takeAll(ctx, x, p, found)
			return Limited{Claims: claims, Rests: rests}, err
		}
		quotas, err := s.quotas(ctx, x, p)
		if err != nil {
			return Limited{}, err
		}
		if q := sequenceOf(from, quotas); q != nil && q.room > 0 {
			var next []*Claim
			if !isHeld(from, quotas) {
				if next, err = s.findNext(ctx, x, p, []int{0}, quotas); err != nil {
					return Limited{}, err
				}
			}
			// Whatever becomes of that task, the others wait for it.
			rests[0] = Rest{Why: Saturated, Name: q.Name}
			found = slices.DeleteFunc(found, func(c *Claim) bool { return len(next) == 0 || c.ID != next[0].ID })
		}
		room := roomOf(from, quotas, len(found))
		if q := saturated(from, quotas); q != nil {
			rests[0] = Rest{Why: Saturated, Name: q.Name, Wait: q.wait}
		}
		claims, err := s.takeLimited(ctx, x, p, found[:room], quotas, rests)
		return Limited{Claims: claims, Rests: rests}, err
	})
}
