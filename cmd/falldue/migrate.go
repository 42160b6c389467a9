package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/migrations"
)

func migrateCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Create, upgrade or drop falldue's tables",
		Long: "Create, upgrade or drop falldue's tables.\n\n" +
			"Several processes can migrate the same database concurrently: one runs the\n" +
			"migrations, and the others wait for up to 5 minutes. Then they fail with an error that\n" +
			"names the lock and its holder.",
	}
	p.tableFlags(cmd.PersistentFlags())
	cmd.AddCommand(migrateUpCommand(&p), migrateDownCommand(&p), migrateStatusCommand(&p), migrateDumpCommand(&p))
	return cmd
}

func migrateUpCommand(p *place) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Create the tables, or upgrade them to this release",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.creates = true
			return p.migrate(cmd.Context(), func(m *migrations.Migrator) error {
				n := 0
				err := withProgress(cmd, func() string { return "running migrations" }, func() (err error) {
					n, err = m.Up(cmd.Context())
					return err
				})
				if err != nil {
					return err
				}
				if asJSON {
					return printMigrated(cmd, "up", n)
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
	p.databaseFlags(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object: change, migrations")
	return cmd
}

func printMigrated(cmd *cobra.Command, change string, n int) error {
	return jsonLines(cmd.OutOrStdout()).Encode(struct {
		Change     string `json:"change"`
		Migrations int    `json:"migrations"`
	}{change, n})
}

func migrateDownCommand(p *place) *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "down --yes",
		Short: "Drop the tables with all their tasks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			question := fmt.Sprintf("down drops the tables of falldue, whose names begin with %s, and the tasks in them", p.tables.Prefix)
			return p.migrate(cmd.Context(), func(m *migrations.Migrator) error {
				if err := confirm(cmd, question, yes); err != nil {
					return err
				}
				n := 0
				err := withProgress(cmd, func() string { return "dropping the tables" }, func() (err error) {
					n, err = m.Down(cmd.Context())
					return err
				})
				if err != nil {
					return err
				}
				if asJSON {
					return printMigrated(cmd, "down", n)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "the tables are dropped; migrations reverted: %d\n", n)
				return err
			})
		},
	}
	p.databaseFlags(cmd)
	yesFlag(cmd, &yes)
	jsonFlag(cmd, &asJSON, "print one JSON object: change, migrations")
	return cmd
}

func migrateStatusCommand(p *place) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the migrations, and whether they were applied",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.migrate(cmd.Context(), func(m *migrations.Migrator) error {
				list, err := m.Status(cmd.Context())
				if err != nil {
					return err
				}
				lines := jsonLines(cmd.OutOrStdout())
				for _, s := range list {
					state := "pending"
					if s.Applied {
						state = "applied"
					}
					if asJSON {
						if err := lines.Encode(struct {
							Name  string `json:"name"`
							State string `json:"state"`
						}{s.Name, state}); err != nil {
							return err
						}
						continue
					}
					if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-7s  %s\n", state, s.Name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	p.databaseFlags(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object per line: name, state")
	return cmd
}

func migrateDumpCommand(p *place) *cobra.Command {
	var engine, format, folder, start string
	cmd := &cobra.Command{
		Use:   "dump --engine ENGINE",
		Short: "Print the migrations for another tool",
		Long: "Print the migrations for another tool, or write them as files to a folder. Set\n" +
			"--start to the number of the first file, if it must follow other files in the\n" +
			"folder. Existing migrations are not written again, under any number,\n" +
			"and other files are never overwritten. A file for golang-migrate has several\n" +
			"statements: set multiStatements=true for its MySQL driver. \"falldue migrate up\"\n" +
			"and Queue.Migrate refuse tables that another tool created.\n\n" +
			"This command needs no database.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := dialect.DefaultServer(dialect.Name(engine))
			if err != nil {
				return mistake(err)
			}
			first, err := startNumber(start)
			if err != nil {
				return mistake(err)
			}
			files, err := migrations.Dump(d, migrations.DumpParams{Tables: p.tables, Format: migrations.Format(format), Start: first})
			if err != nil {
				return mistake(err)
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
	complete(cmd, "format", formatNames()...)
	cmd.Flags().StringVar(&start, "start", "1", "number of the first file, or \"timestamp\" for a number made from the current time, such as 20261211140200")
	cmd.Flags().StringVar(&folder, "dir", "", "write files to this `folder` (default print to standard output)")
	return cmd
}

func formats() string { return strings.Join(formatNames(), ", ") }

func formatNames() []string {
	names := make([]string, len(migrations.Formats))
	for i, format := range migrations.Formats {
		names[i] = string(format)
	}
	return names
}

// migrate calls fn with a migrator of the tables.
func (p *place) migrate(ctx context.Context, fn func(*migrations.Migrator) error) error {
	return p.open(ctx, func(db *sqlx.DB) error {
		server, err := dialect.Probe(ctx, db)
		if err != nil {
			return err
		}
		m, err := migrations.New(db.DB, server, p.tables)
		if err != nil {
			return mistake(err)
		}
		return fn(m)
	})
}
