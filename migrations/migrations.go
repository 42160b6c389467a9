// Package migrations creates and changes falldue's tables.
//
// [Migrator] runs the migrations. [Dump] returns them for other tools. [FS] returns
// them as files in goose's format.
//
// The sources are numbered SQL files in the folders postgres, mysql (for MySQL, MariaDB
// and TiDB) and sqlite. They contain the names of tables in braces, such as {tasks},
// which FS replaces.
package migrations

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/falldue/falldue/dialect"
)

//go:embed postgres/*.sql mysql/*.sql sqlite/*.sql
var templates embed.FS

// FS returns the migrations of an engine as files in goose's format, with the
// names of the tables filled in. It returns the error of [dialect.Tables.Validate] if
// tables is not valid for d.
func FS(d dialect.Server, tables dialect.Tables) (fs.FS, error) {
	if err := tables.Validate(d); err != nil {
		return nil, err
	}
	folder := d.Caps.Migrations
	files, err := fs.ReadDir(templates, cmp.Or(folder, "no folder"))
	if err != nil {
		return nil, fmt.Errorf("migrations: Caps of %s name the folder %q: %w", d.Name(), folder, err)
	}
	names := strings.NewReplacer(
		"{tasks}", tables.Name(d, "tasks"),
		"{attempts}", tables.Name(d, "attempts"),
		"{policies}", tables.Name(d, "policies"),
		"{progress}", tables.Name(d, "progress"),
		"{steps}", tables.Name(d, "steps"),
		"{permits}", tables.Name(d, "permits"),
		"{uniques}", tables.Name(d, "uniques"),
		"{changes}", tables.Name(d, "changes"),
		"{workers}", tables.Name(d, "workers"),
		"{schedules}", tables.Name(d, "schedules"),
		"{flows}", tables.Name(d, "flows"),
		"{edges}", tables.Name(d, "edges"),
		"{minutes}", tables.Name(d, "minutes"),
		"{sample}", tables.Name(d, "sample"),
		"{audit}", tables.Name(d, "audit"),
		"{audited}", d.Quote(tables.Prefix+"audited"),
		"{waiters}", d.Quote(tables.Prefix+"waiters"),
		"{recent}", d.Quote(tables.Prefix+"recent"),
		"{lane}", d.Quote(tables.Prefix+"lane"),
	)
	filled := textFS{}
	for _, file := range files {
		text, err := fs.ReadFile(templates, folder+"/"+file.Name())
		if err != nil {
			return nil, err
		}
		filled[file.Name()] = names.Replace(string(text))
	}
	return filled, nil
}

// ErrNewer means that a newer release of falldue has migrated the tables. This release does not know
// their columns. The methods of [Migrator] return it, wrapped.
var ErrNewer = errors.New("a newer release of falldue has migrated the tables")

// ErrForeign means that another tool has created the tables, for example from the files of [Dump]. Such
// a database has no migrations table of falldue, so the version of the tables is unknown. The methods of [Migrator]
// return it, wrapped.
var ErrForeign = errors.New("another tool has created the tables")

// Migrator runs the migrations of one database. Any number of processes can migrate the database at the same time: one
// process does the work, and the others wait for up to 5 minutes. The error of a process that gave up names the session
// that holds the lock, if the server shows it.
type Migrator struct {
	db          *sql.DB
	files       fs.FS
	versions    versions
	tables      dialect.Tables
	lockTimeout time.Duration
}

// New returns a migrator for the tables in db. It returns an error if tables is
// not valid for d.
func New(db *sql.DB, d dialect.Server, tables dialect.Tables) (*Migrator, error) {
	files, err := FS(d, tables)
	if err != nil {
		return nil, err
	}
	m := &Migrator{db: db, files: files, tables: tables, versions: versions{d: d, table: tables.Name(d, "migrations")}, lockTimeout: lockTimeout}
	_, err = lockerOf(d, tables, lockTimeout)
	return m, err
}

// provider returns a new runner of goose's. Each call needs one, because a runner
// that has seen the version table never checks again that the table exists.
func (m *Migrator) provider() (*goose.Provider, error) {
	options := []goose.ProviderOption{goose.WithStore(m.versions)}
	locker, err := lockerOf(m.versions.d, m.tables, m.lockTimeout)
	if err != nil {
		return nil, err
	}
	if locker != nil {
		options = append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider("", m.db, m.files, options...)
}

// Up migrates the tables to the newest version, and returns how many migrations it ran: 0 if the tables were at that
// version already. If the schema of the tables does not exist, Up creates it.
func (m *Migrator) Up(ctx context.Context) (int, error) {
	return m.run(ctx, func(p *goose.Provider) ([]*goose.MigrationResult, error) {
		if err := m.checkMemory(ctx); err != nil {
			return nil, err
		}
		if err := m.createSchema(ctx); err != nil {
			return nil, err
		}
		return p.Up(ctx)
	})
}

// createSchema creates the schema of the tables unless it exists. CREATE SCHEMA IF NOT
// EXISTS needs the right to create one even if it exists.
func (m *Migrator) createSchema(ctx context.Context) error {
	if m.tables.Schema == "" {
		return m.checkSearchPath(ctx)
	}
	var exists bool
	err := m.db.QueryRowContext(ctx, "select exists (select 1 from pg_namespace where nspname = $1)", m.tables.Schema).Scan(&exists)
	if err != nil || exists {
		return err
	}
	_, err = m.db.ExecContext(ctx, "create schema if not exists "+m.versions.d.Quote(m.tables.Schema))
	return err
}

// checkSearchPath refuses tables that the search path finds in another schema than the one in which
// new tables would be: two programs would share them unawares.
func (m *Migrator) checkSearchPath(ctx context.Context) error {
	if m.versions.d.Caps.Migrations != "postgres" {
		return nil
	}
	var first, found string
	err := m.db.QueryRowContext(ctx, `select coalesce(current_schema()::text, ''), coalesce((select n.nspname::text from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = pg_catalog.to_regclass($1)::oid), '')`, m.tables.Name(m.versions.d, "tasks")).Scan(&first, &found)
	if err != nil || found == "" || found == first {
		return err
	}
	return fmt.Errorf("migrations: the search path begins with schema %q, but the tables are in schema %q: set Schema to %[2]q to use these tables, or to %[1]q to create new tables", first, found)
}

// Down reverts all migrations, and returns how many migrations it reverted. It drops the tables with all their data.
func (m *Migrator) Down(ctx context.Context) (int, error) {
	n, err := m.run(ctx, func(p *goose.Provider) ([]*goose.MigrationResult, error) { return p.DownTo(ctx, 0) })
	if err != nil {
		return n, err
	}
	_, err = m.db.ExecContext(ctx, "drop table if exists "+m.versions.table)
	return n, wrap(err)
}

// run calls migrate until it succeeds. It calls it again when another process was
// faster: that process has created the schema, has the database locked, or has
// recorded the version.
func (m *Migrator) run(ctx context.Context, migrate func(*goose.Provider) ([]*goose.MigrationResult, error)) (n int, err error) {
	if m.versions.d.Caps.TransactionPooling {
		unlock, err := advisoryLock{lockKey(m.versions.d, m.tables), m.lockTimeout}.lockInTx(ctx, m.db)
		if err != nil {
			return 0, wrap(err)
		}
		defer unlock()
	}
	var last error
	err = again(ctx, m.lockTimeout, func() (bool, error) {
		provider, err := m.provider()
		if err != nil {
			return false, err
		}
		before, err := m.known(ctx, provider)
		if err != nil {
			return false, err
		}
		done, err := migrate(provider)
		n, last = n+len(done), err
		if err == nil || errors.Is(err, ErrLockLost) {
			return true, err
		}
		// On SQLite another process may have run the same migration.
		if now, err := m.known(ctx, provider); err == nil && now != before {
			return false, nil
		}
		switch m.versions.d.Classify(err) {
		case dialect.Contention, dialect.UniqueViolation:
			return false, nil
		}
		return true, err
	})
	if err != nil && last != nil && !errors.Is(err, last) {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return n, wrap(err)
}

// known returns the version of the tables, or -1 if there are none. Its error wraps
// [ErrNewer] if this release does not know that version, and [ErrForeign] if there is
// none recorded.
func (m *Migrator) known(ctx context.Context, p *goose.Provider) (int64, error) {
	// A migration creates the version table first, so whoever sees its tables sees that.
	var none int
	tasks := m.tables.Name(m.versions.d, "tasks")
	tasksErr := m.db.QueryRowContext(ctx, "select count(*) from "+tasks+" where 1 = 0").Scan(&none)
	there, err := m.versions.GetLatestVersion(ctx, m.db)
	if err != nil {
		if tasksErr == nil && m.versions.missing(err) {
			return -1, fmt.Errorf("%w: there is a table %s, but no table %s; to upgrade, run the files of \"falldue migrate dump\" with that tool, or else drop the tables", ErrForeign, tasks, m.versions.table)
		}
		return -1, nil // any other error occurs again when the migrations run
	}
	sources := p.ListSources()
	if newest := sources[len(sources)-1].Version; there > newest {
		return there, fmt.Errorf("%w: the version is %d, and this release supports up to %d; use the newer release", ErrNewer, there, newest)
	}
	return there, nil
}

// Status is the state of one migration.
type Status struct {
	Name    string // the name of the migration's file
	Version int64  // the number at the beginning of Name
	Applied bool
}

// Status returns the state of each migration, oldest first. If the table of applied migrations is missing, Status
// creates it. Status changes nothing else.
func (m *Migrator) Status(ctx context.Context) ([]Status, error) {
	provider, err := m.provider()
	if err != nil {
		return nil, wrap(err)
	}
	if _, err := m.known(ctx, provider); err != nil {
		return nil, wrap(err)
	}
	found, err := provider.Status(ctx)
	if err != nil {
		return nil, wrap(err)
	}
	list := make([]Status, len(found))
	for i, s := range found {
		list[i] = Status{Name: s.Source.Path, Version: s.Source.Version, Applied: s.State == goose.StateApplied}
	}
	return list, nil
}

func wrap(err error) error {
	var partial *goose.PartialError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &partial):
		return fmt.Errorf("migrations: %s: %w", partial.Failed.Source.Path, partial.Err)
	case errors.Is(err, database.ErrVersionNotFound):
		return fmt.Errorf("migrations: another release of falldue has migrated the tables: %w", err)
	}
	return fmt.Errorf("migrations: %w", err)
}
