package ops

// NewSmallMonitor returns a monitor whose looks find about so many lanes, with so many for each statement.
func (o *Ops) NewSmallMonitor(lanes, page int) *Monitor {
	m := o.NewMonitor()
	m.most = bound{lanes, page, unbounded.within}
	return m
}
