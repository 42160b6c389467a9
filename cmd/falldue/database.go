package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/connect"
	"github.com/falldue/falldue/ops"
)

// dsnVariable is the environment variable that --dsn defaults to. It keeps the
// password of a DSN out of the list of processes.
const dsnVariable = "FALLDUE_DSN"

// The environment variables that --prefix and --schema default to.
const (
	prefixVariable = "FALLDUE_PREFIX"
	schemaVariable = "FALLDUE_SCHEMA"
)

// defaultPrefix is the prefix of the tables without --prefix.
const defaultPrefix = "falldue_"

// place is where the tables of falldue are.
type place struct {
	dsn, driver string
	tables      dialect.Tables
	creates     bool // a file of SQLite that does not exist
}

// flags adds the flags that say where the tables are.
func (p *place) flags(cmd *cobra.Command) {
	p.databaseFlags(cmd)
	p.tableFlags(cmd.Flags())
}

func (p *place) databaseFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.dsn, "dsn", "", "the database: postgres://…, mysql://…, user:password@tcp(host)/database, sqlite:path, or an existing SQLite file (default $"+dsnVariable+")")
	cmd.Flags().StringVar(&p.driver, "driver", "", "postgres, mysql or sqlite (default the driver for the DSN)")
	complete(cmd, "driver", connect.Postgres, connect.MySQL, connect.SQLite)
}

func (p *place) tableFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.tables.Prefix, "prefix", cmp.Or(os.Getenv(prefixVariable), defaultPrefix), "prefix of the table names (default $"+prefixVariable+", or "+defaultPrefix+")")
	hideDefault(flags, "prefix")
	flags.StringVar(&p.tables.Schema, "schema", os.Getenv(schemaVariable), "PostgreSQL schema of the tables (default $"+schemaVariable+", or the connection's search path)")
	hideDefault(flags, "schema")
}

// complete makes shells complete the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is not defined, or has completions already
	}
}

// completeNames makes shells complete the values of a flag by names of the queues.
func (p *place) completeNames(cmd *cobra.Command, flag string, names func(ops.Queue) []string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, p.namesOf(names)); err != nil {
		panic(err) // the flag is not defined, or has completions already
	}
}

// completeTimeout is how long a shell may wait for the database. Tests allow more, since
// their servers may be busy.
var completeTimeout = 2 * time.Second

// namesOf returns a completion by names of the queues. There are none if the database
// cannot be asked.
func (p *place) namesOf(names func(ops.Queue) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) (list []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		_ = p.ops(ctx, policyFlag{}, func(o *ops.Ops, _ *falldue.Queue) error {
			queues, err := o.Queues(ctx)
			for _, q := range queues {
				list = append(list, names(q)...)
			}
			return err
		})
		slices.Sort(list)
		return slices.Compact(list), cobra.ShellCompDirectiveNoFileComp
	}
}

func queueName(q ops.Queue) []string  { return []string{q.Name} }
func queueKinds(q ops.Queue) []string { return q.Kinds }

// source returns the DSN.
func (p *place) source() (string, error) {
	dsn := cmp.Or(p.dsn, os.Getenv(dsnVariable))
	if dsn == "" {
		return "", mistake(fmt.Errorf("no database is given; use --dsn, or set %s", dsnVariable))
	}
	return dsn, nil
}

// check returns an error if the DSN is missing or has no known form. It does not open the database.
func (p *place) check() error {
	dsn, err := p.source()
	if err != nil {
		return err
	}
	return mistake(connect.Check(p.driver, dsn))
}

// open calls fn with the database.
func (p *place) open(ctx context.Context, fn func(*sqlx.DB) error) (err error) {
	dsn, err := p.source()
	if err != nil {
		return err
	}
	open := connect.OpenExisting
	if p.creates {
		open = connect.Open
	}
	db, err := open(ctx, p.driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(db)
}

// queue calls fn with a queue on the tables.
func (p *place) queue(ctx context.Context, fn func(*falldue.Queue) error) error {
	return p.open(ctx, func(db *sqlx.DB) error {
		q, err := p.queueOn(ctx, db)
		if err != nil {
			return err
		}
		return fn(q)
	})
}

// queueOn returns a queue that notifies workers where that is possible.
func (p *place) queueOn(ctx context.Context, db *sqlx.DB) (*falldue.Queue, error) {
	server, err := dialect.Probe(ctx, db)
	if err != nil {
		return nil, err
	}
	cfg := falldue.Config{Prefix: p.tables.Prefix, Schema: p.tables.Schema}
	if server.Caps.Notify {
		cfg.Notifications.Mode = falldue.NotifyInTx // the command ends right after its call
	}
	return falldue.New(db, cfg)
}

// ops calls fn with a queue on the tables, and with what operates it.
func (p *place) ops(ctx context.Context, policies policyFlag, fn func(*ops.Ops, *falldue.Queue) error) error {
	return p.queue(ctx, func(q *falldue.Queue) error {
		o, err := ops.New(q).WithPolicies(policies.kinds)
		if err != nil {
			return err
		}
		return fn(o, q)
	})
}

// policyFlag is the value of --policy, the policies of kinds that the code has: KIND=POLICY,
// or POLICY for all other kinds. The flag may be repeated.
type policyFlag struct {
	kinds map[string]backoff.Policy // "" for all other kinds
	texts []string                  // as they were given
}

func (p *policyFlag) flag(cmd *cobra.Command) {
	p.kinds = map[string]backoff.Policy{}
	cmd.Flags().Var(p, "policy", "use this retry policy for KIND, or without KIND= for all other kinds, instead of the policies of live workers; repeatable")
	complete(cmd, "policy", presetNames()...)
}

func presetNames() (names []string) {
	for _, preset := range backoff.Presets() {
		names = append(names, preset.Name)
	}
	return names
}

var kindAndPolicy = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._:/@-]*)=([^=].*)$`)

// Set parses one value of the flag.
func (p *policyFlag) Set(text string) error {
	kind, policyText := "", text
	if m := kindAndPolicy.FindStringSubmatch(text); m != nil {
		kind, policyText = m[1], m[2]
	}
	policy, err := backoff.Parse(policyText)
	if err != nil {
		return err
	}
	p.kinds[kind], p.texts = policy, append(p.texts, text)
	return nil
}

func (p *policyFlag) String() string { return "" }

// Type is what help calls the value.
func (p *policyFlag) Type() string { return "[KIND=]POLICY" }
