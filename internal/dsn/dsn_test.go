package dsn_test

import (
	"errors"
	"testing"

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
