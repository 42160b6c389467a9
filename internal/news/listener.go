package news

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/falldue/falldue/internal/retry"
)

// Listener is the role that lets notifications of other processes wake the pollers.
type Listener struct {
	listen  Listen
	channel string
	pollers notified
	log     *slog.Logger
	active  atomic.Bool // the worker is notified of tasks
}

// Listen is the user's function that calls wake with the text of each notice on a channel.
type Listen func(ctx context.Context, channel string, wake func(notice string)) error

// notified is told of notices.
type notified interface {
	Notified(notice string)
}

// NewListener returns a listener on a channel. Without a user's function it never listens.
func NewListener(listen Listen, channel string, pollers notified, log *slog.Logger) *Listener {
	return &Listener{listen: listen, channel: channel, pollers: pollers, log: log}
}

// Listening reports whether the worker is notified of tasks.
func (l *Listener) Listening() bool { return l.active.Load() }

// listenFailureEvery is how often a failure to listen is reported while it lasts.
const listenFailureEvery = time.Minute

// Work listens until ctx ends, and again after a failure. It reports the begin of a failure, the failure
// each minute while it lasts, and its end.
func (l *Listener) Work(ctx context.Context) {
	var failing atomic.Bool // listen may call wake from any goroutine
	var reported time.Time
	for try := 0; ; try++ {
		start := time.Now()
		err := l.listen(ctx, l.channel, func(notice string) {
			if failing.Swap(false) {
				l.log.Info("falldue: listening again")
			}
			l.active.Store(true)
			l.pollers.Notified(notice)
		})
		l.active.Store(false)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("Notifications.Listen returned before its context ended")
		}
		if !failing.Swap(true) || time.Since(reported) >= listenFailureEvery {
			l.log.Warn("falldue: cannot listen; the worker polls for tasks of other processes", retry.FailedIn("listener", err))
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
