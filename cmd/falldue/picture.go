package main

import (
	"fmt"
	"image/color"
	"os"

	"git.sr.ht/~sbinet/gg"
	"github.com/spf13/cobra"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"

	"github.com/falldue/falldue/internal/chart"
)

// pictureFlags name the files to which a command draws.
type pictureFlags struct{ svg, png, theme string }

func (f *pictureFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.svg, "svg", "", "also write the chart to an SVG `file`")
	cmd.Flags().StringVar(&f.png, "png", "", "also write the chart to a PNG `file`")
	cmd.Flags().StringVar(&f.theme, "theme", "auto", "colors of the chart: light, dark or auto (an SVG follows the system's theme, and a PNG is light)")
}

func (f *pictureFlags) set() bool { return f.svg != "" || f.png != "" }

// themes are the values of --theme.
var themes = map[string]chart.Theme{"auto": chart.Auto, "light": chart.Light, "dark": chart.Dark}

// save draws a figure to the files.
func (f *pictureFlags) save(figure chart.Figure) error {
	theme, known := themes[f.theme]
	if !known {
		return mistake(fmt.Errorf("--theme %q: must be auto, light or dark", f.theme))
	}
	drawing := figure.Draw(chart.Width)
	if f.svg != "" {
		if err := os.WriteFile(f.svg, []byte(drawing.SVG(theme)), 0o644); err != nil { //nolint:gosec // a picture is for everyone
			return err
		}
	}
	if f.png == "" {
		return nil
	}
	return savePNG(f.png, drawing, theme)
}

// pngScale is the number of dots of a PNG in a pixel: screens of phones have two or more.
const pngScale = 2

// savePNG writes a drawing as PNG.
func savePNG(path string, d chart.Drawing, theme chart.Theme) error {
	p := pngPainter{Context: gg.NewContext(int(pngScale*d.Width), int(pngScale*d.Height)), theme: theme, faces: map[float64]font.Face{}}
	p.SetColor(theme.RGB(chart.Paper))
	p.Clear()
	for _, shape := range d.Shapes {
		switch s := shape.(type) {
		case chart.Path:
			p.path(s)
		case chart.Marks:
			for _, at := range s.At {
				p.fill([][]chart.Point{s.Mark.Outline(at, s.Size)}, theme.RGB(s.Color))
			}
		case chart.Text:
			if err := p.text(s); err != nil {
				return err
			}
		}
	}
	file, err := os.Create(path) //nolint:gosec // the user names the file
	if err != nil {
		return err
	}
	if err := p.EncodePNG(file); err != nil {
		_ = file.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return file.Close()
}

// pngPainter paints the shapes of a drawing.
type pngPainter struct {
	*gg.Context
	theme chart.Theme
	faces map[float64]font.Face // by their sizes
}

// trace makes lines the current path.
func (p *pngPainter) trace(lines [][]chart.Point) {
	for _, line := range lines {
		p.NewSubPath()
		for _, at := range line {
			p.LineTo(pngScale*at.X, pngScale*at.Y)
		}
	}
}

func (p *pngPainter) fill(lines [][]chart.Point, c color.NRGBA) {
	p.trace(lines)
	p.SetColor(c)
	p.Fill()
}

func (p *pngPainter) path(s chart.Path) {
	if s.Fill != chart.None {
		c := p.theme.RGB(s.Fill)
		if s.Opacity > 0 {
			c.A = uint8(255 * s.Opacity)
		}
		p.fill(s.Lines, c)
	}
	if s.Stroke == chart.None {
		return
	}
	p.trace(s.Lines)
	p.SetColor(p.theme.RGB(s.Stroke))
	p.SetLineWidth(pngScale * s.Width)
	dash := make([]float64, len(s.Dash))
	for i, length := range s.Dash {
		dash[i] = pngScale * length
	}
	p.SetDash(dash...)
	p.Stroke()
}

// text writes a text in the font of the Go project. It has Latin, Greek and Cyrillic letters.
func (p *pngPainter) text(t chart.Text) error {
	face := p.faces[t.Size]
	if face == nil {
		parsed, err := opentype.Parse(goregular.TTF)
		if err != nil {
			return err
		}
		if face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: pngScale * t.Size, DPI: 72, Hinting: font.HintingNone}); err != nil {
			return err
		}
		p.faces[t.Size] = face
	}
	p.SetFontFace(face)
	p.SetColor(p.theme.RGB(t.Color))
	p.DrawStringAnchored(t.Text, pngScale*t.At.X, pngScale*t.At.Y, float64(t.Anchor)/2, 0)
	return nil
}
