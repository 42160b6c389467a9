package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// TestDash: the command serves pages until it is interrupted, under its own names only, and to users
// named by a trusted proxy. Prometheus and Kubernetes use the address of a pod as a name.
func TestDash(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		s.run("enqueue", "charge")
		for _, c := range []struct {
			name, header, host string
			args               []string
			status             int
			has, path          string
		}{
			{"plain", "", "", nil, http.StatusOK, "charge", ""},
			{"another name", "", "evil.example", nil, http.StatusMisdirectedRequest, "--host", ""},
			{"a listed name", "", "ops.example", []string{"--host", "ops.example"}, http.StatusOK, "charge", ""},
			{"a user", "ada", "", []string{"--user-header", "X-User", "--trust-proxy", "127.0.0.1"}, http.StatusOK, "ada", ""},
			{"no user", "", "", []string{"--user-header", "X-User", "--trust-proxy", "127.0.0.1"}, http.StatusForbidden, "Sign in", ""},
			{"an unknown proxy", "ada", "", []string{"--user-header", "X-User", "--trust-proxy", "10.0.0.0/8"}, http.StatusForbidden, "Sign in", ""},
			{"Prometheus", "", "10.0.0.7", []string{"--metrics"}, http.StatusOK, `falldue_tasks{kind="charge",queue="default",state="open"} 1`, "metrics"},
			{"Prometheus without --metrics", "", "", nil, http.StatusNotFound, "", "metrics"},
			{"readiness", "", "10.0.0.7", nil, http.StatusOK, `"ok":true`, "health/readyz"},
			{"liveness", "", "10.0.0.7", nil, http.StatusOK, `"ok":true`, "health/livez"},
		} {
			ctx, stop := context.WithCancel(t.Context())
			printed, ended := s.begin(ctx, append([]string{"dash", "--listen", "127.0.0.1:0"}, c.args...)...)
			line := <-printed
			address, _, _ := strings.Cut(line, " ")
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+c.path, nil)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			r.Header.Set("X-User", c.header)
			r.Host = c.host
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != c.status || !strings.Contains(string(text), c.has) {
				t.Errorf("%s: status %s, error %v:\n%s", c.name, answer.Status, err, text)
			}
			http.DefaultClient.CloseIdleConnections()
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) || !strings.Contains(line, "(read-only)") {
				t.Errorf("it printed %q, and ended with %v", line, err)
			}
		}
	})
}

// TestDashRefusesToBeOpen: it listens elsewhere than on this machine only with users, or if it is told to.
func TestDashRefusesToBeOpen(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"--listen 0.0.0.0:8080 can be reached from other machines": {"--listen", "0.0.0.0:8080"},
		"--listen :8080 can be reached from other machines":        {"--listen", ":8080"},
		`--listen "8080": must be an address`:                      {"--listen", "8080"},
		"set both or neither":                                      {"--user-header", "X-User"},
		`--trust-proxy "proxy"`:                                    {"--user-header", "X-User", "--trust-proxy", "proxy"},
		`--allow "destroy": unknown action: use "all", `:           {"--allow", "retry,destroy"},
	} {
		_, err := execute(t, append([]string{"dash", "--dsn", "sqlite:none.db"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), says) || exitStatus(err) != exitUsage {
			t.Errorf("%v: error %v", args, err)
		}
	}
}
