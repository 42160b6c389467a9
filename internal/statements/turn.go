package statements

import "github.com/falldue/falldue/dialect"

// A turn is the right to make one of the two large claims of the same lanes that
// may be under way at a time, over all processes: two keep a server busy while
// the answer of one is read. Claims beside each other step over the rows that the
// others have locked, and on PostgreSQL hold rows that another has just taken:
// with many workers most of the work would be that. Nothing but speed rests on
// turns, a claim without one is as exclusive.
//
// The parameter turn names the lanes: an even number below 2^62.

// Turn takes a turn for the connection and returns 1 or 2, or 0 where others
// have both. For engines with Caps.SkipLocked whose claims are several
// statements; [Claim] takes its own. Parameters: turn.
func Turn(s dialect.Server) Stmt {
	b := newBuilder(s)
	b.add("select case when get_lock(", turnName(b, "1"), ", 0) then 1 when get_lock(", turnName(b, "2"), ", 0) then 2 else 0 end")
	return b.stmt()
}

// EndTurn gives a turn back. Parameters: turn, number.
func EndTurn(s dialect.Server) Stmt {
	b := newBuilder(s)
	b.add("do release_lock(", turnName(b, b.arg("number")), ")")
	return b.stmt()
}

// turnName is a turn's name among the locks of all databases of the server,
// which have at most 64 bytes.
func turnName(b *builder, number string) string {
	return "sha2(concat_ws(' ', 'falldue', database(), " + b.arg("turn") + ", " + number + "), 224)"
}
