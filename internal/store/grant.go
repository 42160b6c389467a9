package store

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/falldue/falldue/internal/statements"
)

// grants are the permits that a claim takes for the tasks that it has found.
type grants struct {
	list    []statements.Grant
	permits map[int64]*statements.Permit // as they were read, by their ids
	owners  map[int64][]*Claim           // of a bucket there may be several
	wait    map[int64]int64              // how long one task takes the permit of a rate, in microseconds
	short   map[*Claim]string            // the limits of tasks for which there is no permit
}

// grantsFor chooses the permits for tasks that the limits of their sources admit.
func grantsFor(found []*Claim, quotas map[string]*quota) *grants {
	g := &grants{permits: map[int64]*statements.Permit{}, owners: map[int64][]*Claim{}, wait: map[int64]int64{}, short: map[*Claim]string{}}
	for _, c := range found {
		// Others may have made permits and taken them.
		if i := slices.IndexFunc(c.Limits, func(l Limit) bool { return len(quotas[l.Name].free) == 0 }); i >= 0 {
			g.short[c] = c.Limits[i].Name
			continue
		}
		key := Key{TaskID: c.ID, Fence: statements.NextFence(c.Fence)}
		for _, l := range c.Limits {
			permit, taken := quotas[l.Name].next()
			if len(g.owners[permit.ID]) == 0 {
				g.list = append(g.list, statements.Grant{Permit: permit.ID, Key: key, Was: permit.Token, Wait: taken.Microseconds()})
			} else { // of a bucket
				i := slices.IndexFunc(g.list, func(g statements.Grant) bool { return g.Permit == permit.ID })
				g.list[i].Wait += taken.Microseconds()
			}
			g.permits[permit.ID], g.wait[permit.ID] = permit, taken.Microseconds()
			g.owners[permit.ID] = append(g.owners[permit.ID], c)
		}
	}
	return g
}

// without removes from the grants the share of tasks that the claim does not get, and returns the grants with
// which to restore the permits. These permits have the token.
func (g *grants) without(outrun map[*Claim]bool, token int64) (back []statements.Grant) {
	kept := g.list[:0]
	for _, one := range g.list {
		lost := int64(0)
		for _, c := range g.owners[one.Permit] {
			if outrun[c] {
				lost++
			}
		}
		wait := lost * g.wait[one.Permit]
		switch p := g.permits[one.Permit]; lost {
		case 0:
		case int64(len(g.owners[one.Permit])):
			back = append(back, statements.Grant{Permit: one.Permit, Key: p.Key, Was: p.Token, Wait: wait})
			continue
		default: // of a bucket, for the tasks that the claim gets
			back = append(back, statements.Grant{Permit: one.Permit, Key: one.Key, Was: token, Wait: wait})
			one.Wait -= wait
		}
		kept = append(kept, one)
	}
	g.list = kept
	return back
}

// keep records in the claims which permits of running tasks they have taken, with the token.
func (g *grants) keep(token int64) {
	for _, one := range g.list {
		c, p := g.owners[one.Permit][0], g.permits[one.Permit]
		if slices.ContainsFunc(c.Limits, func(l Limit) bool { return l.Name == p.Name && l.Form == Running }) {
			p.Key, p.Token = one.Key, token
			c.permits = append(c.permits, p)
		}
	}
}

// takeLimited claims tasks that were found in the same transaction and that the limits of
// their sources admit: those whose permits it can take. It corrects rests.
func (s *Store) takeLimited(ctx context.Context, x runner, p ClaimParams, found []*Claim, quotas map[string]*quota, rests []Rest) ([]*Claim, error) {
	if err := s.makePermits(ctx, x, found, quotas); err != nil {
		return nil, err
	}
	g, token := grantsFor(found, quotas), s.rivals.token()
	s.known.remove(g.permits)
	lost, err := s.takePermits(ctx, x, token, g.list)
	if err != nil {
		return nil, err
	}
	outrun := map[*Claim]bool{}
	// loses makes the lane of a claim wait. It closes the claim's limit, even if other permits
	// are free: with an open limit, the lane would come back immediately.
	loses := func(c *Claim, limit string) {
		outrun[c] = true
		rests[c.Place-1], quotas[limit].room = Rest{Why: Outrun, Name: limit}, 0
	}
	for c, limit := range g.short {
		loses(c, limit)
	}
	if len(lost) > 0 {
		s.rivals.lose()
	}
	for _, permit := range lost {
		for _, c := range g.owners[permit] {
			loses(c, g.permits[permit].Name)
		}
	}
	found = slices.DeleteFunc(found, func(c *Claim) bool { return outrun[c] })
	claims, err := s.takeAll(ctx, x, p, slices.Clone(found))
	if err != nil {
		return nil, err
	}
	if len(claims) < len(found) { // others have taken some, or a trigger leaves their rows as they are
		for _, c := range found {
			if !slices.Contains(claims, c) {
				loses(c, c.Limits[0].Name)
			}
		}
	}
	if len(outrun) > 0 {
		if err := s.returnPermits(ctx, x, token, g.without(outrun, token)); err != nil {
			return nil, err
		}
	}
	if len(claims) == 0 {
		return nil, nil
	}
	g.keep(token)
	return claims, s.extendPermits(ctx, x, token, g.list)
}

// returnPermits restores permits that were taken in vain. Otherwise they would name a claim that was not
// made: its task would have the place in a sequence, and might be claimed later with other permits.
func (s *Store) returnPermits(ctx context.Context, x runner, token int64, back []statements.Grant) error {
	return inBatches(s, back, func(list []statements.Grant) error {
		rows := statements.GrantColumns.Rows(len(list), func(i int) *statements.Grant { return &list[i] })
		_, err := x.exec(ctx, s.batch("return permits", len(list), statements.ReturnPermits), statements.Values{"token": token}, rows)
		return err
	})
}

// extendPermits lets the times of the permits of rates begin at the claim, which came after the permits.
func (s *Store) extendPermits(ctx context.Context, x runner, token int64, list []statements.Grant) error {
	byWait := map[int64][]statements.Grant{}
	for _, g := range list {
		if g.Wait > 0 {
			byWait[g.Wait] = append(byWait[g.Wait], g)
		}
	}
	for _, wait := range slices.Sorted(maps.Keys(byWait)) {
		err := inBatches(s, byWait[wait], func(list []statements.Grant) error {
			rows := statements.GrantColumns[:1].Rows(len(list), func(i int) *statements.Grant { return &list[i] })
			_, err := x.exec(ctx, s.batch("extend permits", len(list), statements.ExtendPermits), statements.Values{"token": token, "wait": wait}, rows)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// takePermits gives permits to claims, and returns the ids of those that others have
// taken.
func (s *Store) takePermits(ctx context.Context, x runner, token int64, grants []statements.Grant) (lost []int64, err error) {
	values := statements.Values{"token": token}
	// In one order, so that no two claims wait for each other's rows.
	slices.SortFunc(grants, func(a, b statements.Grant) int { return cmp.Compare(a.Permit, b.Permit) })
	for list := range slices.Chunk(grants, MaxBatch) {
		rows := statements.GrantColumns.Rows(len(list), func(i int) *statements.Grant { return &list[i] })
		matched, missing, err := s.change(ctx, x, s.batch("take permits", len(list), statements.TakePermits), values, rows)
		if err != nil {
			return nil, err
		}
		if matched == len(list) {
			continue
		}
		if !s.server.Caps.UpdateReturning {
			keys := make([]statements.Row, len(rows))
			for i, r := range rows {
				keys[i] = r[:1]
			}
			ids, err := int64s(ctx, x, s.batch("taken permits", len(list), statements.TakenPermits), values, keys)
			if err != nil {
				return nil, err
			}
			taken := SetOf(ids)
			for _, g := range list {
				if !taken[g.Permit] {
					missing = append(missing, g.Permit)
				}
			}
		}
		lost = append(lost, missing...)
	}
	return lost, nil
}
