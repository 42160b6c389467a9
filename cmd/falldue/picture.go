package main

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/falldue/falldue/internal/words"
)

// pictureFlags name the files to which a command draws.
type pictureFlags struct{ svg, png string }

func (f *pictureFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.svg, "svg", "", "`file` to which to draw a picture, too")
	cmd.Flags().StringVar(&f.png, "png", "", "`file` to which to draw a picture, too")
}

func (f *pictureFlags) set() bool { return f.svg != "" || f.png != "" }

// save draws plots, side by side and one above the other, to the files.
func (f *pictureFlags) save(plots [][]*plot.Plot, width, height vg.Length) error {
	if f.svg != "" {
		canvas := vgsvg.New(width, height)
		if err := saveCanvas(f.svg, canvas, canvas, plots); err != nil {
			return err
		}
	}
	if f.png == "" {
		return nil
	}
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144))
	return saveCanvas(f.png, canvas, vgimg.PngCanvas{Canvas: canvas}, plots)
}

// saveCanvas draws plots on a canvas and writes that to a file.
func saveCanvas(path string, canvas vg.CanvasSizer, text io.WriterTo, plots [][]*plot.Plot) error {
	area := draw.New(canvas)
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: vg.Points(12), PadY: vg.Points(8), PadTop: vg.Points(6), PadRight: vg.Points(10), PadBottom: vg.Points(4), PadLeft: vg.Points(4)}
	areas := plot.Align(plots, tiles, area)
	for i, row := range plots {
		for j, p := range row {
			p.Draw(areas[i][j])
		}
	}
	file, err := os.Create(path) //nolint:gosec // the user names the file
	if err != nil {
		return err
	}
	if _, err := text.WriteTo(file); err != nil {
		_ = file.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Close()
}

// faint returns a colour that others shine through.
func faint(c color.Color) color.Color {
	solid, _ := color.NRGBAModel.Convert(c).(color.NRGBA)
	solid.A = 0x40
	return solid
}

// durationTicks labels an axis of seconds with durations at round places.
type durationTicks struct{}

// Ticks returns about five ticks between two numbers of seconds.
func (durationTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	step := roundStep((high - low) / 5)
	for i := math.Ceil(low / step); i*step <= high; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: words.Span(time.Duration(i * step * float64(time.Second)))})
	}
	return ticks
}

// roundStep returns a number of seconds, at least step, that people count in.
func roundStep(step float64) float64 {
	for _, s := range []float64{0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600} {
		if step <= s {
			return s
		}
	}
	days := step / 86400
	power := math.Pow(10, math.Floor(math.Log10(days)))
	for _, s := range []float64{1, 2, 5, 10} {
		if days <= s*power {
			return max(s*power, 1) * 86400
		}
	}
	return step
}

// countTicks labels an axis of whole numbers.
type countTicks struct{}

// Ticks returns ticks at whole numbers between two numbers.
func (countTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	for _, t := range (plot.DefaultTicks{}).Ticks(low, high) {
		if t.Value != math.Trunc(t.Value) {
			continue
		}
		if t.Label != "" {
			t.Label = fmt.Sprintf("%.0f", t.Value)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// logDurationTicks labels a logarithmic axis of seconds.
type logDurationTicks struct{}

// Ticks returns ticks at durations between two numbers of seconds.
func (logDurationTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	for _, s := range []float64{0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400, 3650 * 86400} {
		if s >= low && s <= high {
			ticks = append(ticks, plot.Tick{Value: s, Label: words.Span(time.Duration(s * float64(time.Second)))})
		}
	}
	return ticks
}
