package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/ops"
)

func policySlowCommand() *cobra.Command {
	var f setter
	cmd := &cobra.Command{
		Use:   "slow SUBJECT 4x",
		Short: "Make delays so many times as long",
		Long: "Make delays so many times as long: the same as policy set SUBJECT '4 * original'. Jitters and\n" +
			"limits stay.\n\n" + subjectHelp + "\n\n" + policyFlagHelp,
		Example: "  falldue policy slow invoice.send 4x --until 2h",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, isFactor := strings.CutSuffix(args[1], "x")
			factor, err := strconv.ParseFloat(number, 64)
			if err != nil || !isFactor {
				return mistake(fmt.Errorf("%q is not a factor such as 4x", args[1]))
			}
			override, err := ops.Slow(factor)
			if err != nil {
				return mistake(err)
			}
			return f.set(cmd, args[0], func(*ops.Profile, ops.Override) ([]ops.OverrideStep, error) {
				return []ops.OverrideStep{{Formula: override}}, nil
			})
		},
	}
	f.flags(cmd, true)
	return cmd
}

func policyHoldCommand() *cobra.Command {
	var f setter
	cmd := &cobra.Command{
		Use:   "hold SUBJECT until TIME",
		Short: "Hold back retries until a time",
		Long: "Hold back retries until a time: tasks that have failed do not run again before 09:00\n" +
			"local time, or in the next 2h or 2d. New tasks run, and show whether the trouble is over.\n" +
			"No task dies because it waits. What has fallen due by the end is due then, all at once,\n" +
			"and the command says how many that are of those that wait now: \"policy ramp\" spreads them.\n\n" + subjectHelp + "\n\n" + policyFlagHelp,
		Example: "  falldue policy hold charge until 09:00 --why 'the bank is closed'",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "until" {
				return mistake(fmt.Errorf("%q in place of until, as in policy hold charge until 09:00", args[1]))
			}
			f.until = args[2]
			return f.set(cmd, args[0], func(*ops.Profile, ops.Override) ([]ops.OverrideStep, error) {
				return []ops.OverrideStep{{Formula: ops.Hold()}}, nil
			})
		},
	}
	f.flags(cmd, false)
	return cmd
}

func policyRampCommand() *cobra.Command {
	var f setter
	cmd := &cobra.Command{
		Use:   "ramp SUBJECT over TIME",
		Short: "Let what is due run little by little, and go back to the code's policy",
		Long: "Let the tasks run little by little that would be due now under the code's policy, the\n" +
			"longest overdue first, and equally many in each minute. It ends a hold or a\n" +
			"slowdown, or eases an outage after which all is due, and ends by itself.\n\n" + subjectHelp + "\n\n" + policyFlagHelp,
		Example: "  falldue policy ramp charge over 30m",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			over, err := ops.ParseDuration(args[2])
			if args[1] != "over" || err != nil {
				return mistake(fmt.Errorf("%q in place of over and a time, as in policy ramp charge over 30m", strings.Join(args[1:], " ")))
			}
			f.until = args[2]
			return f.set(cmd, args[0], func(p *ops.Profile, o ops.Override) ([]ops.OverrideStep, error) {
				return p.Release(o.Subject, o.IncludeOwn, over)
			})
		},
	}
	f.flags(cmd, false)
	return cmd
}
