package falldue

import (
	"database/sql"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/store"
)

// TestPolicyIsReadWithinALimit: a claim reads the policies of its lanes first. A database
// that does not answer must not stop the poller for ever.
func TestPolicyIsReadWithinALimit(t *testing.T) {
	t.Parallel()
	server, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		db := sqlx.NewDb(sql.OpenDB(dead{}), "dead")
		defer db.Close()
		s := store.New(db, server, store.Options{})
		p := newPolicies(s, newPolicyKeeper(s, events{slog.New(slog.DiscardHandler)}))
		start := time.Now()
		if _, err := p.get(t.Context(), "key"); err == nil {
			t.Error("a database that does not answer has a policy")
		}
		if took := time.Since(start); took > statementTimeout {
			t.Errorf("it took %v, more than %v", took, statementTimeout)
		}
	})
}
