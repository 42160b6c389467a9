package main

import (
	"fmt"
	"time"
)

// moment is a time at which tests begin, in their local zone.
type moment struct{ at time.Time }

func newMoment(local, zone string) (moment, error) {
	here, err := time.LoadLocation(zone)
	if err != nil {
		return moment{}, err
	}
	at, err := time.ParseInLocation(time.DateTime, local, here)
	return moment{at}, err
}

func (m moment) String() string {
	return m.at.Format("2006-01-02 15:04:05 -0700 ") + m.at.Location().String()
}

// The zones of the tests: one is ahead of UTC, and one is behind UTC by hours and a half. Both have summer time.
const utc, ahead, behind = "UTC", "Europe/Berlin", "America/St_Johns"

// moments returns each hour of a day, and the seconds before midnight on special days and before
// summer time begins and ends. The zones take turns with the hours: in January, every third hour in
// UTC, UTC+1 and UTC-3:30 gives each local hour, too.
func moments() ([]moment, error) {
	zones := []string{utc, ahead, behind}
	var all []moment
	for hour := range 24 {
		here, err := time.LoadLocation(zones[hour%len(zones)])
		if err != nil {
			return nil, err
		}
		minute := hour * 25 % 60 // in no order, so that all parts of an hour are tried
		all = append(all, moment{time.Date(2028, 1, 18, hour, minute, 0, 0, time.UTC).In(here)})
	}
	for _, zone := range zones {
		for _, local := range []string{"2027-12-31 23:59:50", "2028-02-29 23:59:50"} {
			m, err := newMoment(local, zone)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
	}
	for zone, changes := range map[string][2]time.Time{
		ahead:  {time.Date(2028, 3, 26, 1, 0, 0, 0, time.UTC), time.Date(2028, 10, 29, 1, 0, 0, 0, time.UTC)},
		behind: {time.Date(2028, 3, 12, 5, 30, 0, 0, time.UTC), time.Date(2028, 11, 5, 4, 30, 0, 0, time.UTC)},
	} {
		for i, change := range changes {
			here, err := time.LoadLocation(zone)
			if err != nil {
				return nil, err
			}
			before := change.Add(-10 * time.Second).In(here)
			_, old := before.Zone()
			if _, offset := change.In(here).Zone(); offset-old != []int{3600, -3600}[i] {
				return nil, fmt.Errorf("the clocks of %s do not change at %v", zone, change)
			}
			all = append(all, moment{before})
		}
	}
	return all, nil
}
