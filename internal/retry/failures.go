package retry

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/cause"
)

// failureEvery is the shortest time between two lines of a log about failures that have the same
// cause.
const failureEvery = time.Minute

// failure is the value of an attribute that [Failed], [FailedIn] and [FailingIn] return.
type failure struct {
	error
	role  string
	again bool
}

// LogValue returns the error itself.
func (f failure) LogValue() slog.Value { return slog.AnyValue(f.error) }

// Failed returns the attribute of a database error, after which a statement is tried
// again, perhaps many times. Loggers of [Sparse] write few lines about such errors.
func Failed(err error) slog.Attr { return FailedIn("", err) }

// FailedIn is Failed for a background loop. Loggers of [Sparse] report each failure of the role,
// even if they write no line about it.
func FailedIn(role string, err error) slog.Attr { return slog.Any("error", failure{err, role, false}) }

// FailingIn is FailedIn for a loop that may fail many times in a row. Loggers of [Sparse] write a line about the first
// failure only (again is false), and report every failure.
func FailingIn(role string, err error, again bool) slog.Attr {
	return slog.Any("error", failure{err, role, again})
}

// Sparse returns a logger that writes at most one line a minute for failures of the database
// ([Failed]) with the same message, kind and cause. The attribute "repeated" of the next line is the number
// of lines left out. While the database is unavailable, as classify reports, all messages count as one. All other
// lines are written. The logger calls trouble, unless nil, with each failure of a background loop
// ([FailedIn]), and the queue that its line names.
func Sparse(log *slog.Logger, classify func(error) dialect.Class, trouble func(role, queue string, err error)) *slog.Logger {
	return slog.New(&sparse{Handler: log.Handler(), classify: classify, trouble: trouble, seen: &seen{lines: map[string]*line{}}})
}

// sparse is the handler of a logger of Sparse.
type sparse struct {
	slog.Handler
	classify func(error) dialect.Class
	trouble  func(role, queue string, err error)
	seen     *seen
}

// Enabled reports true for the lines of failures, which are reported even if they are not written.
func (h *sparse) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) || h.trouble != nil && level >= slog.LevelWarn
}

// seen are the lines that were written in the last minute, by their messages and causes.
type seen struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	at      time.Time
	leftOut int
}

// maxLines is how many different lines are remembered.
const maxLines = 200

// Handle writes a record, unless another record about the same failure was written within the
// last minute.
func (h *sparse) Handle(ctx context.Context, r slog.Record) error {
	var failed error
	var role, queue string
	var again bool
	key := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if f, ok := a.Value.Any().(failure); ok {
			failed, role, again = f.error, f.role, f.again
		} else if a.Key == "kind" {
			key += "\n" + a.Value.String()
		} else if a.Key == "queue" {
			queue = a.Value.String()
		}
		return true
	})
	if role != "" && h.trouble != nil {
		h.trouble(role, queue, failed)
	}
	if again || !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	if failed != nil {
		key += "\n" + cause.Of(failed.Error())
		if KindOf(h.classify(failed), false) == Outage {
			key = "" // one key for all messages
			during := strings.TrimPrefix(r.Message, "falldue: cannot ")
			r = slog.NewRecord(r.Time, slog.LevelWarn, "falldue: the database does not answer", r.PC)
			r.Add("error", failed, "during", during)
		}
		leftOut, ok := h.seen.note(key, time.Now())
		if !ok {
			return nil
		}
		if leftOut > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("repeated", leftOut))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// note reports whether to write a line now, and how many like it were left out.
func (s *seen) note(key string, now time.Time) (leftOut int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	switch {
	case l == nil:
		if len(s.lines) >= maxLines {
			clear(s.lines)
		}
		s.lines[key] = &line{at: now}
		return 0, true
	case now.Sub(l.at) < failureEvery:
		l.leftOut++
		return 0, false
	}
	leftOut = l.leftOut
	*l = line{at: now}
	return leftOut, true
}

// WithAttrs and WithGroup return handlers that share seen with this one.
func (h *sparse) WithAttrs(list []slog.Attr) slog.Handler {
	return &sparse{h.Handler.WithAttrs(list), h.classify, h.trouble, h.seen}
}

func (h *sparse) WithGroup(name string) slog.Handler {
	return &sparse{h.Handler.WithGroup(name), h.classify, h.trouble, h.seen}
}
