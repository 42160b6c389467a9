//go:build !linux

package main

import "os"

func tempFolder() string { return os.TempDir() }
