package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"
)

// silence makes the connections that exist when it begins silent: they stay open, and
// nothing that is sent arrives. Connections that are opened later are fine. A database's
// host that loses its power looks so, once another one has taken its address.
type silence struct {
	toxics.TimeoutToxic
	Until int64 `json:"until"` // when it has begun everywhere, in milliseconds since 1970
}

func (s *silence) Pipe(stub *toxics.ToxicStub) {
	if time.Now().UnixMilli() > s.Until {
		new(toxics.NoopToxic).Pipe(stub)
		return
	}
	s.TimeoutToxic.Pipe(stub)
}

func init() { toxics.Register("silence", new(silence)) }

// silenced makes the connections of a process silent for longer than ten leases.
func silenced(ctx context.Context, r *Run, dice *rand.Rand) error {
	return r.inject(dice, "", func(s *slot) error {
		begun := map[string]int{"until": int(time.Now().Add(100 * time.Millisecond).UnixMilli())}
		err := errors.Join(s.link.disturb("silence", requests, begun), s.link.disturb("silence", answers, begun))
		if err == nil {
			r.wait(ctx, 10*lease+span(dice, lease))
		}
		s.link.heal()
		return err
	})
}
