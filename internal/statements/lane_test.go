package statements_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
)

// TestNamesWithSpacesAreLeftAlone: a user who edits rows may write a name with a
// space, which falldue does not. Where the index has the text of a lane, such a
// name could be taken for the end of another one.
func TestNamesWithSpacesAreLeftAlone(t *testing.T) {
	eachServer(t, func(t *testing.T, db *sqlx.DB, s dialect.Server) {
		clock, now := s.Clock(), s.Clock().Now
		for _, r := range [][3]string{ // queue, state, kind
			{"a", "open", "kind"}, {"z", "open", "kind"},
			{"default", "open", "kind"}, {"default", "open", "kind  0"}, {"default", "snoozed", "open 0 kind"},
			{"default open", "open", "kind"}, {"default open 0 kind", "open", ""}, {"default open 0 kind  0", "open", "kind"},
			{"default", "done", "kind"}, {"default done", "done", "kind"}, {"default done 0 kind", "open", "kind"}, {"default!", "done", "kind"},
		} {
			run(t, db, "insert into "+tables.Name(s, "tasks")+" (queue, state, kind, updated_at, created_at, payload) values ('"+
				r[0]+"', '"+r[1]+"', '"+r[2]+"', "+clock.Shift(now, "-1000000")+", "+now+", '{}')")
		}
		type found struct{ state, kind string }
		var lanes []found
		for _, h := range sweep(t, db, s) {
			lanes = append(lanes, found{h.State, h.Kind})
		}
		slices.SortFunc(lanes, func(a, b found) int { return strings.Compare(a.state+a.kind, b.state+b.kind) })
		if want := []found{{"open", "kind"}, {"open", "kind  0"}, {"snoozed", "open 0 kind"}}; !slices.Equal(lanes, want) {
			t.Errorf("a sweep found %q, want %q", lanes, want)
		}
		filter := statements.Values{"queue": "default", "state": "done", "keep": int64(0), "upto": int64(4e15), "limit": 10, "skip": 0, "after": int64(0)}
		finished := finishedLanes(t, db, s, "done")
		if len(finished) != 1 || finished[0].Kind != "kind" {
			t.Fatalf("finished tasks are in %+v, want one lane", finished)
		}
		statements.SetLane(filter, finished[0].Lane)
		filter["since"] = int64(0)
		if old := read(t, db, statements.FinishedColumns, statements.Clean(s, tables), filter, nil); len(old) != 1 || old[0].ID != 9 {
			t.Errorf("to be cleaned are %+v, want task 9", old)
		}
		filter["state"] = "open"
		list := read(t, db, statements.TaskColumns, statements.List(s, tables, statements.ListParams{Queue: true, State: true}), filter, nil)
		if len(list) != 2 || list[0].ID != 3 || list[1].ID != 4 {
			t.Errorf("in the list are %+v, want tasks 3 and 4", list)
		}
		lane := statements.Lane{State: statements.StateOpen, Kind: "kind"}
		if claims := claim(t, db, s, "me", 10, formula(t, "0"), lane); len(claims) != 1 || claims[0].ID != 3 {
			t.Errorf("a claim takes %+v, want task 3", claims)
		}
	})
}
