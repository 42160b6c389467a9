package dash

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/falldue/falldue/ops"
)

// fullestKeys is how many keys of a limit per key the page shows.
const fullestKeys = 20

// limitsView is what the page of limits shows.
type limitsView struct {
	Limits  []ops.Limit
	Age     time.Duration
	Trouble *trouble
}

// keysView is what the page shows of a limit per key.
type keysView struct {
	Owner, Text string
	// Subject is "kind" or "queue", and Name the name of the owner.
	Subject, Name string
	limitKeys
	Age     time.Duration
	Trouble *trouble
}

// limitKeys are the fullest keys of a limit.
type limitKeys struct {
	Keys    []ops.KeyLimit
	Bounded bool // more keys may be full
	Gone    bool // no live worker has the limit
}

func limitsPage(in *request) (page, error) {
	ctx := in.r.Context()
	p, limits := in.h.reads.pulse.get(ctx), in.h.reads.limits.get(ctx)
	v := limitsView{Limits: limits.Value, Age: limits.Age, Trouble: troubleOf(cmp.Or(p.Err, limits.Err))}
	shown := page{Title: "Limits", Nav: "queues", Live: true, Regions: []region{{ID: "limits", Template: "limits", Data: v}}}
	if owner, text := in.query.Get("owner"), in.query.Get("limit"); owner != "" {
		keys := in.h.reads.limitKeys.get(ctx, url.Values{"owner": {owner}, "limit": {text}}.Encode())
		k := keysView{Owner: owner, Text: text, limitKeys: keys.Value, Age: keys.Age, Trouble: troubleOf(keys.Err)}
		k.Subject, k.Name, _ = strings.Cut(owner, " ")
		shown.Regions = append([]region{{ID: "keys", Template: "limit keys", Data: k}}, shown.Regions...)
	}
	return shown, nil
}

// readLimitKeys reads the fullest keys of the limit that a query names.
func (h *Handler) readLimitKeys(ctx context.Context, query string) (keys limitKeys, err error) {
	wanted, err := url.ParseQuery(query)
	if err != nil {
		return keys, fmt.Errorf("%q: %w", query, err)
	}
	limits := h.reads.limits.get(ctx)
	if limits.Err != nil {
		return keys, limits.Err
	}
	for _, l := range limits.Value {
		if l.Owner == wanted.Get("owner") && l.Text == wanted.Get("limit") {
			keys.Keys, keys.Bounded, err = h.ops.FullestKeys(ctx, l, fullestKeys)
			return keys, err
		}
	}
	return limitKeys{Gone: true}, nil
}
