package retry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestStatementsEndASecondAfterTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		later, end := StatementContext(ctx, time.Hour)
		defer end()
		stop()
		began := time.Now()
		<-later.Done()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it ended %v after the worker was stopped, want a second", took)
		}
		unended, endEarly := StatementContext(t.Context(), time.Hour)
		endEarly()
		if unended.Err() == nil {
			t.Error("it did not end when its function was called")
		}
		short, endShort := StatementContext(t.Context(), time.Minute)
		defer endShort()
		began = time.Now()
		<-short.Done()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it ended after %v, want its timeout of a minute", took)
		}
	})
}
