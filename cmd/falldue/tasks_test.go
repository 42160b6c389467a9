package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/backoff"
	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/connect"
	"github.com/falldue/falldue/internal/testdb"
)

// shop is a database with tasks, for the commands to look at.
type shop struct {
	t   *testing.T
	dsn string
	db  *sqlx.DB
}

func openShop(t *testing.T, engine string) shop {
	t.Helper()
	s := shop{t: t, dsn: testdb.DSN(t, engine)}
	return openOn(t, s.dsn)
}

// openOn creates the tables of a shop in a database.
func openOn(t *testing.T, dsn string) shop {
	t.Helper()
	s := shop{t: t, dsn: dsn}
	s.run("migrate", "up")
	db, err := connect.Open(t.Context(), "", s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s.db = db
	return s
}

// run runs a command on the database, which must succeed.
func (s shop) run(args ...string) string {
	s.t.Helper()
	return mustRun(s.t, append(args, "--dsn", s.dsn)...)
}

// complete returns what a shell would offer for the last argument of a command.
func (s shop) complete(args ...string) string {
	s.t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs(append([]string{"__complete", args[0], "--dsn", s.dsn}, args[1:]...))
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard) // it says what it does
	if err := cmd.ExecuteContext(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return out.String()
}

// fails runs a command that ends with a status.
func (s shop) fails(status int, args ...string) (string, error) {
	s.t.Helper()
	out, err := execute(s.t, append(args, "--dsn", s.dsn)...)
	if got := exitStatus(err); got != status {
		s.t.Errorf("%v ended with status %d, want %d; error %v", args, got, status, err)
	}
	return out, err
}

// work runs handlers until done reports true.
func (s shop) work(handle func(*falldue.Queue), done func(*falldue.Queue) bool) {
	s.t.Helper()
	q, err := falldue.New(s.db, falldue.Config{PollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	handle(q)
	ctx, stop := context.WithTimeout(s.t.Context(), testdb.Patience)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	for !done(q) {
		if ctx.Err() != nil {
			s.t.Fatal("the tasks did not run")
		}
	}
	stop()
	if err := <-ended; err != nil {
		s.t.Fatal(err)
	}
}

// age moves the anchors of tasks into the past.
func (s shop) age(by time.Duration, where string) {
	s.t.Helper()
	server, err := dialect.Probe(s.t.Context(), s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	s.db.MustExec("update falldue_tasks set updated_at = " + server.Clock().Shift("updated_at", fmt.Sprint(-by.Microseconds())) + " where " + where)
}

// contains reports each text that a command should have printed and did not.
func contains(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(got) {
			t.Errorf("printed\n%swithout a match of\n%s", got, w)
		}
	}
}

// TestCommandsShowAndChangeTasks follows three tasks: one that fails, one that is dead, and
// one that waits.
func TestCommandsShowAndChangeTasks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		for i, args := range [][]string{{"charge", `{"order":42}`, "--key", "customer:7", "--metadata", "by=ann,in=tour"}, {"mail", "--max-attempts", "3"}, {"mail", `{"to": "x"}`, "--delay", "10h", "--own-policy", "delay 10m; attempts 4"}} {
			if got, want := s.run(append([]string{"enqueue"}, args...)...), fmt.Sprintf("enqueued %d\n", i+1); got != want {
				t.Errorf("printed %q, want %q", got, want)
			}
		}
		s.work(func(q *falldue.Queue) {
			slow := falldue.KindConfig{Policy: backoff.ParseDeferred("delay 1h; attempts 5")}
			falldue.Handle(q, falldue.NewKind[struct{}]("charge", slow), func(context.Context, falldue.Task[struct{}]) error {
				return errors.New("the bank\nis \x1b[31mclosed")
			})
			falldue.Handle(q, falldue.NewKind[struct{}]("mail", slow), func(context.Context, falldue.Task[struct{}]) error {
				return falldue.Discard(errors.New("no such address"))
			})
		}, func(q *falldue.Queue) bool {
			charge, err := q.Task(t.Context(), 1)
			mail, other := q.Task(t.Context(), 2)
			return err == nil && other == nil && charge.LastError != "" && mail.State == falldue.StateDead
		})

		contains(t, s.run("counts"), `(?m)^queue +kind +open +snoozed +dead +cancelled +done$`, `(?m)^default +mail +1 +0 +1 +0 +0$`, `(?m)^all +2 +0 +1 +0 +0$`)
		contains(t, s.run("counts", "--kind", "charge", "--json"), `^{"queue":"default","kind":"charge","state":"open","tasks":1}\n$`)
		contains(t, s.run("queues"), `(?m)^default +2 +in (10h|9h5\dm) +charge mail$`)
		contains(t, s.run("queues", "--policy", "charge=1h"), `(?m)^default +2 +in (1h|\d+m\d+s) +charge mail$`)

		first := s.run("ls", "--limit", "2")
		contains(t, first, `(?m)^ 1 +default +charge +unknown_policy +1 +tried \S+ ago +the bank is .\[31mclosed$`, `(?m)^ 2 +default +mail +dead +1 +\S+ ago +no such address$`, `the next page: --after 2\n$`)
		if strings.Contains(first, "\x1b") {
			t.Errorf("printed an escape sequence of a task: %q", first)
		}
		contains(t, s.run("ls", "--limit", "2", "--after", "2"), `(?m)^ 3 +default +mail +scheduled +0 +in (10h|9h5\dm)$`)
		for _, policy := range []string{"charge=1h", "1h"} {
			contains(t, s.run("ls", "--policy", policy, "--phase", "backing_off"), `(?m)^ *1 +default +charge +backing_off +1 +in (1h|\d+m\d+s) `)
		}
		contains(t, s.run("ls", "--match", `{"order": 42}`, "--key", "customer:7", "--newer-than", "1h", "--json"), `^{"id":1,.*"phase":"unknown_policy".*\n$`)
		if got := s.run("ls", "--older-than", "1h", "--json"); got != "" {
			t.Errorf("tasks older than an hour: %s", got)
		}
		if got := strings.Count(s.run("ls", "--limit", "1", "--all", "--json"), "\n"); got != 3 {
			t.Errorf("all pages have %d tasks, want 3", got)
		}
		if got := s.run("ls", "--state", "dead", "--queue", "default", "--json"); !strings.HasPrefix(got, `{"id":2,`) || strings.Count(got, "\n") != 1 {
			t.Errorf("dead tasks: %s", got)
		}

		contains(t, s.run("show", "1"), `(?m)^key +customer:7$`, `(?m)^metadata +by: ann\nmetadata +in: tour$`, `(?m)^attempts +1$`, `policy     unknown, since no live worker handles the kind; set it with --policy`, `(?m)^ +1 +\S+ \S+ +\S+ +retried +\S+ +the bank is`)
		contains(t, s.run("show", "1", "--policy", "delay 1h; attempts 3", "--future", "9"), `(?m)^attempts +1 of 3$`, `(?m)^ +2 +(1h|5\dm\d*s?) `, `(?m)^ +3 +(2h|1h5\dm|1h) `, `then it is dead\n$`)
		contains(t, s.run("show", "3"), `per-task \(policy:[0-9a-f]{16}\): delay 10m; attempts 4`, `(?m)^payload +{"to": ?"x"}$`, `no attempt has failed`, `(?m)^ +4 +10h(30|2\d)m +`, `then it is dead\n$`)
		var shown struct {
			Running  bool
			Metadata map[string]string
			Past     []struct{ Outcome, Error string }
			Future   []struct{ Attempt int }
		}
		if err := json.Unmarshal([]byte(s.run("show", "1", "--policy", "1h", "--json")), &shown); err != nil {
			t.Fatal(err)
		}
		if len(shown.Past) != 1 || shown.Past[0].Outcome != "retried" || len(shown.Future) != 5 || shown.Future[0].Attempt != 2 || shown.Running || shown.Metadata["by"] != "ann" {
			t.Errorf("show --json has %+v", shown)
		}

		for want, args := range map[string][]string{
			"charge\nmail\n:4\n": {"ls", "--kind", ""}, "default\n:4\n": {"explain", ""}, "dead\n": {"ls", "--state", "d"},
		} {
			if got := s.complete(args...); !strings.Contains(got, want) {
				t.Errorf("%v completes to %q, want %q", args, got, want)
			}
		}

		if got := s.run("retry", "2"); got != "retried 2\n" {
			t.Errorf("retry printed %q", got)
		}
		contains(t, s.run("ls", "2"), `(?m)^ 2 +default +mail +due +0 +due `)
		if got := s.run("change", "2", "--priority", "-3", "--at", "2999-01-01T00:00:00Z"); got != "changed 2\n" {
			t.Errorf("change printed %q", got)
		}
		contains(t, s.run("ls", "2"), `(?m)^ 2 +default +mail +scheduled +0 `)
		contains(t, s.run("show", "2"), `(?m)^queue +default, priority -3$`)
		if got := s.run("change", "2", "--now", "--json"); got != `{"id":2,"change":"changed"}`+"\n" {
			t.Errorf("change --now printed %q", got)
		}
		if got, err := s.fails(exitUsage, "change", "2"); got != "" || !strings.Contains(err.Error(), "nothing to change") {
			t.Errorf("a change of nothing printed %q, error %v", got, err)
		}
		if got, _ := s.fails(exitNotFound, "retry", "2", "99"); got != "" {
			t.Errorf("a retry of an open task printed %q", got)
		}
		if got, err := s.fails(exitNotFound, "retry", "2", "--state", "done"); got != "" || !strings.Contains(err.Error(), "task 2 is open; expected done") {
			t.Errorf("a retry of an open task as a done one printed %q, error %v", got, err)
		}
		if got, err := s.fails(exitUsage, "retry", "2", "--state", "open"); got != "" || !strings.Contains(err.Error(), `--state "open": must be done, dead or cancelled`) {
			t.Errorf("a retry of open tasks printed %q, error %v", got, err)
		}
		if got, err := s.fails(exitUsage, "cancel", "3"); got != "" || !strings.Contains(err.Error(), "confirm with --yes") {
			t.Errorf("cancel without --yes printed %q, error %v", got, err)
		}
		if got, _ := s.fails(exitNotFound, "cancel", "99", "3", "--yes", "--json"); got != `{"id":3,"change":"cancelled"}`+"\n" {
			t.Errorf("cancel of a missing task and another one printed %q", got)
		}
		if got, _ := s.fails(exitNotFound, "show", "99"); got != "" {
			t.Errorf("show of a missing task printed %q", got)
		}
		if got, _ := s.fails(exitNotFound, "ls", "99", "1"); !strings.Contains(got, "charge") {
			t.Errorf("ls of a missing task and another one printed %q", got)
		}

		var own struct{ Policy string }
		if err := json.Unmarshal([]byte(s.run("ls", "3", "--json")), &own); err != nil {
			t.Fatal(err)
		}
		contains(t, s.run("policy", "show", own.Policy), "^"+own.Policy+`  delay 10m; attempts 4\n$`)
		if got, _ := s.fails(exitNotFound, "policy", "show", "nonsense"); got != "" {
			t.Errorf("a policy that is not there is printed as %q", got)
		}
		if got := s.run("overdue"); got != "nothing is overdue\n" {
			t.Errorf("overdue printed %q", got)
		}
		s.age(2*time.Minute, "id = 2")
		s.age(2*time.Hour, "id = 1")
		got, _ := s.fails(exitAttention, "overdue")
		contains(t, got, `(?m)^default +mail +1 +\S+ \S+ UTC +a worker$`)
		got, _ = s.fails(exitAttention, "overdue", "--policy", "charge=1h", "--json")
		contains(t, got, `^{"queue":"default","kind":"charge","tasks":1,"due_since":"[^"]+"}\n{"queue":"default","kind":"mail",`)
	})
}

func TestMistakesOfTheCommandLine(t *testing.T) {
	t.Setenv(dsnVariable, "")
	file := filepath.Join(t.TempDir(), "shop.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil { // a database without tables
		t.Fatal(err)
	}
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{exitUsage, `unknown command "nonsense" for "falldue"`, []string{"nonsense"}},
		{exitUsage, `unknown command "polcy" for "falldue"; did you mean policy?`, []string{"polcy"}},
		{exitUsage, `unknown command "nonsense" for "falldue policy"`, []string{"policy", "nonsense"}},
		{exitUsage, `unknown command "nonsense" for "falldue policy"`, []string{"help", "policy", "nonsense"}},
		{exitUsage, `unknown flag --nonsense`, []string{"ls", "--nonsense"}},
		{exitUsage, `no database is given; use --dsn, or set FALLDUE_DSN`, []string{"ls"}},
		{exitUsage, `"x": must be the ID of a task, a whole number above 0`, []string{"show", "x", "--dsn", file}},
		{exitUsage, `0 arguments given; usage: falldue show ID [flags]`, []string{"show", "--dsn", file}},
		{exitUsage, `--limit "0": must be a whole number from 1 to 10,000`, []string{"ls", "--limit", "0", "--dsn", file}},
		{exitUsage, `--limit "99999999999999999999": must be a whole number from 1 to 10,000`, []string{"ls", "--limit", "99999999999999999999", "--dsn", file}},
		{exitUsage, `state "lost": must be`, []string{"ls", "--state", "lost", "--dsn", file}},
		{exitUsage, `phase "lost": must be`, []string{"ls", "--phase", "lost", "--dsn", file}},
		{exitUsage, `no tasks selected: list IDs, or set flags`, []string{"delete", "--dsn", file}},
		{exitUsage, `both IDs and flags select tasks`, []string{"cancel", "1", "--kind", "mail", "--dsn", file}},
		{exitUsage, `--payload is for one task`, []string{"retry", "1", "2", "--payload", "{}", "--dsn", file}},
		{exitUsage, `the payload "{" is not JSON`, []string{"retry", "1", "--payload", "{", "--dsn", file}},
		{exitUsage, `--rate, --over and --from need flags that select tasks, such as --kind`, []string{"retry", "1", "--rate", "5", "--dsn", file}},
		{exitUsage, `--from "noon": must be a time`, []string{"retry", "--kind", "mail", "--from", "noon", "--dsn", file}},
		{exitUsage, `unknown name "nonsense"`, []string{"ls", "--policy", "mail=nonsense", "--dsn", file}},
		{exitUsage, `the payload "{" is not JSON`, []string{"enqueue", "mail", "{", "--dsn", file}},
		{exitUsage, `--at "tomorrow": must be a time such as 2026-12-11T14:02:00Z`, []string{"enqueue", "mail", "--at", "tomorrow", "--dsn", file}},
		{exitUsage, `kind "a b": must be`, []string{"enqueue", "a b", "--dsn", file}},
		{exitUsage, `--interval 1ms: must be 100ms or more`, []string{"top", "--interval", "1ms", "--dsn", file}},
		{exitUsage, `--tasks "0": must be a whole number from 1 to 10,000,000`, []string{"bench", "--tasks", "0", "--dsn", file}},
		{exitFailed, `the tables are missing or not up to date`, []string{"why", "1", "--dsn", file}},
		{exitFailed, `the tables are missing or not up to date`, []string{"tail", "--dsn", file}},
		{exitFailed, `the tables are missing or not up to date`, []string{"workers", "--dsn", file}},
		{exitFailed, `the tables are missing or not up to date`, []string{"ls", "--dsn", file}},
		{exitFailed, `open the database with driver postgres`, []string{"ls", "--dsn", "postgres://app:S3CRET@127.0.0.1:1/shop"}},
	} {
		_, err := execute(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "S3CRET") || exitStatus(err) != c.status {
			t.Errorf("%v: error %v with status %d, want %q with %d", c.args, err, exitStatus(err), c.says, c.status)
		}
	}
}

// TestEnqueueReadsThePayload: from standard input, with a time.
func TestEnqueueReadsThePayload(t *testing.T) {
	t.Parallel()
	s := openShop(t, testdb.SQLite)
	cmd := root()
	cmd.SetArgs([]string{"enqueue", "mail", "-", "--at", "2036-12-11T14:02:00Z", "--priority", "-5", "--queue", "slow", "--dsn", s.dsn})
	cmd.SetOut(io.Discard)
	cmd.SetIn(strings.NewReader("{\"to\": \"x\"}\n"))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	contains(t, s.run("show", "1"), `(?m)^queue +slow, priority -5$`, `{"to":"x"}`, `attempt 1 is due 2036-12-11 14:02:00 UTC`)
}
