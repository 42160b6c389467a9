package main

import (
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/flow"
	"github.com/falldue/falldue/internal/testdb"
)

func TestBlockedTasksAreShown(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		q, err := falldue.New(s.db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		kind := falldue.NewKind[int]("page.render", falldue.KindConfig{})
		if _, err := flow.Batch(kind.Params(1), kind.Params(2)).Then(kind.Params(3)).Enqueue(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		s.run("cancel", "1", "--yes")
		contains(t, s.run("ls", "--state", "blocked"), `(?m)^ 3  default  page.render  blocked `)
		contains(t, s.run("ls", "--phase", "blocked"), `(?m)^ 3  default  page.render  blocked `)
		contains(t, s.run("counts"), `(?m)^queue +kind +blocked +open `, `(?m)^default +page\.render +1 +1 +0 +0 +1 +0$`)
		contains(t, s.run("show", "3"), `(?m)^state +blocked$`, `\nit runs after other tasks: falldue why 3\n`)
		out, _ := s.fails(exitWaits, "why", "3")
		contains(t, out, `^task 3, of kind page.render in queue default, is blocked: it runs after other tasks, see members\n\nok   state     blocked\n`+
			`no   members   it runs after 2 tasks: 1 cancelled, 1 unfinished; waiting for task 2; dead or cancelled: task 1; this task stays blocked until "falldue retry" has retried task 1\n$`)
	})
}
