package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/ops"
)

// errEnough ends a watch that has seen what it should.
var errEnough = errors.New("enough")

func tailCommand() *cobra.Command {
	var p place
	var queue, kind string
	var every time.Duration
	var most int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow tasks as they start, fail and end",
		Long: "Print a line when a task is new, starts, fails, is snoozed, done, dead or cancelled,\n" +
			"until you interrupt the command. It polls the tables, and prints the differences: a\n" +
			"task that starts and fails between two polls is shown as failed, and a task that is\n" +
			"enqueued and done between two polls is not shown. Deleted tasks disappear without a\n" +
			"line. On TiDB new tasks are shown when they start. A poll reads up to 500 lanes\n" +
			"(groups of tasks with the same delay).",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < leastInterval {
				return mistake(fmt.Errorf("--interval %v: must be %v or more", every, leastInterval))
			}
			return p.ops(cmd.Context(), policyFlag{}, func(o *ops.Ops, _ *falldue.Queue) error {
				s, seen := screenOf(cmd), 0
				lines := jsonLines(cmd.OutOrStdout())
				err := o.Watch(cmd.Context(), every, func(e ops.Event) error {
					if queue != "" && e.Queue != queue || kind != "" && e.Kind != kind {
						return nil
					}
					var err error
					if asJSON {
						err = lines.Encode(eventObject(e))
					} else {
						_, err = fmt.Fprintln(s, s.eventLine(e))
					}
					if seen++; err == nil && most > 0 && seen == most {
						return errEnough
					}
					return err
				})
				if errors.Is(err, errEnough) {
					return nil
				}
				return cmp.Or(err, cmd.Context().Err())
			})
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&queue, "queue", "", "only tasks of this queue")
	cmd.Flags().StringVar(&kind, "kind", "", "only tasks of this kind")
	spanVar(cmd.Flags(), &every, "interval", time.Second, "time between two polls")
	numberVar(cmd.Flags(), &most, "count", 0, 0, math.MaxInt32, "number of lines to print (default no limit)")
	p.completeNames(cmd, "queue", queueName)
	p.completeNames(cmd, "kind", queueKinds)
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

// leastInterval is the shortest time between two polls of a command that continues.
const leastInterval = 100 * time.Millisecond

func eventObject(e ops.Event) any {
	return struct {
		At       time.Time `json:"at"`
		What     ops.What  `json:"what"`
		ID       int64     `json:"id"`
		Queue    string    `json:"queue"`
		Kind     string    `json:"kind"`
		Key      string    `json:"key,omitempty"`
		Attempts int       `json:"attempts"`
		Worker   string    `json:"worker,omitempty"`
		Error    string    `json:"error,omitempty"`
	}{e.At, e.What, e.ID, e.Queue, e.Kind, e.Key, e.Attempts, e.Worker, e.Error}
}

var eventColours = map[ops.What]text.Color{
	ops.Failed: text.FgYellow, ops.Dead: text.FgRed, ops.Done: text.FgGreen, ops.Gone: text.FgGreen, ops.Cancelled: text.FgMagenta,
}

// eventLine returns an event as a line, no wider than the terminal.
func (s screen) eventLine(e ops.Event) string {
	what := fmt.Sprintf("%-9s", e.What)
	about := ""
	switch e.What {
	case ops.Started:
		about = fmt.Sprintf("attempt %d on %s", e.Attempts, e.Worker)
	case ops.Failed, ops.Dead:
		about = fmt.Sprintf("attempt %d: %s", e.Attempts, e.Error)
	case ops.Gone:
		about = "done, or deleted"
	}
	line := fmt.Sprintf("%s  %s  %d  %s  %s", e.At.Format(time.TimeOnly), what, e.ID, e.Queue, e.Kind)
	for _, more := range []string{e.Key, about} {
		if more != "" {
			line += "  " + more
		}
	}
	line = plain(line)
	if s.width > 0 {
		line = shorten(line, s.width)
	}
	if colour, ok := eventColours[e.What]; ok && s.colour {
		const before = len(time.TimeOnly) + gap
		line = line[:before] + colour.Sprint(what) + line[min(before+len(what), len(line)):]
	}
	return line
}
