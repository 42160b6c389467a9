package falldue

import "context"

// listener is the role that lets notices of other processes wake the pollers.
type listener struct {
	listen  func(ctx context.Context, channel string, wake func()) error
	channel string
	wake    func()
	events  events
}

// work listens until ctx ends, and again after a failure.
func (l *listener) work(ctx context.Context) {
	for try := 0; ctx.Err() == nil; try++ {
		err := l.listen(ctx, l.channel, l.wake)
		if ctx.Err() == nil {
			l.events.listenFailed(err)
			_ = pause(ctx, errorPause(try))
		}
	}
}
