package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue/internal/testdb"
)

// walk calls fn with each command that does something.
func walk(cmd *cobra.Command, fn func(*cobra.Command)) {
	if cmd.IsAdditionalHelpTopicCommand() {
		return
	}
	fn(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, fn)
	}
}

// TestEveryCommandHasJSON: but for those that are named here with the reason.
func TestEveryCommandHasJSON(t *testing.T) {
	t.Parallel()
	without := map[string]string{
		"falldue":              "prints help",
		"falldue policy":       "has only subcommands",
		"falldue migrate":      "has only subcommands",
		"falldue migrate dump": "prints files of SQL",
		"falldue dash":         "serves pages",

		"falldue completion":            "has only subcommands",
		"falldue completion bash":       "prints a script",
		"falldue completion zsh":        "prints a script",
		"falldue completion fish":       "prints a script",
		"falldue completion powershell": "prints a script",
	}
	walk(root(), func(cmd *cobra.Command) {
		has, path := cmd.Flags().Lookup("json") != nil, cmd.CommandPath()
		if _, excepted := without[path]; has == excepted {
			t.Errorf("%s: --json %v, %q", path, has, without[path])
		}
		delete(without, path)
	})
	if len(without) > 0 {
		t.Errorf("there are no commands %v", without)
	}
}

// TestHelpNamesTheStatuses: of every command, and what is said of a command that does not exist
// is a mistake of the table.
func TestHelpNamesTheStatuses(t *testing.T) {
	t.Parallel()
	left := maps.Clone(statuses)
	walk(root(), func(cmd *cobra.Command) {
		if !cmd.HasParent() {
			return
		}
		_, says, _ := strings.Cut(strings.Join(strings.Fields(cmd.Long), " "), "Exit statuses: 0 for success, 1 if the command failed")
		if !strings.HasSuffix(says, ", 130 if interrupted.") {
			t.Errorf("%s: the help ends with %q", cmd.CommandPath(), says)
		}
		for _, text := range statuses[cmd.CommandPath()] {
			if !strings.Contains(says, text) {
				t.Errorf("%s: the help ends with %q, which lacks %q", cmd.CommandPath(), says, text)
			}
		}
		delete(left, cmd.CommandPath())
	})
	if len(left) > 0 {
		t.Errorf("there are no commands %v", left)
	}
	for path, want := range map[string]string{"falldue doctor": "5 if something does not work", "falldue cancel": "you answered no"} {
		cmd, _, err := root().Find(strings.Fields(path)[1:])
		if err != nil || !strings.Contains(strings.ReplaceAll(cmd.Long, "\n", " "), want) {
			t.Errorf("%s (error %v): no %q in\n%s", path, err, want, cmd.Long)
		}
	}
}

// TestHelpIsShort: the help of falldue itself fits a screen, and names all commands and topics.
func TestHelpIsShort(t *testing.T) {
	t.Parallel()
	help := mustRun(t)
	if again := mustRun(t, "--help"); again != help {
		t.Errorf("falldue prints\n%sand falldue --help\n%s", help, again)
	}
	if n := strings.Count(help, "\n"); n > 40 {
		t.Errorf("the help has %d lines", n)
	}
	want := []string{"--yes", "--json", "--help", "completion"}
	for _, cmd := range root().Commands() {
		want = append(want, cmd.Name())
	}
	for _, name := range want {
		if !slices.Contains(strings.FieldsFunc(help, func(r rune) bool { return strings.ContainsRune(" ,.;:\n", r) }), name) {
			t.Errorf("the help lacks %q", name)
		}
	}
	requireWidth(t, "falldue --help", help, helpWidth)
	policy := mustRun(t, "policy", "--help")
	for _, name := range []string{"set", "show", "clear", "slow", "hold", "ramp", "diff", "preview", "herd"} {
		if !strings.Contains(policy, "\n  "+name+" ") {
			t.Errorf("the help of policy lacks %s", name)
		}
	}
}

// TestTopicsAreExplainedOnce: help explains FORMULA, SUBJECT and the exit statuses in topics, and
// commands that take a FORMULA or a SUBJECT refer to these.
func TestTopicsAreExplainedOnce(t *testing.T) {
	t.Parallel()
	explained := map[string]string{"formula": "917m * atan", "subject": "queue:images", "status": "130  after Ctrl-C"}
	for topic, phrase := range explained {
		text := mustRun(t, "help", topic)
		if !strings.Contains(text, phrase) {
			t.Errorf("the topic %s lacks %q:\n%s", topic, phrase, text)
		}
		requireWidth(t, topic, text, helpWidth)
	}
	for _, status := range statusTexts {
		if help := strings.Join(strings.Fields(mustRun(t, "help", "status")), " "); !strings.Contains(help, status) {
			t.Errorf("the topic status lacks %q", status)
		}
	}
	walk(root(), func(cmd *cobra.Command) {
		for topic, phrase := range explained {
			if strings.Contains(cmd.Long, phrase) {
				t.Errorf("%s explains %s", cmd.CommandPath(), topic)
			}
		}
		for argument, topic := range map[string]string{"FORMULA": "formula", "SUBJECT": "subject"} {
			refers := strings.Contains(cmd.Long, "falldue help "+topic)
			if takes := strings.Contains(cmd.Use, argument); takes && !refers {
				t.Errorf("%s takes a %s and does not refer to the topic", cmd.CommandPath(), argument)
			}
		}
	})
}

// TestHelpFitsTheTerminal: the help of each command is no wider than the terminal, and 80 columns at most.
// Its examples stay as they are.
func TestHelpFitsTheTerminal(t *testing.T) {
	t.Parallel()
	walk(root(), func(cmd *cobra.Command) {
		if !cmd.HasParent() || cmd.Parent().Name() == "completion" {
			return
		}
		for width, want := range map[int]int{0: 80, 72: 72, 200: 80} {
			help := helpOf(cmd, width)
			requireWidth(t, fmt.Sprintf("%s, %d columns", cmd.CommandPath(), width), strings.Replace(help, cmd.Example, "", 1), want)
			for _, words := range []string{cmd.Long, cmd.LocalFlags().FlagUsages()} {
				if have := strings.Join(strings.Fields(help), " "); !strings.Contains(have, strings.Join(strings.Fields(words), " ")) {
					t.Errorf("%s, %d columns: the help\n%s\nlacks words of\n%s", cmd.CommandPath(), width, help, words)
				}
			}
		}
	})
}

func requireWidth(t *testing.T, name, help string, width int) {
	t.Helper()
	for line := range strings.Lines(help) {
		if n := text.StringWidth(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%s: a line of %d columns: %s", name, n, line)
		}
	}
}

// TestPreviewsFitTheTerminal: as many policies are side by side as fit, and nothing but the
// names of policies is cut.
func TestPreviewsFitTheTerminal(t *testing.T) {
	t.Parallel()
	previews, err := previewsOf([]string{"zizq", "delay 15s + n^4; jitter 30s * n; attempts 26", "10m"}, 25)
	if err != nil {
		t.Fatal(err)
	}
	for width, tables := range map[int]int{0: 1, 80: 2, 120: 1, 20: 3} {
		var out bytes.Buffer
		if err := printPreviews(screen{Writer: &out, width: width}, previews, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "failures"); got != tables {
			t.Errorf("width %d: %d tables, want %d", width, got, tables)
		}
		head, _, _ := strings.Cut(out.String(), "\nzizq\n")
		for line := range strings.Lines(head) {
			if got := text.StringWidth(strings.TrimSuffix(line, "\n")); width >= 80 && got > width {
				t.Errorf("width %d: a line has %d columns: %s", width, got, line)
			}
		}
		if width != 20 && strings.Count(head, "…") != min(width, 1)*strings.Count(head, "delay") {
			t.Errorf("width %d: a wait is cut in\n%s", width, head)
		}
	}
}

// TestCompletionsOfArguments: presets, schedules, engines and formats.
func TestCompletionsOfArguments(t *testing.T) {
	t.Parallel()
	s := openShop(t, testdb.SQLite)
	s.fill()
	for _, c := range []struct {
		want string
		args []string
	}{
		{"zizq\n", []string{"policy", "preview", ""}}, {"zizq\n", []string{"policy", "herd", "10m", ""}}, {"zizq\n", []string{"policy", "eval", ""}},
		{"zizq\n", []string{"policy", "sql", ""}}, {"zizq\n", []string{"policy", "where", ""}}, {"zizq\n", []string{"simulate", "10m", ""}},
		{"zizq\n", []string{"policy", "set", "charge", "", "--dsn", s.dsn}}, {"zizq\n", []string{"policy", "diff", "charge", "", "--dsn", s.dsn}},
		{"charge\n", []string{"policy", "set", "--dsn", s.dsn, ""}},
		{"nightly\n", []string{"schedules", "pause", "--dsn", s.dsn, ""}},
		{"postgres\n", []string{"policy", "sql", "--engine", ""}}, {"mariadb\n", []string{"migrate", "dump", "--engine", ""}},
		{"golang-migrate\n", []string{"migrate", "dump", "--format", ""}},
	} {
		if args := c.args; slices.Contains(args, "") && args[len(args)-1] != "" { // the last one is completed
			at := slices.Index(args, "")
			c.args = append(slices.Concat(args[:at], args[at+1:]), "")
		}
		out, err := runQuietly(t, append([]string{"__complete"}, c.args...)...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%v completes to %q, error %v, want %q", c.args, out, err, c.want)
		}
	}
}

// TestEnqueueSetsTheTimesOfATask: show has its timeout, and when it expires.
func TestEnqueueSetsTheTimesOfATask(t *testing.T) {
	t.Parallel()
	s := openOn(t, testdb.DSN(t, "sqlite"))
	s.run("enqueue", "offer", "--expire-at", "2999-12-11T14:02:00Z", "--timeout", "90s")
	contains(t, s.run("show", "1"), `(?m)^timeout    1m30s$`)
	contains(t, s.run("show", "1"), `(?m)^expires    2999-12-11 14:02:00.*, unless it has started by then$`)
	contains(t, s.run("show", "1", "--json"), `"expire_at":"2999-12-11T14:02:00Z"`)
	_, err := s.fails(exitUsage, "enqueue", "offer", "--expire-at", "tomorrow")
	contains(t, err.Error(), `--expire-at "tomorrow": must be a time such as`)
}

// TestJSONHasWhatTablesHave: of migrations, SQL, ends of policies, workers and the screen.
func TestJSONHasWhatTablesHave(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		s := shop{t: t, dsn: testdb.DSN(t, engine)}
		contains(t, s.run("migrate", "up", "--json"), `^{"change":"up","migrations":\d+}\n$`)
		contains(t, s.run("migrate", "down", "--yes", "--json"), `^{"change":"down","migrations":\d+}\n$`)
		s = openOn(t, s.dsn)
		s.run("enqueue", "thumbnail", "--queue", "images", "--delay", "1h")
		s.serve("charge", "report")
		out, _ := s.fails(exitAttention, "workers", "--json")
		contains(t, out, `(?m)^{"id":.*}$`, `(?m)^{"unhandled_kind":"thumbnail","queue":"images"}$`)
		out, _ = s.fails(exitAttention, "workers", "--kinds", "--json")
		contains(t, out, `(?m)^{"kind":"charge","policies":\[{"policy":"delay [^"]+","workers":\["[^"]+"\],"releases":\["[^"]*"\]}\]}$`)
		contains(t, s.run("top", "--count", "1", "--json"), `"queues":\[{"queue":"images","kinds":\["thumbnail"\],"lanes":1,"first_due":"[^"]+"}\],"each_worker":\[{"id":"[^"]+",.*"queues":\["default"\]}\],"failed_kinds":\[\]}\n$`)
	})
	if got := mustRun(t, "policy", "sql", "5m", "--engine", "sqlite", "--json"); got != `{"sql":"case when \"attempts\" >= 1 then 300.0 else 0.0 end"}`+"\n" {
		t.Errorf("policy sql --json prints %s", got)
	}
	contains(t, mustRun(t, "policy", "where", "5m", "--engine", "sqlite", "--json"), `^{"sql":"julianday\(\\"updated_at\\"\) <= [^\n]*"}\n$`)
}
