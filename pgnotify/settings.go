package pgnotify

import (
	"net/url"
	"slices"
	"strings"

	"github.com/falldue/falldue/internal/dsn"
)

// ofPgx are the settings that pgx and its pool read themselves. lib/pq passes a
// setting that it does not know to the server, which refuses these.
var ofPgx = []string{
	"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
	"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime", "pool_max_conn_lifetime_jitter",
	"pool_max_conn_idle_time", "pool_health_check_period", "pool_ping_timeout",
}

// withoutPgx returns a DSN without the settings that only pgx knows.
func withoutPgx(source string) (string, error) {
	if strings.HasPrefix(source, "postgres://") || strings.HasPrefix(source, "postgresql://") {
		u, err := url.Parse(source)
		if err != nil {
			return "", err
		}
		settings := u.Query()
		for _, name := range ofPgx {
			settings.Del(name)
		}
		u.RawQuery = settings.Encode()
		return u.String(), nil
	}
	return dsn.Setting.ReplaceAllStringFunc(source, func(setting string) string {
		name, _, _ := strings.Cut(setting, "=")
		if slices.Contains(ofPgx, strings.TrimSpace(name)) {
			return ""
		}
		return setting
	}), nil
}
