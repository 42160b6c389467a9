package dsn_test

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/falldue/falldue/internal/dsn"
)

func TestRedactKeepsWhatIsHarmless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dsn, err, want string }{
		{"postgres://shop:S3@db.example:5432/shop?sslmode=require", `password authentication failed for user "shop" at db.example, S3`, `password authentication failed for user "shop" at db.example, xxxxx`},
		{"postgres://shop@[::1]:5432,h2:1/shop", "dial tcp [::1]:5432: refused", "dial tcp [::1]:5432: refused"},
		{"postgres://shop:a%2Fb%20c@h/shop", `a/b c, a%2Fb%20c, "a/b c", a/b`, `xxxxx, xxxxx, "xxxxx", xxxxx/xxxxx`},
		{"postgres://u:pa/S3CRET@h/db", `parse "postgres://u:pa/S3CRET@h/db": invalid port ":pa" after host`, `parse "postgres://xxxxx": invalid port ":xxxxx" after host`},
		{"host=h user=shop password='my \\'secret' search_path=s", `h shop my 'secret s`, `h shop xxxxx s`},
		{"host=h user=shop sslinline=true sslkey=KEY", `the key "KEY"`, `the key "xxxxx"`},
		{"shop:S3CRET@tcp(h:3306)/shop?parseTime=true", "h:3306 shop S3CRET true", "h:3306 shop xxxxx true"},
		{"file:shop.db?mode=ro&_auth_pass=S3CRET", "shop.db ro S3CRET", "shop.db ro xxxxx"},
	} {
		err := errors.New(c.err)
		got := dsn.Redact(c.dsn, err)
		if got.Error() != c.want || errors.Is(got, err) {
			t.Errorf("Redact(%q, %q) = %q, want %q and nothing wrapped", c.dsn, c.err, got, c.want)
		}
	}
	if err := dsn.Redact("postgres://", nil); err != nil {
		t.Errorf("Redact of no error: %v", err)
	}
}

// TestHideWithoutTheDSN: the caller of a database that the application has opened knows no DSN.
func TestHideWithoutTheDSN(t *testing.T) {
	t.Parallel()
	_, parse := pgconn.ParseConfig("user=u password = 'se' S3CRET host=h")
	for text, c := range map[string]struct {
		err  error
		want string
	}{
		"cannot parse by pgx":     {fmt.Errorf("ask: %w", parse), "ask: cannot parse `xxxxx`: failed to parse as keyword/value (missing \"=\" after \"xxxxx\" in connection info string)"},
		"cannot parse by lib/pq":  {errors.New(`missing "=" after "S3C\"RET@h" in connection info string`), `missing "=" after "xxxxx" in connection info string`},
		"part of a password":      {errors.New("lookup S3@CRET@127.0.0.1: no such host"), "lookup xxxxx@127.0.0.1: no such host"},
		"no name of a host":       {errors.Join(errors.New("a"), &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "S3CRET:127.0.0.1:1", Err: "no such host"}}, &net.DNSError{Name: "pa S3CRET", Err: "no such host", Server: "10.0.0.1:53"}), "a\ndial tcp: lookup xxxxx: no such host\nlookup xxxxx on 10.0.0.1:53: no such host"},
		"no number":               {fmt.Errorf("pq: wrong value for \"port\": %w", &strconv.NumError{Func: "ParseUint", Num: "S3CRET", Err: strconv.ErrSyntax}), `pq: wrong value for "port": strconv.ParseUint: parsing "xxxxx": invalid syntax`},
		"a host":                  {&net.DNSError{Name: "db_1.shop-büro.example", Err: "no such host"}, "lookup db_1.shop-büro.example: no such host"},
		"a user of MySQL":         {errors.New("Access denied for user 'root'@'localhost'"), "Access denied for user 'root'@'localhost'"},
		"an error without secret": {errors.New("dial tcp 127.0.0.1:1: connect: connection refused"), "dial tcp 127.0.0.1:1: connect: connection refused"},
	} {
		if got := dsn.Hide(c.err); got.Error() != c.want {
			t.Errorf("%s: %q, want %q", text, got, c.want)
		}
	}
	if err := errors.New("refused"); !errors.Is(dsn.Hide(err), err) {
		t.Error("an error that shows no DSN is replaced")
	}
}

func TestHideInKeepsWhatIsNoDSN(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`unknown command "postgres://u:S3@CRET@h/db" for "falldue"`: `unknown command "postgres://xxxxx@h/db" for "falldue"`,
		`subject "u:S3@CRET@tcp(h:3306)/db"`:                        `subject "u:xxxxx@tcp(h:3306)/db"`,
		"no task has the key mail:ann@shop.example":                 "no task has the key mail:ann@shop.example",
		"must be postgres://user:password@host/database":            "must be postgres://user:password@host/database",
		"user:password@tcp(host)/database, sqlite:path":             "user:password@tcp(host)/database, sqlite:path",
		"https://shop.example/a@b":                                  "https://xxxxx@b",
	} {
		if got := dsn.HideIn(text); got != want {
			t.Errorf("HideIn(%q) = %q, want %q", text, got, want)
		}
	}
}
