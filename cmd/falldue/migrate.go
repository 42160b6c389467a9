package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/connect"
	"github.com/falldue/falldue/migrations"
)

// dsnVariable is the environment variable that --dsn defaults to, for DSNs
// whose password the list of processes must not show.
const dsnVariable = "FALLDUE_DSN"

// migrateFlags say where falldue's tables are.
type migrateFlags struct {
	dsn, driver string
	tables      dialect.Tables
}

func migrateCommand() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create falldue's tables, bring them up to date, drop them",
		Long: "Create falldue's tables, bring them up to date, drop them.\n\n" +
			"Any number of processes may migrate one database at once: one does the work,\n" +
			"the others wait for it.",
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.tables.Prefix, "prefix", "falldue_", "what the names of the tables begin with")
	flags.StringVar(&f.tables.Schema, "schema", "", "PostgreSQL schema of the tables (default the connection's search path)")
	cmd.AddCommand(migrateUpCommand(&f), migrateDownCommand(&f), migrateStatusCommand(&f), migrateDumpCommand(&f))
	return cmd
}

func migrateUpCommand(f *migrateFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create the tables, or bring them to this release",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.migrate(cmd.Context(), func(m *migrations.Migrator) error {
				n, err := m.Up(cmd.Context())
				if err != nil {
					return err
				}
				text := "the tables are up to date already"
				if n > 0 {
					text = fmt.Sprintf("the tables are up to date; migrations run: %d", n)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
				return err
			})
		},
	}
	databaseFlags(cmd, f)
	return cmd
}

func migrateDownCommand(f *migrateFlags) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "down --yes",
		Short: "Drop the tables and all that is in them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return fmt.Errorf("down drops falldue's tables, whose names begin with %s, and the tasks in them; add --yes to do that", f.tables.Prefix)
			}
			return f.migrate(cmd.Context(), func(m *migrations.Migrator) error {
				n, err := m.Down(cmd.Context())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "the tables are dropped; migrations taken back: %d\n", n)
				return err
			})
		},
	}
	databaseFlags(cmd, f)
	cmd.Flags().BoolVar(&yes, "yes", false, "drop the tables, and lose every task in them")
	return cmd
}

func migrateStatusCommand(f *migrateFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the migrations and whether they have run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.migrate(cmd.Context(), func(m *migrations.Migrator) error {
				list, err := m.Status(cmd.Context())
				if err != nil {
					return err
				}
				for _, s := range list {
					state := "pending"
					if s.Applied {
						state = "applied"
					}
					if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-7s  %s\n", state, s.Name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	databaseFlags(cmd, f)
	return cmd
}

func migrateDumpCommand(f *migrateFlags) *cobra.Command {
	var engine, format, folder string
	cmd := &cobra.Command{
		Use:   "dump --engine ENGINE",
		Short: "Print the migrations for another tool to run",
		Long: "Print the migrations for another tool to run, or write them to a folder as files.\n" +
			"A file of the folder that has other contents is never written over. Number the\n" +
			"files as the folder's own sequence wants it. Files of golang-migrate have several\n" +
			"statements, for which its MySQL driver needs multiStatements=true. Tables that\n" +
			"another tool made are not for \"migrate up\", nor for the library's Migrate.\n\n" +
			"This verb needs no database.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := dialect.DefaultServer(dialect.Name(engine))
			if err != nil {
				return err
			}
			files, err := migrations.Dump(d, f.tables, migrations.Format(format))
			if err != nil {
				return err
			}
			if folder != "" {
				return writeFiles(cmd.OutOrStdout(), folder, files)
			}
			for _, file := range files {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "-- %s\n%s", file.Name, file.Text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	engineFlag(cmd, &engine)
	cmd.Flags().StringVar(&format, "format", string(migrations.Goose), "whose files to write: "+formats())
	cmd.Flags().StringVar(&folder, "dir", "", "`folder` to write the files to (default standard output)")
	return cmd
}

func formats() string {
	names := make([]string, len(migrations.Formats))
	for i, format := range migrations.Formats {
		names[i] = string(format)
	}
	return strings.Join(names, ", ")
}

func databaseFlags(cmd *cobra.Command, f *migrateFlags) {
	cmd.Flags().StringVar(&f.dsn, "dsn", "", "the database: postgres://…, user:password@tcp(host)/database, or a SQLite file (default $"+dsnVariable+")")
	cmd.Flags().StringVar(&f.driver, "driver", "", "postgres, mysql or sqlite (default what the DSN tells)")
}

// migrate runs fn with the migrator of the database that the flags name.
func (f *migrateFlags) migrate(ctx context.Context, fn func(*migrations.Migrator) error) (err error) {
	dsn := f.dsn
	if dsn == "" {
		dsn = os.Getenv(dsnVariable)
	}
	if dsn == "" {
		return fmt.Errorf("no database is named; give --dsn, or set %s", dsnVariable)
	}
	db, err := connect.Open(ctx, f.driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	server, err := dialect.Probe(ctx, db)
	if err != nil {
		return err
	}
	m, err := migrations.New(db.DB, server, f.tables)
	if err != nil {
		return err
	}
	return fn(m)
}

// writeFiles writes files to a folder, which it makes where it is missing, and
// prints their paths. A file that is there already must have the same text.
func writeFiles(out io.Writer, folder string, files []migrations.File) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // migrations are for everybody to read
		return err
	}
	for _, file := range files {
		path := filepath.Join(folder, file.Name)
		switch old, err := os.ReadFile(path); { //nolint:gosec // the user names the folder
		case errors.Is(err, os.ErrNotExist):
			if err := os.WriteFile(path, []byte(file.Text), 0o644); err != nil { //nolint:gosec // the same
				return err
			}
		case err != nil:
			return err
		case !bytes.Equal(old, []byte(file.Text)):
			return fmt.Errorf("%s has other contents already; it is left as it is", path)
		}
		if _, err := fmt.Fprintln(out, path); err != nil {
			return err
		}
	}
	return nil
}
