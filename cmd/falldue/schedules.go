package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for hosts without a database of time zones

	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/words"
	"github.com/falldue/falldue/periodic"
)

func schedulesCommand() *cobra.Command {
	var p place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "List or change the schedules of periodic tasks",
		Long: "List the schedules of periodic tasks: when they tick, in which time zone, their tasks,\n" +
			"and the process that defined them. Status 4 means that a schedule is late because no\n" +
			"running process defines it, or does not tick because its row was edited into something\n" +
			"invalid.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.queue(cmd.Context(), func(q *falldue.Queue) error {
				list, err := periodic.List(cmd.Context(), q)
				if err != nil {
					return err
				}
				if asJSON {
					err = printEach(cmd, list, scheduleObject)
				} else {
					err = printSchedules(screenOf(cmd), list)
				}
				for _, s := range list {
					if err == nil && (s.Late() || s.Err != nil) {
						err = finding(exitAttention)
					}
				}
				return err
			})
		},
	}
	p.flags(cmd)
	jsonFlag(cmd, &asJSON, "print one JSON object per schedule")
	cmd.AddCommand(
		pauseSchedules(),
		changeSchedule("resume", "resumed", "Resume paused schedules at their next tick", periodic.Resume),
		triggerSchedule(),
		removeSchedule(),
	)
	return cmd
}

func printSchedules(s screen, list []periodic.Info) error {
	if len(list) == 0 {
		_, err := io.WriteString(s, "there are no schedules\n")
		return err
	}
	columns := []column{
		{name: "schedule", least: 10}, {name: "spec", least: 10}, {name: "zone", least: 8}, {name: "kind", least: 8}, {name: "next"}, {name: "last"},
		{name: "defined by", least: 10},
	}
	paused := slices.ContainsFunc(list, func(one periodic.Info) bool { return one.Paused })
	if paused {
		columns = append(columns, column{name: "paused by", least: 6}, column{name: "why", least: 12, prose: true})
	}
	rows := make([][]string, len(list))
	for i, one := range list {
		next, last := "in "+words.Span(one.Next.Sub(one.Now)), "never"
		switch late := one.Now.Sub(one.Next); {
		case one.Err != nil:
			next = "cannot be used"
		case one.Paused:
			next = "paused " + words.Span(max(one.Now.Sub(one.PausedAt), 0)) + " ago"
		case one.Late():
			next = "late by " + words.Span(late)
		case late >= 0:
			next = "now"
		}
		if !one.Last.IsZero() {
			last = words.Span(max(one.Now.Sub(one.Last), 0)) + " ago"
		}
		rows[i] = []string{one.Name, one.Spec, one.Zone, one.Kind, next, last, one.DefinedBy}
		if paused {
			rows[i] = append(rows[i], one.PausedBy, one.PausedWhy)
		}
	}
	err := s.table(columns, rows)
	for _, one := range list {
		if one.Err != nil && err == nil {
			_, err = fmt.Fprintf(s, "%s cannot be used: %v\n", one.Name, one.Err)
		}
	}
	return err
}

// scheduleObject returns a schedule as JSON.
func scheduleObject(s periodic.Info) any {
	o := struct {
		Name      string     `json:"name"`
		Spec      string     `json:"spec"`
		Zone      string     `json:"zone"`
		Kind      string     `json:"kind"`
		Queue     string     `json:"queue"`
		NextAt    time.Time  `json:"next_at"`
		LastAt    *time.Time `json:"last_at,omitempty"`
		LastTask  int64      `json:"last_task,omitempty"`
		Paused    bool       `json:"paused"`
		PausedAt  *time.Time `json:"paused_at,omitempty"`
		PausedBy  string     `json:"paused_by,omitempty"`
		PausedWhy string     `json:"paused_why,omitempty"`
		Late      bool       `json:"late"`
		NoOverlap bool       `json:"no_overlap"`
		Missed    string     `json:"missed"`
		DefinedBy string     `json:"defined_by"`
		Error     string     `json:"error,omitempty"`
	}{
		s.Name, s.Spec, s.Zone, s.Kind, s.Queue, s.Next, nil, s.LastTask, s.Paused, set(s.PausedAt), s.PausedBy, s.PausedWhy, s.Late(), s.NoOverlap, s.Missed.String(), s.DefinedBy, "",
	}
	if s.Err != nil {
		o.Error = s.Err.Error()
	}
	if !s.Last.IsZero() {
		o.LastAt = &s.Last
	}
	return o
}

// changeSchedule returns the command that changes schedules by fn.
func changeSchedule(verb, change, short string, fn func(context.Context, *falldue.Queue, string) error) *cobra.Command {
	return onSchedules(verb, short, "name, change", nil, func(ctx context.Context, q *falldue.Queue, name string) (int64, string, error) {
		return 0, change, fn(ctx, q, name)
	})
}

// pauseSchedules returns the command that pauses schedules.
func pauseSchedules() *cobra.Command {
	var n falldue.Note
	cmd := changeSchedule("pause", "paused", "Pause schedules until they are resumed", func(ctx context.Context, q *falldue.Queue, name string) error {
		return periodic.Pause(ctx, q, name, n)
	})
	cmd.Long += "\n\"falldue schedules\" lists who paused them, and why. Pausing a paused schedule changes\nnothing."
	cmd.Example = "  falldue schedules pause nightly --why 'the data are incomplete'"
	whoFlags(cmd, &n)
	return cmd
}

// removeSchedule returns the command that deletes schedules, and asks first.
func removeSchedule() *cobra.Command {
	var yes bool
	ask := func(cmd *cobra.Command, names []string) error {
		return confirm(cmd, "remove schedules: "+strings.Join(names, ", "), yes)
	}
	cmd := onSchedules("remove", "Delete schedules by name; their tasks stay", "name, change", ask, func(ctx context.Context, q *falldue.Queue, name string) (int64, string, error) {
		return 0, "removed", periodic.Remove(ctx, q, name)
	})
	yesFlag(cmd, &yes)
	cmd.Long += "\nUse it for schedules that no program defines any more: a process that still defines one\n" +
		"creates it again. The command asks first, unless --yes is set."
	return cmd
}

func triggerSchedule() *cobra.Command {
	return onSchedules("trigger", "Enqueue the tasks of schedules now; their next ticks stay", "name, change, and id, the ID of the enqueued task", nil, func(ctx context.Context, q *falldue.Queue, name string) (int64, string, error) {
		id, err := periodic.Trigger(ctx, q, name)
		return id, "triggered", err
	})
}

// onSchedules returns a command that calls fn with the name of each schedule, if all of the schedules exist. The command
// calls ask before that, and stops at an error; ask may be nil. fields names the fields of the command's JSON.
func onSchedules(verb, short, fields string, ask func(*cobra.Command, []string) error, fn func(context.Context, *falldue.Queue, string) (task int64, change string, err error)) *cobra.Command {
	var p place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   verb + " NAME...",
		Short: short,
		Long:  strings.TrimSuffix(short, ".") + ". If a schedule does not\nexist, the command changes no schedule.",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.queue(cmd.Context(), func(q *falldue.Queue) error {
				if err := schedulesExist(cmd.Context(), q, args); err != nil {
					return err
				}
				if ask != nil {
					if err := ask(cmd, args); err != nil {
						return err
					}
				}
				for _, name := range args {
					task, change, err := fn(cmd.Context(), q, name)
					if err == nil {
						err = printScheduleChange(cmd, name, change, task, asJSON)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	p.flags(cmd)
	cmd.ValidArgsFunction = p.scheduleNames
	jsonFlag(cmd, &asJSON, "print one JSON object per schedule: "+fields)
	return cmd
}

// schedulesExist returns an error that names the first schedule that does not exist.
func schedulesExist(ctx context.Context, q *falldue.Queue, names []string) error {
	list, err := periodic.List(ctx, q)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(s periodic.Info) bool { return s.Name == name }) {
			return notFound("no schedule %.100q; \"falldue schedules\" lists the schedules", name)
		}
	}
	return nil
}

// scheduleNames completes the names of schedules. There are none if the database cannot be
// asked.
func (p *place) scheduleNames(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	_ = p.queue(ctx, func(q *falldue.Queue) error {
		list, err := periodic.List(ctx, q)
		for _, s := range list {
			names = append(names, s.Name)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

func printScheduleChange(cmd *cobra.Command, name, change string, task int64, asJSON bool) error {
	if asJSON {
		return jsonLines(cmd.OutOrStdout()).Encode(struct {
			Name   string `json:"name"`
			Change string `json:"change"`
			Task   int64  `json:"id,omitempty"`
		}{name, change, task})
	}
	text := change + " " + name
	if task != 0 {
		text += fmt.Sprintf(": enqueued %d", task)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}
