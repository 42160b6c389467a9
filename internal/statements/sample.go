package statements

import (
	"database/sql"

	"github.com/falldue/falldue/dialect"
)

// Sample is a row of table sample: a measurement of the whole database.
type Sample struct {
	At   int64            // when a process last began to measure, 0 if none has
	Text sql.Null[string] // as JSON; null if nothing was measured yet
	Now  int64            // by the database's clock
}

// SampleColumns are the columns of a result of [ReadSample].
var SampleColumns = Columns[Sample]{
	col("at", Moment, func(s *Sample) any { return &s.At }),
	col("sample", Text, func(s *Sample) any { return &s.Text }),
	col("clock", Moment, func(s *Sample) any { return &s.Now }),
}

// The IDs of the rows of table sample.
const (
	// TaskSample is the number of tasks, which workers measure for the history.
	TaskSample = 1
	// StateSample is the state, which processes compute when their metrics are read.
	StateSample = 2
)

// ReadSample selects the sample :id as [SampleColumns].
func ReadSample(s dialect.Server, tables dialect.Tables) Stmt {
	b := newBuilder(s, tables)
	b.set("columns", SampleColumns.list("", map[string]string{"clock": "{now}"}))
	return b.stmt(`
select {columns} from {sample} where id = {int :id}`)
}

// TakeSample moves the time of the sample :id to now if it is :age microseconds old, or as far in the future.
// Of all processes that run it, the one that changes the row measures.
func TakeSample(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {sample} set at = {now} where id = {int :id} and (at <= {shift {now}, -({int :age})} or at > {shift {now}, {int :age}})`)
}

// PutSample stores a measurement. Parameters: id, sample.
func PutSample(s dialect.Server, tables dialect.Tables) Stmt {
	return newBuilder(s, tables).stmt(`
update {sample} set sample = {json {text :sample}} where id = {int :id}`)
}
