package chart_test

import (
	"image/color"
	"math"
	"testing"

	"github.com/falldue/falldue/internal/chart"
)

// linear is a color as amounts of light of red, green and blue.
type linear [3]float64

func linearOf(c color.NRGBA) (l linear) {
	for i, v := range []uint8{c.R, c.G, c.B} {
		if s := float64(v) / 255; s <= 0.04045 {
			l[i] = s / 12.92
		} else {
			l[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return l
}

func (l linear) times(m [3]linear) (r linear) {
	for i := range r {
		for k := range l {
			r[i] += m[i][k] * l[k]
		}
		r[i] = min(max(r[i], 0), 1)
	}
	return r
}

// contrast is that of WCAG 2.2.
func contrast(a, b linear) float64 {
	light := func(l linear) float64 { return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2] }
	return (max(light(a), light(b)) + 0.05) / (min(light(a), light(b)) + 0.05)
}

// distance is that in the space OKLab, in which black and white are 100 apart.
func distance(a, b linear) float64 {
	lab := func(l linear) (r linear) {
		cones := linear{}
		for i, m := range []linear{{0.4122, 0.5363, 0.0514}, {0.2119, 0.6807, 0.1074}, {0.0883, 0.2817, 0.63}} {
			cones[i] = math.Cbrt(m[0]*l[0] + m[1]*l[1] + m[2]*l[2])
		}
		for i, m := range []linear{{0.2105, 0.7936, -0.0041}, {1.978, -2.4286, 0.4506}, {0.0259, 0.7828, -0.8087}} {
			r[i] = m[0]*cones[0] + m[1]*cones[1] + m[2]*cones[2]
		}
		return r
	}
	x, y := lab(a), lab(b)
	return 100 * math.Sqrt((x[0]-y[0])*(x[0]-y[0])+(x[1]-y[1])*(x[1]-y[1])+(x[2]-y[2])*(x[2]-y[2]))
}

// eyes are ways to see, as matrices of Machado, Oliveira and Fernandes (2009).
var eyes = map[string][3]linear{
	"usual":        {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.1523, 1.0526, -0.2049}, {0.1145, 0.7863, 0.0992}, {-0.0039, -0.0481, 1.052}},
	"deuteranopia": {{0.3673, 0.8606, -0.228}, {0.2801, 0.6725, 0.0474}, {-0.0118, 0.0429, 0.9689}},
	"tritanopia":   {{1.2555, -0.0767, -0.1788}, {-0.0784, 0.9308, 0.1476}, {0.0047, 0.6914, 0.3039}},
}

func TestColorsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, theme := range []chart.Theme{chart.Light, chart.Dark} {
		paper := linearOf(theme.RGB(chart.Paper))
		for c, least := range map[chart.Color]float64{chart.Ink: 7, chart.Faint: 4.5, chart.Neutral: 3} {
			if got := contrast(linearOf(theme.RGB(c)), paper); got < least {
				t.Errorf("theme %d: color %d has the contrast %.2f with its background, want %v", theme, c, got, least)
			}
		}
		for a := chart.Series1; a <= chart.Series6; a++ {
			one := linearOf(theme.RGB(a))
			if got := contrast(one, paper); got < 3 {
				t.Errorf("theme %d: series %d has the contrast %.2f with its background, want 3", theme, a, got)
			}
			for b := chart.Series1; b < a; b++ {
				for name, eye := range eyes {
					if got := distance(one.times(eye), linearOf(theme.RGB(b)).times(eye)); got < 11 {
						t.Errorf("theme %d: with %s the colors %d and %d are %.1f apart, want 11", theme, name, a, b, got)
					}
				}
			}
		}
	}
}
