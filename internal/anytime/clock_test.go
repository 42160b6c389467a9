package main

import (
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/falldue/falldue/internal/testdb"
)

// TestClocksAgree: Go and SQLite have the same time of day. If anytime runs this test, that is the
// time that anytime has set.
func TestClocksAgree(t *testing.T) {
	db := testdb.Open(t, testdb.SQLite)
	before := time.Now()
	var millis int64
	if err := db.QueryRowContext(t.Context(), "select cast(round((julianday('now') - 2440587.5) * 86400000) as integer)").Scan(&millis); err != nil {
		t.Fatal(err)
	}
	if at, after := time.UnixMilli(millis), time.Now(); at.Before(before.Add(-time.Millisecond)) || at.After(after.Add(time.Millisecond)) {
		t.Errorf("SQLite has %v between %v and %v", at, before, after)
	}
	file, err := os.CreateTemp(t.TempDir(), "") // with the time of the machine's clock
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	shift, _ := strconv.Atoi(os.Getenv(shiftVariable))
	if got := time.Since(info.ModTime().Add(time.Duration(shift) * time.Second)); got < -time.Second || got > time.Minute {
		t.Errorf("the time is %v, %v later than wanted", time.Now(), got)
	}
	synctest.Test(t, func(t *testing.T) {
		if now := time.Now().UTC(); now.Year() != 2000 {
			t.Errorf("the clock of a bubble begins at %v", now)
		}
	})
}
