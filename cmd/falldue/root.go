package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func init() { cobra.EnableCommandSorting = false } // help has the order of the groups

// root returns the command with all its subcommands.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "falldue",
		Short:         "Inspect and change background tasks",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"look", "Look at tasks:", []*cobra.Command{queuesCommand(), countsCommand(), overdueCommand(), workersCommand(), doctorCommand(), errorsCommand(), lsCommand(), showCommand(), whyCommand(), tailCommand(), topCommand(), dashCommand()}},
		{"change", "Change tasks:", []*cobra.Command{enqueueCommand(), changeCommand(), retryCommand(), cancelCommand(), deleteCommand(), pauseCommand(), resumeCommand(), schedulesCommand()}},
		{"plan", "Plan and change policies:", []*cobra.Command{policyCommand(), simulateCommand(), forecastCommand(), explainCommand()}},
		{"set up", "Set up:", []*cobra.Command{migrateCommand(), benchCommand()}},
	} {
		cmd.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, sub := range group.commands {
			sub.GroupID = group.id
			cmd.AddCommand(sub)
		}
	}
	cmd.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Show the help of a command, or a topic",
		RunE: func(_ *cobra.Command, args []string) error {
			of, rest, err := cmd.Find(args)
			if err == nil && len(rest) > 0 {
				err = noOtherCommand(of, rest)
			}
			if err != nil {
				return err
			}
			return of.Help()
		},
	})
	cmd.SetHelpCommandGroupID("set up")
	cmd.SetCompletionCommandGroupID("set up")
	cmd.InitDefaultCompletionCmd() // so that it is prepared, too: it takes no unknown shell
	cmd.SetFlagErrorFunc(flagError)
	prepare(cmd)
	cmd.AddCommand(topics()...)
	cmd.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if !c.HasParent() {
			fmt.Fprint(c.OutOrStdout(), overview(c))
			return
		}
		fmt.Fprint(c.OutOrStdout(), helpOf(c, screenOf(c).width))
	})
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
