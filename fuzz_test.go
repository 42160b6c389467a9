package falldue_test

import (
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// The fuzz tests check on SQLite, which runs in this process, the properties that
// TestHostileInput checks on every engine.

func FuzzNames(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, "")
		f.Add("k", text)
	}
	s := newScene(f, testdb.SQLite)
	f.Fuzz(func(t *testing.T, kind, queue string) { s.checkNames(t, kind, queue) })
}

func FuzzPayload(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text)
	}
	for _, text := range hostileJSON {
		if len(text) < 1<<16 { // the fuzzer changes one byte of a megabyte at a time
			f.Add(text)
		}
	}
	s := newScene(f, testdb.SQLite)
	f.Fuzz(func(t *testing.T, text string) {
		s.checkText(t, text)
		s.checkJSON(t, text)
	})
}

func FuzzTables(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, "")
		f.Add("x", text)
	}
	s := newScene(f, testdb.SQLite)
	f.Fuzz(func(t *testing.T, prefix, schema string) { s.checkTables(t, prefix, schema) })
}

func FuzzTaskIDs(f *testing.F) {
	for _, id := range hostileIDs {
		f.Add(id)
	}
	s := newScene(f, testdb.SQLite)
	f.Fuzz(func(t *testing.T, id int64) { s.checkID(t, id) })
}

func FuzzTaskFilter(f *testing.F) {
	for i, text := range hostileTexts {
		f.Add(text, "", "", int64(0), i)
		f.Add("", text, "cancelled", hostileIDs[i%len(hostileIDs)], 0)
		f.Add("a", "default", text, int64(1), -i)
	}
	s := newScene(f, testdb.SQLite)
	all := s.populate(f)
	f.Fuzz(func(t *testing.T, queue, kind, state string, after int64, limit int) {
		s.checkFilter(t, all, ops.Filter{Queue: queue, Kind: kind, State: falldue.State(state)}, ops.ListOptions{After: after, Limit: limit})
	})
}
