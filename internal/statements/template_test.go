package statements

import (
	"strings"
	"testing"

	"github.com/falldue/falldue/dialect"
)

func server(t testing.TB, name dialect.Name) dialect.Server {
	t.Helper()
	s, err := dialect.DefaultServer(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, postgres, mysql, binds, mysqlBinds string }{
		{"select :a, :b, :a", "select $1, $2, $1", "select ?, ?, ?", "a, b", "a, b, a"},
		{"x::text || ':b {c}' || :a", "x::text || ':b {c}' || $1", "x::text || ':b {c}' || ?", "a", "a"},
		{"{least a, {least :b, (c, d)}}", "least(a, least($1, (c, d)))", "least(a, least(?, (c, d)))", "b", "b"},
		{"\nfrom {tasks}\n\t\twhere {nested} and :z = 1\norder by 1", "from \"s:x\".\"{a}tasks\" where q = $1 and $2 = 1\norder by 1",
			"from `s:x`.`{a}tasks` where q = ? and ? = 1\norder by 1", "queue, z", "queue, z"},
		{"{int :n}", "$1::bigint", "?", "n", "n"},
		{"{later} {nested}", "$1 q = $2", "? q = ?", "z, queue", "z, queue"},
	} {
		for name, want := range map[dialect.Name][2]string{dialect.Postgres: {c.postgres, c.binds}, dialect.MySQL: {c.mysql, c.mysqlBinds}} {
			// Nothing in the name of a table is taken for a hole or a parameter.
			b := newBuilder(server(t, name), dialect.Tables{Schema: "s:x", Prefix: "{a}"})
			b.set("nested", "q = {the queue}")
			b.set("the queue", ":queue")
			b.set("later", func() string { return b.param("z") })
			got := b.stmt(c.template)
			if got.SQL != want[0] || got.Binds() != want[1] {
				t.Errorf("%s: %q became\n%s\nbound to %s; want\n%s\nbound to %s", name, c.template, got.SQL, got.Binds(), want[0], want[1])
			}
		}
	}
}

func TestMistakesInTemplatesPanic(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"select {nothing}":         "{nothing}",
		"select {least a}":         "{least a}",
		"select {least}":           "{least}",
		"select {tasks a}":         "{tasks a}",
		"select {micros {nested}}": "{nested}",
		"select {micros a":         "open brace",
		"select 'a":                "open quote",
		"select a : b":             "colon without a name",
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("%q: panic %q, want one about %q", template, text, want)
				}
			}()
			newBuilder(server(t, dialect.Postgres), dialect.Tables{}).stmt(template)
		}()
	}
}

// TestServersOfNoEnginePanic: if a server leaves a choice open, making a statement panics. It does not
// use the choice of some engine.
func TestServersOfNoEnginePanic(t *testing.T) {
	t.Parallel()
	s := server(t, dialect.Postgres)
	s.Caps.Rows, s.Caps.Locks, s.Caps.Upsert = 0, 0, 0
	if s.Caps.Validate() == nil {
		t.Error("Caps that leave everything open are valid")
	}
	for name, make := range map[string]func(){
		"Rows":   func() { Delete(s, dialect.Tables{}, 1) },
		"Locks":  func() { TakeClaimSlot(s) },
		"Upsert": func() { PutPolicy(s, dialect.Tables{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			make()
		}()
	}
}
