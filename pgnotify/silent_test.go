package pgnotify

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestSilentConnectionIsFoundOut: the connection stays open and carries nothing. The
// listener returns an error, or when its context ends, although a ping waits.
func TestSilentConnectionIsFoundOut(t *testing.T) {
	for name, p := range map[string]pings{
		"timeout": {every: time.Millisecond, timeout: time.Second, renew: time.Hour},
		"stopped": {every: time.Millisecond, timeout: time.Hour, renew: time.Hour},
	} {
		proxy, dsn := testdb.Through(t, testdb.Postgres, testdb.DSN(t, testdb.Postgres))
		ctx, stop := context.WithCancel(t.Context())
		listening, done := make(chan struct{}, 1), make(chan error, 1)
		go func() { done <- listen(ctx, dsn, "due", func(string) { listening <- struct{}{} }, p) }()
		<-listening
		proxy.Silence()
		if name == "stopped" {
			stop()
		}
		select {
		case err := <-done:
			if (err == nil) != (name == "stopped") {
				t.Errorf("%s: it returned %v", name, err)
			}
		case <-time.After(testdb.Patience):
			t.Fatalf("%s: it still listens", name)
		}
		stop()
	}
}
