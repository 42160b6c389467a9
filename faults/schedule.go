package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/periodic"
)

// secondly returns n schedules that tick each second. The key of a job names the schedule and
// the tick.
func secondly(kind falldue.Kind[Job], n int) (list []periodic.Schedule) {
	for i := range n {
		name := fmt.Sprint("schedule", i+1)
		list = append(list, periodic.Schedule{
			Name: name, Spec: "@every 1s", Missed: periodic.All(1000),
			TaskAt: func(tick time.Time) falldue.EnqueueParams {
				return kind.Params(Job{Key: tickKey(name, tick)})
			},
		})
	}
	return list
}

func tickKey(schedule string, tick time.Time) string {
	return fmt.Sprint(schedule, "@", tick.UnixMicro())
}

// tickOf returns the schedule and the tick of a key that tickKey made, and false for another
// one.
func tickOf(key string) (schedule string, tick time.Time, ok bool) {
	schedule, at, ok := strings.Cut(key, "@")
	micros, err := strconv.ParseInt(at, 10, 64)
	return schedule, time.UnixMicro(micros), ok && err == nil
}

// ticksWithoutTask returns the keys of ticks between those that have a task.
func ticksWithoutTask(table []Row) (missing []string) {
	ticks := map[string]map[time.Time]bool{}
	for _, r := range table {
		if schedule, tick, ok := tickOf(r.Key); ok {
			if ticks[schedule] == nil {
				ticks[schedule] = map[time.Time]bool{}
			}
			ticks[schedule][tick] = true
		}
	}
	for schedule, there := range ticks {
		all := slices.SortedFunc(maps.Keys(there), time.Time.Compare)
		for tick, last := all[0], all[len(all)-1]; tick.Before(last); tick = tick.Add(time.Second) {
			if !there[tick] {
				missing = append(missing, tickKey(schedule, tick))
			}
		}
	}
	return missing
}

// pauseSchedules pauses all schedules.
func pauseSchedules(ctx context.Context, q *falldue.Queue) error {
	list, err := periodic.List(ctx, q)
	for _, s := range list {
		if err == nil {
			err = periodic.Pause(ctx, q, s.Name)
		}
	}
	return err
}
