package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/falldue/falldue/internal/statements"
)

// Gauge is a measurement of the tasks of a queue and a kind.
type Gauge struct {
	Queue string           `json:"queue"`
	Kind  string           `json:"kind"`
	Tasks map[string]int64 `json:"tasks,omitempty"` // estimates, by state
	// OldestDue is the time for which the first due task has waited, in microseconds; 0 if none is due.
	OldestDue int64 `json:"oldest_due_us,omitempty"`
}

// Sample is the last measurement of all tasks. It is stored as JSON.
type Sample struct {
	At     time.Time     `json:"-"` // when a process last began to measure; zero if none has
	Age    time.Duration `json:"-"` // since then, by the database's clock
	Took   time.Duration `json:"took_ns"`
	Gauges []Gauge       `json:"gauges"`
}

// Sample returns the last measurement of all tasks. While a process measures, this is the previous measurement.
func (s *Store) Sample(ctx context.Context) (sample Sample, err error) {
	stored, err := s.readSample(ctx, statements.TaskSample)
	if err != nil || stored.At == 0 {
		return sample, err
	}
	if stored.Text.Valid {
		if err := json.Unmarshal([]byte(stored.Text.V), &sample); err != nil {
			return Sample{}, fmt.Errorf("falldue: read the sample: %w", err)
		}
	}
	sample.At, sample.Age = Time(stored.At), Duration(stored.Now-stored.At)
	return sample, nil
}

// TakeSample reports whether this process will measure: the last measurement began longer ago than age. Of all
// processes that call TakeSample, one gets true.
func (s *Store) TakeSample(ctx context.Context, age time.Duration) (mine bool, err error) {
	return s.takeSample(ctx, statements.TaskSample, age)
}

// PutSample stores a measurement.
func (s *Store) PutSample(ctx context.Context, sample Sample) error {
	text, err := json.Marshal(sample)
	if err != nil {
		return fmt.Errorf("falldue: encode the sample: %w", err)
	}
	return s.putSample(ctx, statements.TaskSample, string(text))
}

// StateSample is the state of the database as a process has computed it for metrics.
type StateSample struct {
	Taken time.Duration // since a process last began to compute it, by the database's clock
	Text  string        // "" if no process has finished
	Now   time.Time     // by the database's clock
}

// StateSample returns the last state.
func (s *Store) StateSample(ctx context.Context) (StateSample, error) {
	stored, err := s.readSample(ctx, statements.StateSample)
	return StateSample{Taken: Duration(stored.Now - stored.At), Text: stored.Text.V, Now: Time(stored.Now)}, err
}

// TakeStateSample reports whether this process will compute the state, as [Store.TakeSample] does.
func (s *Store) TakeStateSample(ctx context.Context, age time.Duration) (mine bool, err error) {
	return s.takeSample(ctx, statements.StateSample, age)
}

// PutStateSample stores the state.
func (s *Store) PutStateSample(ctx context.Context, text string) error {
	return s.putSample(ctx, statements.StateSample, text)
}

func (s *Store) readSample(ctx context.Context, id int) (stored statements.Sample, err error) {
	err = s.read(ctx, s.fixed("read sample", statements.ReadSample), statements.Values{"id": id}, func() { stored = statements.Sample{} }, func(r row) error {
		return statements.SampleColumns.Scan(r, &stored)
	})
	return stored, err
}

func (s *Store) takeSample(ctx context.Context, id int, age time.Duration) (mine bool, err error) {
	n, err := s.affect(ctx, "take sample", statements.TakeSample, statements.Values{"id": id, "age": age.Microseconds()})
	return n > 0, err
}

func (s *Store) putSample(ctx context.Context, id int, text string) error {
	_, err := s.affect(ctx, "put sample", statements.PutSample, statements.Values{"id": id, "sample": text})
	return err
}

// Measured returns the gauges as sums, for adding to a span.
func (s Sample) Measured() (list []Sums) {
	for _, g := range s.Gauges {
		waiting := g.Tasks[statements.StateOpen] + g.Tasks[statements.StateSnoozed] + g.Tasks[statements.StateBlocked]
		list = append(list, Sums{Queue: g.Queue, Kind: g.Kind, Waiting: NotNull(waiting), DeadNow: NotNull(g.Tasks[statements.StateDead]), OldestDue: NotNull(g.OldestDue)})
	}
	return list
}
