package faults

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/periodic"
)

// secondly returns n schedules that tick each second. The key of a job names the schedule and
// the tick, see [tickOf].
func secondly(kind falldue.Kind[Job], n int) (list []periodic.Schedule) {
	for i := range n {
		name := fmt.Sprint("schedule", i+1)
		list = append(list, periodic.Schedule{
			Name: name, Spec: "@every 1s", Missed: periodic.All(1000),
			TaskAt: func(tick time.Time) falldue.EnqueueParams {
				return kind.Params(Job{Key: fmt.Sprint(name, "@", tick.UnixMicro())}, nil)
			},
		})
	}
	return list
}

// tickOf returns the schedule and the tick of a job of [secondly].
func tickOf(j Job) (name string, tick time.Time, err error) {
	name, at, _ := strings.Cut(j.Key, "@")
	micros, err := strconv.ParseInt(at, 10, 64)
	return name, time.UnixMicro(micros), err
}
