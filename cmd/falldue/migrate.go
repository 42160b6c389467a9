package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/connect"
	"github.com/falldue/falldue/migrations"
)

// dsnVariable is the environment variable that --dsn defaults to. It keeps the
// password of a DSN out of the list of processes.
const dsnVariable = "FALLDUE_DSN"

// migrateFlags are the flags that say where the tables of falldue are.
type migrateFlags struct {
	dsn, driver string
	tables      dialect.Tables
}

func migrateCommand() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create, upgrade or drop the tables of falldue",
		Long: "Create, upgrade or drop the tables of falldue.\n\n" +
			"Several processes may migrate the same database at the same time: one runs\n" +
			"the migrations, the others wait, up to 5 minutes. The error after that names the\n" +
			"lock and who holds it.",
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.tables.Prefix, "prefix", "falldue_", "prefix of the names of the tables")
	flags.StringVar(&f.tables.Schema, "schema", "", "PostgreSQL schema of the tables (default the connection's search path)")
	cmd.AddCommand(migrateUpCommand(&f), migrateDownCommand(&f), migrateStatusCommand(&f), migrateDumpCommand(&f))
	return cmd
}

func migrateUpCommand(f *migrateFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create the tables, or upgrade them to this release",
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
		Short: "Drop the tables with all their tasks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return fmt.Errorf("down drops the tables of falldue, whose names begin with %s, and the tasks in them; confirm with --yes", f.tables.Prefix)
			}
			return f.migrate(cmd.Context(), func(m *migrations.Migrator) error {
				n, err := m.Down(cmd.Context())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "the tables are dropped; migrations reverted: %d\n", n)
				return err
			})
		},
	}
	databaseFlags(cmd, f)
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that all tasks in the tables are lost")
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
	var engine, format, folder, start string
	cmd := &cobra.Command{
		Use:   "dump --engine ENGINE",
		Short: "Print the migrations, to be run by another tool",
		Long: "Print the migrations, to be run by another tool, or write them to a folder as\n" +
			"files. With --start, the files have other numbers than 1, 2, …, so that they\n" +
			"come after those in the folder. Files that the folder has already, under any\n" +
			"number, are not written again. A file with other contents is never\n" +
			"overwritten. A file for golang-migrate has several statements, for which its\n" +
			"MySQL driver needs multiStatements=true. \"migrate up\", and Migrate of the\n" +
			"library, refuse tables that another tool created.\n\n" +
			"This command needs no database.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := dialect.DefaultServer(dialect.Name(engine))
			if err != nil {
				return err
			}
			first, err := startNumber(start)
			if err != nil {
				return err
			}
			files, err := migrations.Dump(d, migrations.DumpParams{Tables: f.tables, Format: migrations.Format(format), Start: first})
			if err != nil {
				return err
			}
			if folder != "" {
				return dumpInto(cmd.OutOrStdout(), folder, files)
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
	cmd.Flags().StringVar(&format, "format", string(migrations.Goose), "format of the files: "+formats())
	cmd.Flags().StringVar(&start, "start", "1", "number of the first file; timestamp means the present time, as in 20060102150405")
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
	cmd.Flags().StringVar(&f.dsn, "dsn", "", "the database: postgres://…, mysql://…, user:password@tcp(host)/database, sqlite:path, or an existing SQLite file (default $"+dsnVariable+")")
	cmd.Flags().StringVar(&f.driver, "driver", "", "postgres, mysql or sqlite (default the driver for the DSN)")
}

// migrate calls fn with a migrator of the database that the flags name.
func (f *migrateFlags) migrate(ctx context.Context, fn func(*migrations.Migrator) error) (err error) {
	dsn := f.dsn
	if dsn == "" {
		dsn = os.Getenv(dsnVariable)
	}
	if dsn == "" {
		return fmt.Errorf("the database is missing; use --dsn, or set %s", dsnVariable)
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
