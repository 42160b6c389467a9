package claim

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/retry"
)

// Listener is the role that lets notices of other processes wake the pollers.
type Listener struct {
	listen  func(ctx context.Context, channel string, wake func(notice string)) error
	channel string
	wake    func(notice string)
	events  events

	Active atomic.Bool // it listens
}

// NewListener returns a listener. listen calls wake with the text of each notice on channel.
func NewListener(listen func(ctx context.Context, channel string, wake func(notice string)) error, channel string, pollers Pollers, log *slog.Logger) *Listener {
	return &Listener{listen: listen, channel: channel, wake: pollers.Notified, events: events{log}}
}

// listenFailureEvery is how often a failure to listen is reported while it lasts.
const listenFailureEvery = time.Minute

// Work listens until ctx ends, and again after a failure. It reports when a failure
// begins, each minute while it lasts, and when it is over.
func (l *Listener) Work(ctx context.Context) {
	var failing atomic.Bool // listen may call wake from any goroutine
	var reported time.Time
	for try := 0; ; try++ {
		start := time.Now()
		err := l.listen(ctx, l.channel, func(notice string) {
			if failing.Swap(false) {
				l.events.listens()
			}
			l.Active.Store(true)
			l.wake(notice)
		})
		l.Active.Store(false)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("Notifications.Listen returned before its context ended")
		}
		if !failing.Swap(true) || time.Since(reported) >= listenFailureEvery {
			l.events.listenFailed(err)
			reported = time.Now()
		}
		if time.Since(start) >= listenFailureEvery {
			try = 0
		}
		if retry.Pause(ctx, retry.ErrorPause(try)) != nil {
			return
		}
	}
}
