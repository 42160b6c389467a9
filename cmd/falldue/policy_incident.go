package main

import (
	"errors"
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
		Short: "Multiply delays by a factor",
		Long: "Multiply delays by a factor: \"policy slow SUBJECT 4x\" is short for \"policy set\n" +
			"SUBJECT '4 * original'\". Jitter and limits stay.\n\n" + subjectHelp + "\n" + policyFlagHelp,
		Example: "  falldue policy slow invoice.send 4x --until 2h",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, isFactor := strings.CutSuffix(args[1], "x")
			factor, err := strconv.ParseFloat(number, 64)
			override, slowErr := ops.Slow(factor)
			if err != nil || !isFactor || slowErr != nil {
				return mistake(fmt.Errorf("%q: %s", args[1], factorRule))
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
		Short: "Hold back retries until a given time",
		Long: "Hold back retries until TIME: 09:00 local time, 2h or 2d from now, or a time such as\n" +
			"2026-12-11T14:02:00Z. New tasks still run once, and show whether the outage has ended.\n" +
			"The hold never makes a task dead. When it ends, all held tasks are due: the command\n" +
			"counts them, and \"falldue policy ramp\" spreads them.\n\n" + subjectHelp + "\n" + policyFlagHelp,
		Example: "  falldue policy hold charge until 09:00 --why 'the bank is closed'",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "until" {
				return mistake(fmt.Errorf("%q: must be \"until\" and a time, such as: policy hold charge until 09:00", strings.Join(args[1:], " ")))
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
		Short: "Release due tasks gradually, then restore the policy",
		Long: "Release waiting tasks gradually over TIME: those that are due under the program's\n" +
			"policy, or fall due within TIME. The longest overdue come first, and each step has the\n" +
			"same number of tasks. TIME is 5s to 7d. The ramp replaces a \"policy hold\" or\n" +
			"\"policy slow\", and ends automatically.\n\n" + subjectHelp + "\n" + policyFlagHelp,
		Example: "  falldue policy ramp charge over 30m",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "over" {
				return mistake(fmt.Errorf("%q: must be \"over\" and a duration, such as: policy ramp charge over 30m", strings.Join(args[1:], " ")))
			}
			over, err := ops.ParseDuration(args[2])
			if err != nil || over < ops.MinRelease || over > ops.MaxRelease {
				return mistake(fmt.Errorf("over %q: %s", args[2], rampRule))
			}
			f.until = args[2]
			return f.set(cmd, args[0], func(p *ops.Profile, o ops.Override) ([]ops.OverrideStep, error) {
				steps, err := p.Release(o.Subject, o.IncludeOwn, over)
				if err != nil {
					return nil, unknownPolicy(err)
				}
				return steps, nil
			})
		},
	}
	f.flags(cmd, false)
	return cmd
}

// unknownPolicy returns the error of a computation. It names the flag for a policy that is unknown.
func unknownPolicy(err error) error {
	var unknown ops.UnknownPolicyError
	if !errors.As(err, &unknown) {
		return err
	}
	return fmt.Errorf("the policy of kind %s is unknown, and the kind has waiting tasks: set it with --policy, or start a worker that handles the kind", unknown.Kind)
}
