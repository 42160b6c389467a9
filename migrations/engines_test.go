package migrations

import (
	"io/fs"
	"testing"
	"time"

	"github.com/falldue/falldue/dialect"
)

// TestEveryEngineHasMigrationsAndALock: and one that says nothing of them gets
// an error, not those of another engine.
func TestEveryEngineHasMigrationsAndALock(t *testing.T) {
	tables := dialect.Tables{Prefix: "falldue_"}
	for _, name := range dialect.Names {
		s, err := dialect.DefaultServer(name)
		if err != nil {
			t.Fatal(err)
		}
		files, err := FS(s, tables)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if found, err := fs.Glob(files, "*.sql"); err != nil || len(found) == 0 {
			t.Errorf("%s has %d migrations (error %v)", name, len(found), err)
		}
		if l, err := lockerOf(s, tables, time.Minute); err != nil || (l == nil) != (s.Caps.Locks == dialect.NoLocks) {
			t.Errorf("%s: the lock is %v (error %v)", name, l, err)
		}
		s.Caps.Migrations = ""
		if _, err := FS(s, tables); err == nil {
			t.Errorf("%s without a folder has migrations", name)
		}
		s.Caps.Locks = 0
		if _, err := lockerOf(s, tables, time.Minute); err == nil {
			t.Errorf("%s without a kind of locks migrates without a lock", name)
		}
	}
}
