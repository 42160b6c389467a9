package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// What commands say of an argument that a topic of help explains.
const (
	formulaHelp    = `FORMULA: see "falldue help formula".`
	subjectHelp    = `SUBJECT: see "falldue help subject".`
	policyFlagHelp = `Retry policies come from live workers. If none handles a kind, set the kind's policy
with --policy KIND=FORMULA.`
)

// topics returns the pages of help that belong to no single command.
func topics() []*cobra.Command {
	return []*cobra.Command{{
		Use:   "formula",
		Short: "How to write a policy",
		Long: `A FORMULA is a delay, a preset, or a whole policy:

  917m * atan(n^3 / 15)                         a delay after n failures
  geometric(min=5s, max=260s, retries=10)       a preset: "falldue policy list"
  delay 15s + n^4; jitter 30s * n; attempts 26  a whole policy

The other parts of a policy are elapsed and start: "elapsed 1d" is the longest time
from the first attempt to the last one, and "start 1h" the longest wait for the first.
"attempts 0" means no limit.

Numbers without a unit are seconds. The units are ms, s, m, h and d, the operators
+ - * / ^, and the constants pi and e. The functions are min, max, pow, exp, ln, log10,
sqrt, atan, floor, ceil, abs and if(condition, a, b).

Write -- before a FORMULA that begins with a minus sign.`,
	}, {
		Use:   "subject",
		Short: "How to name the tasks of a pause or an override",
		Long: `A SUBJECT selects the tasks of a pause or a policy override:

  mail, or kind:mail         tasks of a kind
  queue:images               tasks in a queue
  key:customer:42            tasks with this task key
  key:tenant=42              tasks with this key part, as in tenant=42/user=7
  policy:KEY                 tasks with a per-task policy: KEY is in "ls --json"
  "queue:default kind:mail"  tasks that match all of these

A task waits while any pause matches it. If several overrides match a task, only the
most specific one applies. From the most to the least specific, subjects are a key, a
per-task policy, a kind and a queue. Another override for the same SUBJECT replaces the
first.`,
	}, {
		Use:   "status",
		Short: "The exit statuses, for scripts",
		Long: fmt.Sprintf(`The exit status is

    0  if the command succeeded and found nothing wrong
    1  if it failed, or you answered no
    2  if the command line has a mistake
    %s
    %s
    %s
    %s
  130  after Ctrl-C; no task is lost`,
			spaced(exitNotFound), spaced(exitAttention), spaced(exitBroken), spaced(exitWaits)),
	}}
}

// spaced returns the text of an exit status as a row of a table.
func spaced(status int) string { return strings.Replace(statusTexts[status], " ", "  ", 1) }

// helpOf returns the help of a command or a topic, no wider than the terminal.
func helpOf(cmd *cobra.Command, width int) string {
	if width == 0 || width > helpWidth {
		width = helpWidth
	}
	var paragraphs []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)), "\n\n") {
		if !indented.MatchString(paragraph) {
			line := strings.Join(strings.Fields(paragraph), " ")
			paragraph = strings.Join(screen{width: width}.wrap(line, 0), "\n")
		}
		paragraphs = append(paragraphs, paragraph)
	}
	if cmd.Runnable() || cmd.HasSubCommands() {
		var usage []string
		for line := range strings.SplitSeq(strings.TrimSpace(cmd.UsageString()), "\n") {
			usage = append(usage, fitted(line, width))
		}
		paragraphs = append(paragraphs, strings.Join(usage, "\n"))
	}
	return strings.Join(paragraphs, "\n\n") + "\n"
}

// fitted breaks a line of cobra's usage. The text of a flag or a command stays in its column.
func fitted(line string, width int) string {
	name, words := "", line
	if m := described.FindStringSubmatch(line); m != nil {
		name, words = m[1], m[2]
	} else if indented.MatchString(line) {
		return line // an example
	}
	return name + strings.Join(screen{width: width}.wrap(words, len(name)), "\n"+strings.Repeat(" ", len(name)))
}

// described matches a flag or a command, and its text.
var described = regexp.MustCompile(`^( +(?:-\w, )?\S+(?: \S+)? {2,})(\S.*)$`)

// indented matches a paragraph whose lines stay as they are.
var indented = regexp.MustCompile(`(?m)^[ \t]`)

// overview returns the help of the command itself: its commands, by group, and the topics.
func overview(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`Inspect and change the background tasks of an application.

  export FALLDUE_DSN=postgres://app:secret@db.example/shop
  falldue doctor

`)
	for _, group := range cmd.Groups() {
		b.WriteString(group.Title + "\n")
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group.ID && sub.Name() != "help" {
				fmt.Fprintf(&b, "  %-10s  %s\n", sub.Name(), sub.Short)
			}
		}
	}
	var names []string
	for _, topic := range topics() {
		names = append(names, "falldue help "+topic.Name())
	}
	fmt.Fprintf(&b, "Topics: %s\n", strings.Join(names, ", "))
	b.WriteString("Each command has --help. Commands that print data have --json (JSON lines).\n" +
		"Commands that affect many tasks ask first, unless --yes is set.\n" +
		"A kind is a type of task. A live worker has sent a heartbeat within a minute.\n")
	return b.String()
}
