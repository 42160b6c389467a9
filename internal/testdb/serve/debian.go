package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// debianRoot is the script that makes a folder with a small Debian in it. CI makes
// its images from these folders too.
//
//go:embed debian-root
var debianRoot string

// mysqlPackages are what mysqld needs; its package does not depend on the library.
const mysqlPackages = "mysql-server-core,libaio1t64"

// mariadbPackages are what mariadbd and its installation script need.
const mariadbPackages = "mariadb-server-core,mariadb-client-core"

// startFromDebian starts a server from the packages of a release of Debian. The programs
// take the folder with them for /.
func startFromDebian(ctx context.Context, engine, suite, packages string) (*server, error) {
	root, err := debianFolder(ctx, suite, packages)
	if err != nil {
		return nil, err
	}
	p, err := findPrograms(engine, root)
	if err != nil {
		return nil, err
	}
	return p.start(ctx)
}

// debianFolder installs packages of a release of Debian, whichever release this machine
// has, in a folder of the user's cache.
func debianFolder(ctx context.Context, suite, packages string) (root string, err error) {
	if os.Geteuid() != 0 {
		return "", errors.New("a folder with another Debian needs root")
	}
	if lookUp("", "debootstrap") == "" {
		if err := aptInstall(ctx, "debootstrap", "debian-archive-keyring"); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(os.Stderr, "testdb: %s of Debian %s; the first time this takes a minute\n", packages, suite)
	script := exec.CommandContext(ctx, "sh", "-c", debianRoot, "debian-root", suite, packages)
	inOwnGroup(script)
	script.Cancel = func() error { return signalGroup(script, syscall.SIGTERM) }
	if root, err = output(script); err != nil {
		return "", fmt.Errorf("debootstrap: %w", err)
	}
	return root, nil
}
