package falldue_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
)

// TestHandleAfterRunIsLogged: the worker ignores it, and says so.
func TestHandleAfterRunIsLogged(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log bytes.Buffer
	db := testdb.Open(t, testdb.SQLite)
	q, err := falldue.New(db, falldue.Config{Release: "v7", Logger: slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	first, late := falldue.NewKind[struct{}]("first", falldue.KindConfig{}), falldue.NewKind[struct{}]("late", falldue.KindConfig{})
	none := func(context.Context, falldue.Task[struct{}]) error { return nil }
	falldue.Handle(q, first, func(context.Context, falldue.Task[struct{}]) error { close(started); return nil })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	if _, err := first.Enqueue(t.Context(), q, struct{}{}); err != nil {
		t.Fatal(err)
	}
	<-started
	falldue.Handle(q, late, none)
	q.Use(func(next falldue.HandlerFunc) falldue.HandlerFunc { return next })
	var release string
	for release == "" { // until the worker has announced itself
		if err := db.Get(&release, "select coalesce(max(json_extract(info, '$.release')), '') from falldue_workers"); err != nil {
			t.Fatal(err)
		}
	}
	if release != "v7" {
		t.Errorf("the release is %q", release)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"Handle was called while Run is running; the worker ignores it until Run is called again\" kind=late", "Use was called while Run is running"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log.String())
		}
	}
}

// lockedWriter writes with a mutex.
type lockedWriter struct {
	mu *sync.Mutex
	io.Writer
}

func (w lockedWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Writer.Write(text)
}
