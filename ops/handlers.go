package ops

// Of returns the pace of a kind, in tasks a second, or that of all kinds if it is "".
func (p Pace) Of(kind string) float64 {
	if kind == "" {
		return p.PerSecond
	}
	return p.Kinds[kind]
}

// Handlers returns how many handlers of live workers may run tasks of a kind at once or, if it is
// "", of any kind. A worker that is stopping has none. Limits may let fewer run.
func Handlers(workers []Worker, kind string) (n int) {
	for _, w := range workers {
		if _, handles := w.Kinds[kind]; w.Live() && !w.Stopping && (kind == "" || handles) {
			n += w.Concurrency()
		}
	}
	return n
}
