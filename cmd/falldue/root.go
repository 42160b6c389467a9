package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

//nolint:gosec // an example, which is no password
const tour = `falldue runs background tasks on the database of an application. This command is for
the person who looks after them.

Where are the tables? Say so once, and leave the password out of the list of processes:

  export FALLDUE_DSN=postgres://app:secret@db.example/shop
  falldue migrate status

What is there, and what has waited for too long?

  falldue queues                       what waits in each queue, in milliseconds
  falldue counts                       how many tasks there are, exactly
  falldue overdue                      what nobody has taken for a minute
  falldue workers                      who works on what, and with which policies
  falldue doctor                       what else is wrong, and what to do about it

What happens now?

  falldue top                          queues and workers, on a screen that refreshes
  falldue tail --kind charge           a line for each task that starts, fails or ends
  falldue dash                         a web page with all of this, on 127.0.0.1:8080

One task, its past and its future:

  falldue ls --state dead              the dead tasks, with their last errors
  falldue show 4711                    its attempts so far, and those to come
  falldue why 4711                     why it runs, waits or does not run
  falldue retry 4711                   let it run again now
  falldue cancel 4711                  let it not run
  falldue enqueue mail '{"to": "x"}'   store another one

Many tasks at once; --dry-run counts them:

  falldue ls --phase backing-off       what waits for a retry
  falldue retry --kind charge --rate 50
  falldue delete --state dead --older-than 720h

Periodic tasks:

  falldue schedules                    when they come next; pause, resume, trigger NAME

Policies, without a database:

  falldue policy preview 'zizq' '10m'  two policies side by side
  falldue policy herd '10m'            what retries do after an outage
  falldue simulate zizq 10s            how workers recover from one

What waits, and what another policy would do to it:

  falldue forecast --rate 50           when it falls due, and when it is gone
  falldue policy diff mail '5m' --ramp 600

Policies that change under the workers that run, within two seconds:

  falldue policy set mail 'max(original, 1h)' --until 09:00 --why 'the provider is slow'
  falldue policy show                  which are set; history has who, when and why
  falldue policy clear mail            back to that of the code

An incident has forms of it, and a pause:

  falldue policy slow mail 4x --until 2h
  falldue policy hold mail until 09:00
  falldue policy ramp mail over 30m
  falldue pause mail --until 2h        no task of a kind, a queue or a key starts
  falldue resume mail

How well, and how fast, does this server do it?

  falldue explain                      the statements of workers, with its plans of them
  falldue bench                        stores and runs tasks in tables of its own

What wakes, kills or deletes much asks first, or wants --yes. Ctrl-C loses nothing.
Every command has --help, and those that print data have --json: one object a line.
"falldue completion bash", or zsh, fish or powershell, prints what completes commands.

The exit status is 0 if nothing is wrong, 1 if the command failed or was answered no, 2
for a mistake in the command line, 3 for what is not there, 4 if somebody should look at
the answer, 5 if something does not work, 6 if the task cannot run now, and 130 after
Ctrl-C.`

func init() { cobra.EnableCommandSorting = false } // help has them in the order of the tour

// root returns the command with all its subcommands.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "falldue",
		Short:         "Look after background tasks",
		Long:          tour,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"look", "Look at tasks:", []*cobra.Command{queuesCommand(), countsCommand(), overdueCommand(), workersCommand(), doctorCommand(), lsCommand(), showCommand(), whyCommand(), tailCommand(), topCommand(), dashCommand()}},
		{"change", "Change tasks:", []*cobra.Command{enqueueCommand(), retryCommand(), cancelCommand(), deleteCommand(), pauseCommand(), resumeCommand(), schedulesCommand()}},
		{"plan", "Look before you act:", []*cobra.Command{policyCommand(), simulateCommand(), forecastCommand(), explainCommand()}},
		{"set up", "Set up:", []*cobra.Command{migrateCommand(), benchCommand()}},
	} {
		cmd.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, sub := range group.commands {
			sub.GroupID = group.id
			cmd.AddCommand(sub)
		}
	}
	cmd.SetHelpCommandGroupID("set up")
	cmd.SetCompletionCommandGroupID("set up")
	prepare(cmd)
	return cmd
}

// version returns the version that the command was built from, by its commit and date if
// it has no tag.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
