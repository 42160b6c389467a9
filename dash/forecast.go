package dash

import (
	"html/template"
	"time"

	"github.com/falldue/falldue/internal/chart"
	"github.com/falldue/falldue/ops"
)

// forecastView is what the page of the forecast shows.
type forecastView struct {
	ops.Forecast
	Kind    string
	Rows    []forecastRow
	Drawn   forecastRow // the row that the chart shows
	Chart   template.HTML
	Read    bool
	Age     time.Duration
	Trouble *trouble
	// Tasks and Takes are the cost of a forecast.
	Tasks int64
	Takes time.Duration
	Pace  ops.Pace
}

// forecastRow is a kind, or all kinds.
type forecastRow struct {
	ops.KindLoad
	Pace float64
	Gone string
}

// unknownGone replaces the time at which a backlog is done, if none of its tasks are being done.
const unknownGone = "unknown"

// forecastHours is how far the chart of the forecast goes.
const forecastHours = 6

// forecastPage shows when waiting tasks fall due. It reads them only if the user asks for it, since reading can take
// seconds.
func forecastPage(in *request) (page, error) {
	ctx := in.r.Context()
	v := forecastView{Kind: in.query.Get("kind")}
	p := in.h.reads.pulse.get(ctx)
	v.Pace, v.Trouble = ops.PaceOf(p.Value.Workers), troubleOf(p.Err)
	v.Tasks, v.Takes, _ = in.h.ops.ProfileTime(ctx)
	profile, _, _ := in.h.reads.profile.now()
	if in.query.Get("read") != "" {
		profile = in.h.reads.profile.get(ctx)
	}
	if profile.Err != nil {
		v.Trouble = troubleOf(profile.Err)
	}
	if profile.Known {
		v.Read, v.Age = true, profile.Age
		if err := v.forecast(profile.Value); err != nil {
			return page{}, err
		}
	}
	return page{Title: "Forecast", Nav: "forecast", Regions: []region{{ID: "forecast", Template: "forecast", Data: v}}}, nil
}

func (v *forecastView) forecast(p *ops.Profile) (err error) {
	if v.Forecast, err = p.Forecast(0); err != nil {
		return err
	}
	v.Drawn = v.row(v.All, v.Pace.PerSecond)
	if len(v.Stalled(v.Pace)) > 0 {
		v.Drawn.Gone = unknownGone
	}
	all := v.Drawn
	for _, k := range v.Kinds {
		row := v.row(k, v.Pace.Of(k.Kind))
		v.Rows = append(v.Rows, row)
		if k.Kind == v.Kind {
			v.Drawn = row
		}
	}
	if len(v.Kinds) != 1 {
		v.Rows = append(v.Rows, all)
	}
	figure := chart.Change("", "", nil, []chart.LoadOf{{Policy: "falls due", Due: v.Drawn.Due, Minutes: v.Drawn.Minutes[:min(len(v.Drawn.Minutes), forecastHours*60)]}})
	figure.Title, figure.Panels = "", figure.Panels[1:]
	v.Chart = svg("Tasks that fall due per minute", figure)
	return nil
}

func (v *forecastView) row(k ops.KindLoad, pace float64) forecastRow {
	row := forecastRow{KindLoad: k, Pace: pace, Gone: unknownGone}
	if pace == 0 {
		return row
	}
	switch gone, ok := k.Gone(pace); {
	case !ok:
		row.Gone = "not within 24h"
	case gone == 0:
		row.Gone = "now"
	default:
		row.Gone = "in " + durText(gone.Round(time.Second))
	}
	return row
}

// In10, InHour and InDay are how many tasks fall due within a time.
func (r forecastRow) In10() int64   { return r.Within(10) }
func (r forecastRow) InHour() int64 { return r.Within(60) }
func (r forecastRow) InDay() int64  { return r.Within(24 * 60) }

// Peaks returns when the busiest minute is, in words.
func (r forecastRow) Peaks() string {
	switch {
	case r.Peak == 0:
		return "–"
	case r.PeakAt == 0:
		return "now"
	}
	return "in " + durText(r.PeakAt)
}
