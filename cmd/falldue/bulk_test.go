package main

import (
	"context"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// TestCommandsChangeManyTasks cancels, retries and deletes tasks that flags select.
func TestCommandsChangeManyTasks(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := openShop(t, engine)
		q, err := falldue.New(s.db, falldue.Config{})
		if err != nil {
			t.Fatal(err)
		}
		mail := falldue.NewKind[int]("mail", falldue.KindConfig{})
		receipts, err := mail.EnqueueMany(t.Context(), q, make([]int, 600))
		if err != nil {
			t.Fatal(err)
		}
		s.run("enqueue", "charge", `{"order": 42}`)

		if got := s.run("cancel", "--kind", "mail", "--dry-run"); got != "would have cancelled 600 tasks\n" {
			t.Errorf("a dry run printed %q", got)
		}
		if _, err := s.fails(exitUsage, "cancel", "--kind", "mail"); !strings.Contains(err.Error(), "cancel 600 tasks; confirm with --yes") {
			t.Errorf("cancel without --yes: %v", err)
		}
		contains(t, s.run("cancel", "--kind", "mail", "--yes", "--json"), `^{"dry_run":false,"changed":600,"left":0,"failed":0,"failures":\[\],"after":\d+}\n$`)
		contains(t, s.run("retry", "--state", "cancelled", "--rate", "100", "--limit", "200", "--yes", "--json"), `"changed":200,.*"due_from":"`)
		if got := s.run("retry", "--state", "cancelled", "--over", "1h", "--from", "2036-12-11T14:02:00Z", "--yes"); got != "retried 400 tasks\n" {
			t.Errorf("retry printed %q", got)
		}
		page, err := ops.New(q).Tasks(t.Context(), ops.Filter{Kind: "mail", Phase: falldue.PhaseScheduled}, ops.ListOptions{After: receipts[199].ID, Limit: 1000})
		if err != nil || len(page.Tasks) != 400 {
			t.Fatalf("%d tasks are scheduled, error %v", len(page.Tasks), err)
		}
		first := time.Date(2036, 12, 11, 14, 2, 0, 0, time.UTC)
		for _, task := range page.Tasks {
			if after := task.UpdatedAt.Sub(first); after < -time.Second || after > time.Hour+time.Second {
				t.Errorf("task %d is due %v after the first", task.ID, after)
			}
		}
		if got := s.run("delete", "--kind", "mail", "--yes"); got != "deleted 600 tasks\n" {
			t.Errorf("delete printed %q", got)
		}
		if got := s.run("delete", "--kind", "mail", "--yes"); got != "deleted 0 tasks\n" {
			t.Errorf("the second delete printed %q", got)
		}

		found, err := ops.New(q).Tasks(t.Context(), ops.Filter{Kind: "charge"})
		if err != nil || len(found.Tasks) != 1 {
			t.Fatalf("found %+v, error %v", found, err)
		}
		one := strconv.FormatInt(found.Tasks[0].ID, 10)
		s.run("cancel", one, "--yes")
		if got := s.run("retry", one, "--payload", `{"order": 43}`); got != "retried "+one+"\n" {
			t.Errorf("retry with a payload printed %q", got)
		}
		contains(t, s.run("show", one), `(?m)^payload +{"order": ?43}$`)
		if got := s.run("delete", one, "--yes", "--json"); got != `{"id":`+one+`,"change":"deleted"}`+"\n" {
			t.Errorf("delete printed %q", got)
		}
	})
}

// TestAnInterruptedChangeSaysHowToGoOn: the command goes on after the tasks that were changed,
// with the same flags, and up to the limit in all.
func TestAnInterruptedChangeSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	s := openShop(t, testdb.SQLite)
	q, err := falldue.New(s.db, falldue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := falldue.NewKind[int]("mail", falldue.KindConfig{}).EnqueueMany(t.Context(), q, make([]int, 4000)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args      []string
		printed   string
		nextCount int
	}{
		{[]string{"--kind", "mail", "--match", "0", "--limit", "1200"}, "--kind='mail' --limit=700 --match='0' --after=500", 700},
		{[]string{"--phase", "due", "--policy", "mail=1h", "--policy", "delay 5m; jitter 1m", "--policy", "a=if(n > 1, 5m, 1m)", "--after", "1200"},
			"--phase='due' --policy='mail=1h' --policy='delay 5m; jitter 1m' --policy='a=if(n > 1, 5m, 1m)' --after=1700", 2300},
	} {
		var errs strings.Builder
		ctx, stop := context.WithCancel(t.Context())
		t.Cleanup(stop)
		b := &bulkCommand{verb: "cancel", done: "cancelled", yes: true}
		b.many = func(op *ops.Ops, ctx context.Context, f ops.Filter, o ...ops.BulkOptions) (ops.BulkReport, error) {
			report := o[0].Report
			o[0].Report = func(r ops.BulkReport) { report(r); stop() }
			return op.CancelMany(ctx, f, o[0])
		}
		root := &cobra.Command{Use: "falldue", SilenceUsage: true, SilenceErrors: true}
		root.AddCommand(b.add(&cobra.Command{Use: "cancel"}))
		root.SetArgs(append([]string{"cancel", "--yes", "--dsn", s.dsn}, c.args...))
		root.SetErr(&errs)
		root.SetOut(io.Discard)
		if err := root.ExecuteContext(ctx); err == nil {
			t.Error("an interrupted command succeeded")
		}
		want := "cancelled 500 tasks; to continue:\n  falldue cancel " + c.printed + "\n"
		if errs.String() != want {
			t.Errorf("it printed %q, want %q", errs.String(), want)
		}
		_, line, _ := strings.Cut(errs.String(), "  falldue ")
		if got, want := s.run(append(splitArgs(line), "--yes")...), "cancelled "+tasksText(int64(c.nextCount))+"\n"; got != want {
			t.Errorf("continuing, it printed %q, want %q", got, want)
		}
	}
}

// TestTasksThatCannotBeDecodedAreReported: as text and as JSON.
func TestTasksThatCannotBeDecodedAreReported(t *testing.T) {
	t.Parallel()
	report := ops.BulkReport{Changed: 3, Undecodable: 1200, After: 7}
	for asJSON, want := range map[bool]string{
		false: "cancelled 3 tasks\nskipped 1,200 tasks with payloads that could not be decoded\n",
		true:  `{"dry_run":false,"changed":3,"left":0,"failed":0,"failures":[],"undecodable":1200,"after":7}` + "\n",
	} {
		var out strings.Builder
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		if err := (&bulkCommand{done: "cancelled", asJSON: asJSON}).print(cmd, report); err != nil || out.String() != want {
			t.Errorf("it printed %q, error %v, want %q", out.String(), err, want)
		}
	}
}

// TestTheBarIsAsLongAsWhatIsDone: it has no length while the total is not known.
func TestTheBarIsAsLongAsWhatIsDone(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"retried 1,500": bar("retried", 1500, 0),
		"retried [" + strings.Repeat("#", 15) + strings.Repeat(".", 15) + "] 500 of 1,000": bar("retried", 500, 1000),
		"retried [" + strings.Repeat("#", 30) + "] 1,001 of 1,000":                         bar("retried", 1001, 1000),
	} {
		if got != want {
			t.Errorf("the bar is %q, want %q", got, want)
		}
	}
}
