package backoff_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/falldue/falldue/backoff"
)

// mustParse parses a policy and fails the test if that is not possible.
func mustParse(t testing.TB, text string) backoff.Policy {
	t.Helper()
	p, err := backoff.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The waits of the originals in seconds, from n = 1 on: the delay, and, where
// there is jitter, delay + jitter. The figures were computed by the code of the
// originals, or come from their tables.
func TestPresetsMatchTheirOriginals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text        string
		least, most []float64
		within      float64 // the precision of the figures; 0 means 1e-6
		attempts    int
		elapsed     time.Duration
	}{
		{text: "linear(min=5s, max=260s, retries=10)", least: []float64{5, 33.333, 61.667, 90, 118.333, 146.667, 175, 203.333, 231.667, 260, 260, 260}, within: 6e-4, attempts: 11},
		{text: "arithmetic(min=5s, max=260s, retries=10)", least: []float64{5, 10.667, 22, 39, 61.667, 90, 124, 163.667, 209, 260, 260}, within: 6e-4, attempts: 11},
		{text: "geometric(min=5s, max=260s, retries=10)", least: []float64{5, 7.756, 12.031, 18.663, 28.949, 44.906, 69.658, 108.054, 167.613, 260, 260}, within: 6e-4, attempts: 11},
		{text: "exponential(min=5s, max=260s, retries=10)", least: []float64{5, 7.756, 12.031, 18.663, 28.949, 44.906, 69.658, 108.054, 167.613, 260, 260}, within: 6e-4, attempts: 11},
		{text: "linear(min=7s, max=9s, retries=1)", least: []float64{7, 7}, attempts: 2},
		{text: "arithmetic(min=7s, max=9s, retries=1)", least: []float64{7, 7}, attempts: 2},
		{text: "geometric(min=7s, max=9s, retries=1)", least: []float64{7, 7}, attempts: 2},
		{text: "exponential(min=7s, max=7s, retries=3)", least: []float64{7, 7, 7, 7}, attempts: 4},
		// Zaqar's own phases: 3 at once, 3 after 5 s, the function, 3 after 30 s.
		{text: "sns_linear(min=5s, max=30s, retries=12, no_delay=3, min_delay=3, max_delay=3)", least: []float64{0, 0, 0, 5, 5, 5, 5, 17.5, 30, 30, 30, 30, 30}, attempts: 13},
		{text: "sns_arithmetic(min=5s, max=260s, retries=4)", least: []float64{5, 47.5, 132.5, 260, 260}, attempts: 5},
		{text: "sns_linear", least: []float64{20, 20, 20}, attempts: 4},
		{text: "constant", least: []float64{300, 300}},
		{text: "polynomial(base=1s, unit=2s, exponent=2, max=30s)", least: []float64{3, 9, 19, 30, 30}},
		// The article's table, in hours, and 1.017 for its misprint of f(1).
		{text: "arctan", least: hours(1.017, 7.49, 16.25, 20.48, 22.18, 22.94, 23.33, 23.55, 23.69, 23.77, 23.83), within: 0.005 * 3600},
		{text: "arctan", least: []float64{3661.511841}},
		{text: "917m * atan(n^3 / 15)", least: []float64{3662.580371, 26957.452090}},
		{text: "sigmoid(max=1h)", least: []float64{3600 * math.Tanh(0.5), 3600 * math.Tanh(1), 3600 * math.Tanh(1.5)}},
		{text: "euler(max=1h)", least: []float64{3600 / (math.E - 1), 3600 * 1.25 / (math.E - 1), 3600 * (64.0/27 - 1) / (math.E - 1)}},
		{text: "visualization_constant", least: []float64{300, 300}},
		{text: "visualization_exponential", least: []float64{300, 420, 660, 1140, 2100}},
		{text: "visualization_sidekiq", least: []float64{16, 31, 96}, most: []float64{76, 121, 216}},
		{text: "visualization_buckets", least: []float64{1, 8, 27}, most: []float64{27, 64, 125}},
		{text: "full_jitter(base=1s, cap=10s)", least: []float64{0, 0, 0, 0, 0}, most: []float64{1, 2, 4, 8, 10}},
		{text: "equal_jitter(base=1s, cap=10s)", least: []float64{0.5, 1, 2, 4, 5}, most: []float64{1, 2, 4, 8, 10}},
		{text: "zizq", least: []float64{16, 31, 96, 271}, most: []float64{46, 91, 186, 391}, attempts: 26},
		{text: "sidekiq", least: []float64{15, 16, 31, 96}, most: []float64{25, 36, 61, 136}, attempts: 26},
		{text: "cenkalti", least: halves(0.5, 0.75, 1.125, 1.6875, 2.53125, 3.796875, 5.6953125, 8.54296875, 12.814453125, 19.221679687, 28.83251953, 43.248779295, 60, 60),
			most: []float64{0.75, 1.125, 1.6875, 2.53125, 3.796875, 5.6953125, 8.54296875, 12.814453125, 19.221679687, 28.83251953, 43.248779295, 64.8731689, 90, 90}, within: 2e-6, elapsed: 15 * time.Minute},
		{text: "pubsub", least: []float64{10, 20, 40, 80, 160, 320, 600, 600}},
		{text: "river", least: []float64{0.9, 14.4, 72.9}, most: []float64{1.1, 17.6, 89.1}, attempts: 25},
		{text: "oban", least: []float64{17, 19, 23, 31}, most: []float64{18.7, 20.9, 25.3, 34.1}, attempts: 20},
		{text: "oban(attempts=100)", least: []float64{16, 16, 17, 17, 17, 17, 17, 19}, most: []float64{17.6, 17.6, 18.7, 18.7, 18.7, 18.7, 18.7, 20.9}, attempts: 100},
		{text: "asynq", least: []float64{15, 16, 31, 96}, most: []float64{44, 74, 118, 212}, attempts: 26},
		{text: "faktory", least: []float64{15, 16, 31, 96}, most: []float64{44, 74, 118, 212}, attempts: 26},
		{text: "graphile_worker", least: []float64{2.718282, 7.389056, 20.085537, 54.598150, 148.413159, 403.428793, 1096.633158, 2980.957987, 8103.083928, 22026.465795, 22026.465795}, attempts: 25},
		{text: "db_scheduler(initial=100s)", least: []float64{100, 150, 225, 337.5}},
		{text: "celery", least: []float64{0, 0}, most: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600}, attempts: 4},
		{text: "activejob", least: []float64{3, 18, 83}, most: []float64{3.15, 20.4, 95.15}, attempts: 5},
		{text: "grpc", least: []float64{1, 1.28, 2.048, 3.2768}, most: []float64{1, 1.92, 3.072, 4.9152}},
	} {
		p := mustParse(t, c.text)
		within := max(c.within, 1e-6)
		for i, want := range c.least {
			if got := p.Delay().Eval(int64(i + 1)); math.Abs(got-want) > within {
				t.Errorf("%s: delay(%d) is %v, want %v", c.text, i+1, got, want)
			}
		}
		for i, want := range c.most {
			n := int64(i + 1)
			if got := p.Delay().Eval(n) + p.Jitter().Eval(n); math.Abs(got-want) > within {
				t.Errorf("%s: delay(%d) + jitter(%d) is %v, want %v", c.text, n, n, got, want)
			}
		}
		if c.most == nil && !p.Jitter().IsZero() {
			t.Errorf("%s has a jitter, %s", c.text, p.Jitter())
		}
		if p.MaxAttempts() != c.attempts || p.MaxElapsed() != c.elapsed {
			t.Errorf("%s has the limits %d and %v, want %d and %v", c.text, p.MaxAttempts(), p.MaxElapsed(), c.attempts, c.elapsed)
		}
	}
}

func hours(h ...float64) []float64 {
	for i := range h {
		h[i] *= 3600
	}
	return h
}

func halves(s ...float64) []float64 {
	for i := range s {
		s[i] /= 2
	}
	return s
}

// The time from the first attempt to the last, from the documents of the
// originals or added up by their code.
func TestTimeToLastAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		days     float64 // without jitter
		withMean float64 // with the mean of the jitter, 0 where there is none
		within   float64
	}{
		{"sidekiq", 1763395.0 / 86400, 0, 1e-9},
		{"zizq", 24.93, 24.99, 0.005},
		{"sns_geometric(min=1s, max=60s, retries=50, no_delay=3, min_delay=2, max_delay=35)", 2264.0 / 86400, 0, 0.5 / 86400},
		{"sns_geometric(min=10s, max=600s, retries=50, min_delay=2, max_delay=38)", 24444.0 / 86400, 0, 0.5 / 86400},
		{"oban", 12.14, 0, 0.005},
		{"graphile_worker", (95*3600 + 20*60 + 14.294975) / 86400, 0, 1e-9},
	} {
		p := mustParse(t, c.text)
		var sum, mean float64
		for n := int64(1); n < int64(p.MaxAttempts()); n++ {
			sum += p.Delay().Eval(n)
			mean += p.Delay().Eval(n) + p.Jitter().Eval(n)/2
		}
		if math.Abs(sum/86400-c.days) > c.within || c.withMean != 0 && math.Abs(mean/86400-c.withMean) > c.within {
			t.Errorf("%s: %v days, %v with jitter, want %v and %v", c.text, sum/86400, mean/86400, c.days, c.withMean)
		}
	}
}

func TestGoFunctionsEqualThePresets(t *testing.T) {
	t.Parallel()
	for text, p := range map[string]backoff.Policy{
		"constant(90s)":             backoff.Constant(90 * time.Second),
		"linear(5s, 260s, 10)":      backoff.Linear(5*time.Second, 260*time.Second, 10),
		"arithmetic(5s, 260s, 10)":  backoff.Arithmetic(5*time.Second, 260*time.Second, 10),
		"geometric(5s, 260s, 10)":   backoff.Geometric(5*time.Second, 260*time.Second, 10),
		"exponential(5s, 260s, 10)": backoff.Exponential(5*time.Second, 260*time.Second, 10),
		"sns_linear":                backoff.SNS(backoff.SNSPhases{Retries: 3}),
		"sns_geometric(1s, 1m, 50, 3, 2, 35)": backoff.SNS(backoff.SNSPhases{
			Curve: backoff.GeometricCurve, Min: time.Second, Max: time.Minute, Retries: 50, NoDelay: 3, MinDelay: 2, MaxDelay: 35}),
		"polynomial(1s, 2s, 2.5, 1h)": backoff.Polynomial(time.Second, 2*time.Second, 2.5, time.Hour),
		"arctan(max=12h)":             backoff.Arctan(12 * time.Hour),
		"sigmoid(max=12h)":            backoff.Sigmoid(12 * time.Hour),
		"euler(max=12h)":              backoff.Euler(12 * time.Hour),
		"full_jitter(100ms, 20s)":     backoff.FullJitter(100*time.Millisecond, 20*time.Second),
		"equal_jitter(100ms, 20s)":    backoff.EqualJitter(100*time.Millisecond, 20*time.Second),
		"zizq":                        backoff.Zizq(),
		"sidekiq":                     backoff.Sidekiq(),
		"cenkalti":                    backoff.Cenkalti(),
		"pubsub(5s, 60s)":             backoff.PubSub(5*time.Second, time.Minute),
		"river":                       backoff.River(),
		"oban":                        backoff.Oban(),
		"asynq":                       backoff.Asynq(),
		"faktory":                     backoff.Faktory(),
		"graphile_worker":             backoff.GraphileWorker(),
		"db_scheduler(5s)":            backoff.DBScheduler(5 * time.Second),
		"celery":                      backoff.Celery(),
		"activejob":                   backoff.ActiveJob(),
		"grpc":                        backoff.GRPC(),
	} {
		if err := p.Err(); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want := mustParse(t, text)
		for n := range int64(60) {
			gotDelay, gotJitter := p.Wait(n)
			wantDelay, wantJitter := want.Wait(n)
			if gotDelay != wantDelay || gotJitter != wantJitter {
				t.Errorf("%s waits %v + %v at %d, in text %v + %v", p, gotDelay, gotJitter, n, wantDelay, wantJitter)
				break
			}
		}
		if p.MaxAttempts() != want.MaxAttempts() || p.MaxElapsed() != want.MaxElapsed() {
			t.Errorf("%s and %s have other limits", p, want)
		}
	}
}

func TestPresetsRejectArgumentsOutOfRange(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]backoff.Policy{
		"geometric: min is 0s: must be from 1ms to 36500d":                                             backoff.Geometric(0, time.Second, 3),
		"exponential: min is 0s: must be from 1ms to 36500d":                                           backoff.Exponential(0, time.Second, 3),
		"linear: max must be at least min; the values are min=3s, max=1s, retries=2":                   backoff.Linear(3*time.Second, time.Second, 2),
		"linear: retries is 0: must be from 1 to 1000000":                                              backoff.Linear(time.Second, 2*time.Second, 0),
		"constant: wait is -1m: must be from 0s to 36500d":                                             backoff.Constant(-time.Minute),
		"pubsub: max is 11m: must be from 0s to 10m":                                                   backoff.PubSub(0, 11*time.Minute),
		"sns_linear: retries is 101: must be from 0 to 100":                                            backoff.SNS(backoff.SNSPhases{Retries: 101}),
		"sns_linear: no_delay + min_delay + max_delay must be at most retries; the values are min=20s": backoff.SNS(backoff.SNSPhases{Retries: 3, NoDelay: 2, MaxDelay: 2}),
		"sns_linear: max is 2h: must be from 1s to 1h":                                                 backoff.SNS(backoff.SNSPhases{Max: 2 * time.Hour}),
		"arctan: max is 0.000024ms: must be 0, or 1ms or more":                                         backoff.Arctan(24),
		"constant: wait is 0.5ms: must be 0, or 1ms or more":                                           backoff.ParseDeferred("constant(0.0005)"),
		"unknown preset \"sns_cubic\"":                                                                 backoff.SNS(backoff.SNSPhases{Curve: "cubic"}),
		"polynomial: exponent is 21: must be from 0 to 20":                                             backoff.Polynomial(0, time.Second, 21, time.Hour),
		"polynomial: exponent is NaN: must be from 0 to 20":                                            backoff.Polynomial(0, time.Second, math.NaN(), time.Hour),
		"zizq: retries is 2.5: must be a whole number":                                                 backoff.ParseDeferred("zizq(retries=2.5)"),
		"geometric: unknown parameter \"foo\"; the parameters are min, max, retries":                   backoff.ParseDeferred("geometric(foo=1)"),
		"river: unknown parameter \"n\"; there are no parameters":                                      backoff.ParseDeferred("river(n=1)"),
		"arctan: max is given twice":                                                                   backoff.ParseDeferred("arctan(1h, max=2h)"),
		"constant: too many arguments: 2; the parameters are wait":                                     backoff.ParseDeferred("constant(1h, 2h)"),
		"cenkalti: randomization is 1.5: must be from 0 to 1":                                          backoff.ParseDeferred("cenkalti(randomization=1.5)"),
		"cenkalti: max_interval must be at least initial; the values are initial=90s":                  backoff.ParseDeferred("cenkalti(initial=90s)"),
	} {
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestEveryPresetIsDescribed(t *testing.T) {
	t.Parallel()
	var names []string
	for _, preset := range backoff.Presets() {
		names = append(names, preset.Name)
		if preset.Doc == "" || preset.Source == "" || preset.Delay == "" {
			t.Errorf("%s lacks its doc, source or delay: %+v", preset.Name, preset)
		}
		if _, err := preset.Policy(nil); err != nil {
			t.Errorf("the defaults of %s: %v", preset.Name, err)
		}
		for _, param := range preset.Params {
			if param.Doc == "" || param.Kind == "" || param.Default == "" || !(param.Min < param.Max) {
				t.Errorf("the parameter %s of %s is not described: %+v", param.Name, preset.Name, param)
			}
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the names are not sorted, or not unique: %v", names)
	}
	for _, name := range []string{
		"constant", "linear", "arithmetic", "geometric", "exponential", "sns_linear", "polynomial", "arctan", "sigmoid", "euler",
		"visualization_constant", "visualization_exponential", "visualization_sidekiq", "visualization_buckets", "zizq", "cenkalti",
		"pubsub", "full_jitter", "equal_jitter", "river", "oban", "asynq", "graphile_worker", "db_scheduler", "celery", "activejob",
		"faktory", "grpc", "sidekiq",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("there is no preset %s", name)
		}
	}
}
