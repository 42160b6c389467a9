package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// openPooled opens falldue through the pooler of the run. It listens directly.
func openPooled(ctx context.Context, db database, s settings) (subject, error) {
	var err error
	if db.pooler, err = poolerOfRun(); err != nil {
		return nil, err
	}
	return named(pooledName)(openFalldue(tuned)(ctx, db, s))
}

// openPgxPooled opens falldue on pools of pgx that connect to the pooler of the run. It
// listens directly.
func openPgxPooled(ctx context.Context, db database, s settings) (subject, error) {
	var err error
	if db.pooler, err = poolerOfRun(); err != nil {
		return nil, err
	}
	s.listen = db.dsn
	if db.dsn, err = db.pooled("default_query_exec_mode", "exec"); err != nil {
		return nil, err
	}
	return named(pgxPooledName)(openPgx(ctx, db, s))
}

func poolerOfRun() (string, error) {
	if address := os.Getenv(poolerVariable); address != "" {
		return address, nil
	}
	return "", fmt.Errorf("%s is not set: it has the address, as host:port, of a pooler in transaction mode", poolerVariable)
}

// named returns a function that gives a subject a name, unless there is an error.
func named(name string) func(subject, error) (subject, error) {
	return func(s subject, err error) (subject, error) {
		if f, ok := s.(*falldueSubject); ok && err == nil {
			f.name = name
		}
		return s, err
	}
}

// pooled returns the DSN of the database through the pooler, with the setting that the
// driver needs there.
func (db database) pooled(setting, value string) (string, error) {
	if db.far { // the proxy is in front of the server, and not of the pooler
		return "", errors.ErrUnsupported
	}
	u, err := url.Parse(db.dsn)
	if err != nil {
		return "", err
	}
	query := u.Query()
	query.Set(setting, value)
	u.Host, u.RawQuery = db.pooler, query.Encode()
	return u.String(), nil
}
