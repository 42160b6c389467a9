package connect

import (
	"context"
	"strings"
	"testing"
)

// TestErrorsShowNoSecrets opens databases whose DSNs have a secret in each place, and
// around it each character that a parser may stumble over. Nothing listens there.
func TestErrorsShowNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "S3CRET"
	forms := []struct{ driver, dsn string }{
		{"", "postgres://user:%s@127.0.0.1:1/db"},
		{"", "postgres://user:%s@127.0.0.1:1/db?sslmode=disable"},
		{"", "postgres://user:%s@nowhere.invalid/db"},
		{"", "postgres://user:%s@h1:1,h2:2/db"},
		{"", "postgres://user:%s"},
		{"", "postgres://:%s@"},
		{"", "postgres://user:12/%s@127.0.0.1:1/db"},
		{"", "postgres://user:12?%s@127.0.0.1:1/db"},
		{"", "postgres://127.0.0.1:%s/db"},
		{"", "postgres://%s"},
		{"", "postgres://user@127.0.0.1:1/db?password=%s"},
		{"", "postgres://user@127.0.0.1:1/db?sslmode=disable&sslpassword=%s&sslkey=%[1]s"},
		{"", "postgres://user:@127.0.0.1:1/db?password=%s"},
		{"", "postgres://user@127.0.0.1:1/db?%s"},
		{"", "postgres://user@127.0.0.1:1/db?connect_timeout=5;password=%s"},
		{"", "postgres://user:x@127.0.0.1:1/db#%s"},
		{"", "user=u password=%s host=127.0.0.1 port=1"},
		{"", "user=u password='%s' host=127.0.0.1 port=1"},
		{"", "user=u password='%s host=127.0.0.1 port=1"},
		{"", "user=u password=one %s host=127.0.0.1 port=1"},
		{"", "user = u password = '%s' host = 127.0.0.1 port = 1"},
		{"", "user=u password = \"one %s\" host=127.0.0.1 port=1"},
		{"", "host=user:%s@127.0.0.1 port=1"},
		{"", "user=u host=127.0.0.1 port=%s"},
		{"", "host=127.0.0.1 port=1 sslkey=%s sslmode=require sslinline=true sslcert=%[1]s"},
		{"", "user:%s@tcp(127.0.0.1:1)/db"},
		{"", "user:%s@tcp(127.0.0.1:1)"},
		{"", "user:%s@tcp(127.0.0.1:1)/db?timeout=%[1]s"},
		{"", "user:%s@unix(/nowhere/mysqld.sock)/db"},
		{"", "user:p@ss:%s@tcp(127.0.0.1:1)/db"},
		{"", "user:p@ss:%s@tcp(127.0.0.1:1/db"},
		{"", "user:x@tcp(127.0.0.1:1)/db?tls=%s"},
		{"", "user:x@tcp(127.0.0.1:1)/db?serverPubKey=%s&%[1]s"},
		{"mysql", "user:%s@127.0.0.1:1/db"},
		{"mysql", "user:%s@/db"},
		{"mysql", "user:%s@"},
		{"mysql", "user:%s"},
		{"mysql", "%s"},
		{"mysql", "mysql://user:%s@127.0.0.1:1/db"},
		{"postgres", "user:%s@tcp(127.0.0.1:1)/db"},
		{"postgres", "user:%s@127.0.0.1/db"},
		{"postgres", "%s"},
		{"", "mysql://user:%s@127.0.0.1:1/db"},
		{"", "redis://user:%s@127.0.0.1:1/db"},
		{"", "user:%s@127.0.0.1:1/db"},
		{"", "file:nowhere/at/all.db?mode=ro&_auth_pass=%s"},
		{"", "file:nowhere/at/all.db?mode=ro&_pragma=key('%s')"},
		{"%s", "postgres://user:x@127.0.0.1:1/db"},
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel() // drivers that would connect fail at once; their parsers ignore the context
	for _, form := range forms {
		for _, around := range []string{"", "/", "?", "#", "@", ":", "%", "%zz", " ", "=", "&", "'", `"`, `\`, "(", ")", "[", ",", ";", "+", "ä", "\n", "\x00"} {
			for _, value := range []string{secret, "pa" + around + secret + around + "x", around + secret, secret + around} {
				driver, dsn := form.driver, strings.ReplaceAll(strings.ReplaceAll(form.dsn, "%[1]s", value), "%s", value)
				contexts := []context.Context{cancelled}
				if around == "" || around == ":" { // and let it connect
					contexts = append(contexts, t.Context())
				}
				for _, c := range contexts {
					db, err := Open(c, driver, dsn)
					if err == nil {
						_ = db.Close()
						t.Fatalf("Open(%q, %q) succeeded", driver, dsn)
					}
					if strings.Contains(err.Error(), secret) {
						t.Errorf("Open(%q, %q) shows the secret: %v", driver, dsn, err)
					}
				}
			}
		}
	}
}
