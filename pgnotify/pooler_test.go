package pgnotify

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestListeningBehindPoolerIsAnError: a pooler in transaction mode accepts LISTEN, and
// forwards no notification. In session mode it does.
func TestListeningBehindPoolerIsAnError(t *testing.T) {
	direct := testdb.DSN(t, testdb.Postgres)
	for name, c := range map[string]struct {
		pooler *testdb.PgBouncer
		wait   time.Duration
	}{
		"round robin": {testdb.StartPgBouncer(t, "transaction"), time.Second},
		"last first":  {testdb.StartPgBouncer(t, "transaction", "server_round_robin=0"), time.Second},
		"one session": {testdb.StartPgBouncer(t, "transaction", "default_pool_size=1"), time.Second},
		"session":     {testdb.StartPgBouncer(t, "session"), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			heard := false
			err := listen(ctx, c.pooler.Through(direct), "due", func(string) {
				heard = true
				stop()
			}, pings{every: time.Minute, timeout: c.wait, renew: time.Hour})
			if heard != (name == "session") || errors.Is(err, errUnheard) == heard {
				t.Errorf("it listens: %v, error %v", heard, err)
			}
		})
	}
}
