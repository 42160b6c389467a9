package dialect

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
)

func TestVersions(t *testing.T) {
	ctx, none := context.Background(), noServer{}
	postgres := func(v string) (Server, error) { return probePostgres(ctx, none, v) }
	for text, probe := range map[string]func(string) (Server, error){
		"PostgreSQL 11.22 (Debian 11.22-1)": postgres,
		"PostgreSQL 9.6.1":                  postgres,
		"5.7.44-log":                        func(v string) (Server, error) { return probeMySQL(ctx, none, MySQL, v) },
		"8.0.15":                            func(v string) (Server, error) { return probeMySQL(ctx, none, MySQL, v) },
		"10.5.29-MariaDB":                   func(v string) (Server, error) { return probeMySQL(ctx, none, MariaDB, v) },
		"3.45.3":                            func(v string) (Server, error) { return probeSQLite(ctx, none, v) },
	} {
		_, err := probe(text)
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "needs") {
			t.Errorf("%s: got error %v, want one that says what is needed", text, err)
		}
	}
	for _, text := range []string{"PostgreSQL 12.0", "PostgreSQL 18.6 (Debian 18.6-3) on x86_64", "PostgreSQL 15.18"} {
		if s, err := postgresServer(text); err != nil || s.Version != text || !s.Caps.Lateral {
			t.Errorf("%s: %+v, error %v", text, s, err)
		}
	}
	for _, text := range []string{"10.6.0-MariaDB", "10.11.19-MariaDB-0+deb12u1", "11.8.2-MariaDB"} {
		if s, err := mysqlServer(MariaDB, text); err != nil || !s.Caps.InsertReturning {
			t.Errorf("%s: %+v, error %v", text, s, err)
		}
	}
	for _, text := range []string{"8.0.16", "9.7.4-2"} {
		if s, err := mysqlServer(MySQL, text); err != nil || !s.Caps.JSONLateral {
			t.Errorf("%s: %+v, error %v", text, s, err)
		}
	}
	if _, err := mysqlServer(TiDB, "8.0.11-TiDB-v8.5.0"); err != nil {
		t.Error(err)
	}
}

// noServer panics when it is asked.
type noServer struct{}

func (noServer) QueryRowContext(context.Context, string, ...any) *sql.Row { panic("asked the server") }

func TestQuote(t *testing.T) {
	for name, want := range map[Name]string{Postgres: `"a""b` + "`" + `c"`, SQLite: `"a""b` + "`" + `c"`, MySQL: "`a\"b``c`", MariaDB: "`a\"b``c`"} {
		d, err := Of(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Quote("a\"b`c"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if _, err := Of("oracle"); err == nil || !strings.Contains(err.Error(), "oracle") {
		t.Errorf("an unknown engine: error %v", err)
	}
}

// TestProbeShowsNoPassword: drivers show a DSN that they cannot parse, and take parts of a password for a host.
func TestProbeShowsNoPassword(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"postgres://user:pa/S3CRET@127.0.0.1:1/db",
		"postgres://user:pa@S3CRET@127.0.0.1:1/db",
		"postgres://user:pa@S3CRET@127.0.0.1:port/db",
		" postgres://user:S3CRET@127.0.0.1:1/db",
		"user=u password = 'pa S3CRET' host=127.0.0.1 port=1",
		"user=u password = 'pa' S3CRET host=127.0.0.1 port=1",
		"user=u password='pa S3CRET host=127.0.0.1 port=1",
		"user=u password=pa S3CRET host=127.0.0.1 port=1",
		`user=u password="pa S3CRET" host=127.0.0.1 port=1`,
		"user=u password: S3CRET host=127.0.0.1 port=1",
		"host=user:S3CRET@127.0.0.1 port=1",
		"postgres://user@S3CRET:127.0.0.1:1/db",
		"postgres://user:pa@S3CRET!:1/db",
		"host=user:S3CRET:127.0.0.1 port=1",
		"host='pa S3CRET' port=1",
		"user=u host=127.0.0.1 port=S3CRET",
		"user:pa@S3CRET@tcp(127.0.0.1:1)/db",
		"mysql://user:pa@S3CRET@127.0.0.1:1/db",
	} {
		for _, driver := range []string{"postgres", "pgx"} {
			db, err := sql.Open(driver, source)
			if err == nil {
				_, err = Probe(t.Context(), db)
				_ = db.Close()
			}
			if err == nil || strings.Contains(err.Error(), "S3CRET") {
				t.Errorf("%s with %s: error %v, want one without the password", driver, source, err)
			}
		}
	}
}
