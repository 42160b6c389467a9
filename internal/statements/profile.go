package statements

import "github.com/falldue/falldue/dialect"

// Profile counts the tasks that wait or run, by everything that their due times depend on and by
// the minute of their anchors. It returns [ProfileColumns], and reads the whole index of
// tasks, or the table.
func Profile(s dialect.Server, tables dialect.Tables) Stmt { return profile(s, tables, "") }

// ProfileKey is like [Profile] for the tasks with a :key.
func ProfileKey(s dialect.Server, tables dialect.Tables) Stmt {
	return profile(s, tables, keyCondition(false))
}

// ProfilePart is like [Profile] for the tasks that have parts of a key.
func ProfilePart(s dialect.Server, tables dialect.Tables) Stmt {
	return profile(s, tables, keyCondition(true))
}

func profile(s dialect.Server, tables dialect.Tables, condition string) Stmt {
	b := newBuilder(s, tables)
	minute := s.Cast(s.Func("floor")+"("+s.Cast("{micros updated_at}", dialect.Double)+" / "+s.Literal(60e6)+")", dialect.Int)
	b.set("profile", ProfileColumns.list("", map[string]string{
		"minute": minute, "first": "min(updated_at)", "last": "max(updated_at)", "tasks": "count(*)", "clock": "{now}",
	}))
	b.set("sorted", "")
	if s.Caps.BigResult {
		b.set("sorted", "sql_big_result ")
	}
	// The minute comes first: an engine that sorts compares numbers faster than texts, and most
	// of the texts are equal.
	return b.stmt(`
select {sorted}{profile} from {tasks}
where state in ('open', 'snoozed')` + condition + `
group by 6, 5, 4, 3, 2, 1`)
}
