package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMariaDBIsNotMySQL: a package of MariaDB has a link mysqld. bench starts no server of it for MySQL.
func TestMariaDBIsNotMySQL(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mariadbd"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("mariadbd", filepath.Join(folder, "mysqld")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	if _, _, err := start(t.Context(), mySQL); err == nil || !strings.Contains(err.Error(), "no mysql server") {
		t.Errorf("error %v, want that there is no MySQL server", err)
	}
}
