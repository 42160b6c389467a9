package ops

// NewSmallMonitor returns a monitor whose reads find about so many lanes, with so many for each statement, and take
// as long as a busy machine needs.
func (o *Ops) NewSmallMonitor(lanes, page int) *Monitor {
	m := o.NewMonitor()
	m.most, m.failuresWithin = bound{lanes, page, unbounded.within}, unbounded.within
	return m
}
