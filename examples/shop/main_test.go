package main

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/falldue/falldue/internal/testdb"
)

// TestMain is no part of the shop: a copy of it does without this file. "go test ./..." of
// falldue finds or starts a server of each engine, which only internal/testdb knows. The tests
// run on each of them, one after the other, as if SHOP_TEST_DSN named it.
func TestMain(m *testing.M) {
	flag.Parse()
	engines, err := testdb.RunEngines()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if os.Getenv("SHOP_TEST_DSN") != "" {
		os.Exit(m.Run())
	}
	if testing.Short() {
		fmt.Println("testdb: -short covers SQLite alone, and the shop has no driver of it")
		return
	}
	status := 0
	for _, engine := range engines {
		if engine == testdb.SQLite {
			continue
		}
		fmt.Println("the shop on", engine)
		server, err := testdb.Server(engine)
		if err != nil {
			fmt.Println(err)
			status = 1
			continue
		}
		_ = os.Setenv("SHOP_TEST_DSN", server)
		status = max(status, m.Run())
	}
	os.Exit(status)
}
