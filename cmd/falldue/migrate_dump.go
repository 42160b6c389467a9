package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/falldue/falldue/migrations"
)

// startNumber returns the number that --start names.
func startNumber(start string) (int64, error) {
	if start == "timestamp" {
		start = time.Now().UTC().Format("20060102150405")
	}
	n, err := strconv.ParseInt(start, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--start %q: must be a number above 0, or \"timestamp\"", start)
	}
	return n, nil
}

// numbered matches the name of a migration: its number and its subject.
var numbered = regexp.MustCompile(`^0*([0-9]+)_(.+\.sql)$`)

// dumpInto writes migrations to a folder, and prints their paths. It creates the folder if it
// does not exist. If the folder has a migration under another number, dumpInto prints the path
// of that file. It returns an error and writes nothing if a file has other contents than its
// migration, or if another file has the number of a new migration.
func dumpInto(out io.Writer, folder string, files []migrations.File) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // migrations are not secret
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	bySubject, byNumber := map[string]string{}, map[string]string{}
	for _, entry := range entries {
		if m := numbered.FindStringSubmatch(entry.Name()); m != nil {
			byNumber[m[1]], bySubject[m[2]] = entry.Name(), entry.Name()
		}
	}
	texts := map[string][]byte{} // of the files to write, by their paths
	var paths []string
	for _, file := range files {
		m := numbered.FindStringSubmatch(file.Name)
		path := filepath.Join(folder, file.Name)
		if old, there := bySubject[m[2]]; there {
			path = filepath.Join(folder, old)
			if text, err := os.ReadFile(path); err != nil { //nolint:gosec // the user names the folder
				return err
			} else if !bytes.Equal(text, []byte(file.Text)) {
				return fmt.Errorf("%s exists with other contents; no file was written", path)
			}
		} else if other, taken := byNumber[m[1]]; taken {
			return fmt.Errorf("%s has the same number as the new file %s; set another first number with --start", filepath.Join(folder, other), file.Name)
		} else {
			texts[path] = []byte(file.Text)
		}
		paths = append(paths, path)
	}
	for _, path := range paths {
		if text, isNew := texts[path]; isNew {
			if err := writeNew(path, text); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(out, path); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file that does not exist.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // migrations are not secret, and the user names the folder
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
