package pgnotify

import (
	"context"
	"testing"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestListenRenewsItsConnection: a connection that is old makes room for another one, and
// nobody sees a failure.
func TestListenRenewsItsConnection(t *testing.T) {
	dsn := testdb.DSN(t, testdb.Postgres)
	ctx, stop := context.WithTimeout(t.Context(), testdb.Patience)
	defer stop()
	begun := 0
	err := serve(ctx, dsn, "due", func(string) {
		if begun++; begun == 3 {
			stop()
		}
	}, pings{every: time.Hour, timeout: time.Hour, renew: time.Millisecond})
	if begun != 3 || err != nil {
		t.Errorf("it began to listen %d times (error %v), want 3 times", begun, err)
	}
}
