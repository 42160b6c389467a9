package migrations

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/falldue/falldue/dialect"
)

// Format is the file format of a migration tool.
type Format string

// The formats of [Dump].
const (
	// Goose has one file for each migration, with both directions and goose's annotations.
	Goose Format = "goose"
	// GolangMigrate has one file for each direction: N_name.up.sql, N_name.down.sql.
	GolangMigrate Format = "golang-migrate"
	// Atlas has one file of plain SQL for each migration, without a down migration.
	Atlas Format = "atlas"
)

// Formats lists all formats.
var Formats = []Format{Goose, GolangMigrate, Atlas}

// ErrFormat means that a format is not in [Formats]. [Dump] returns it, wrapped.
var ErrFormat = errors.New("migrations: unknown format")

// File is a file with a migration, or with one direction of it.
type File struct{ Name, Text string }

// DumpParams selects the files that [Dump] returns. Tables and Format are required.
type DumpParams struct {
	Tables dialect.Tables
	Format Format
	// Start is the number of the first file. Each further file has the next number. Start
	// may be a timestamp such as 20060102150405. Defaults to 1.
	Start int64
}

// Dump returns the migrations of an engine as files for another tool, oldest first. The
// error wraps [ErrFormat] for an unknown format. Dump also returns an error for a negative
// Start, and for Tables that are not valid for d.
func Dump(d dialect.Server, p DumpParams) ([]File, error) {
	format, start := p.Format, cmp.Or(p.Start, 1)
	if !slices.Contains(Formats, format) {
		return nil, fmt.Errorf("%w %q; the formats are %v", ErrFormat, format, Formats)
	}
	if start < 1 {
		return nil, fmt.Errorf("migrations: start number %d: must be above 0", start)
	}
	files, err := FS(d, p.Tables)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	var list []File
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		up, down := directions(string(text))
		_, subject, _ := strings.Cut(name, "_")
		name := fmt.Sprintf("%05d_%s", start+int64(i), subject)
		base := strings.TrimSuffix(name, ".sql")
		switch format {
		case Goose:
			list = append(list, File{name, string(text)})
		case GolangMigrate:
			list = append(list, File{base + ".up.sql", up}, File{base + ".down.sql", down})
		case Atlas:
			list = append(list, File{name, up})
		}
	}
	return list, nil
}

// directions splits a migration of goose's format into plain SQL for each direction.
func directions(text string) (up, down string) {
	var parts [2]strings.Builder
	to := 0
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "-- +goose Up"):
			to = 0
		case strings.HasPrefix(line, "-- +goose Down"):
			to = 1
		case !strings.HasPrefix(line, "-- +goose"):
			parts[to].WriteString(line)
		}
	}
	return strings.TrimSpace(parts[0].String()) + "\n", strings.TrimSpace(parts[1].String()) + "\n"
}
