package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
)

func onVitess(r *Run) bool { return r.db.vitess != nil }

// vitessFaults are the faults of a Vitess cluster that the run has to itself.
var vitessFaults = []fault{
	{"reparent", onVitess, onServer(func(ctx context.Context, r *Run, dice *rand.Rand) error {
		// Of the keyspace of internal/testdb/vitess that has replicas. The chosen one may be the primary already.
		tablet := fmt.Sprintf("--new-primary=zone1-%d", 101+dice.IntN(3))
		args := slices.Concat(r.db.vitess[1:], []string{"PlannedReparentShard", tablet, "main/0"})
		if text, err := exec.CommandContext(ctx, r.db.vitess[0], args...).CombinedOutput(); err != nil { //nolint:gosec // the environment names it
			return fmt.Errorf("%s: %w: %s", tablet, err, text)
		}
		return nil
	})},
}
