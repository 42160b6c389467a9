package ops

import (
	"fmt"
	"strings"
	"time"

	"github.com/falldue/falldue/internal/overdue"
	"github.com/falldue/falldue/internal/words"
)

const (
	// maxSkew is the most that two clocks may differ before times of one mislead people who
	// read the other.
	maxSkew = 5 * time.Second
	// manyDeadRows is the number of dead rows, or of free pages, from which they matter.
	manyDeadRows = 100_000
	// longHistory is the number of transactions from which InnoDB's history is long.
	longHistory = 1_000_000
	// oldTransaction is the age from which a transaction is old.
	oldTransaction = time.Minute
)

// judge returns a finding that is fine, or asks for attention.
func judge(text string, bad bool, advice string) []Finding {
	if bad {
		return []Finding{{Level: Attention, Text: text, Advice: advice}}
	}
	return fine("%s", text)
}

// clockSkew judges how far the database's clock is ahead of this machine's, as measured by
// a statement that took some time.
func clockSkew(skew, took time.Duration) []Finding {
	which := "ahead of"
	if skew < 0 {
		skew, which = -skew, "behind"
	}
	text := fmt.Sprintf("the database's clock is %v %s this machine's; the answer took %v", skew.Round(time.Microsecond), which, took.Round(time.Microsecond))
	return judge(text, skew > maxSkew+took, "falldue uses only the database's clock, but times that programs compute, such as RunAt, will be off: synchronize both clocks with NTP")
}

// otherDelay is the finding about a policy whose delays the server computes otherwise than
// Go, or cannot compute.
func otherDelay(policy string, err error) []Finding {
	return []Finding{{Level: Broken, Text: policy + ": " + strings.TrimPrefix(err.Error(), "falldue: "), Advice: "workers refuse the policy: report this, with the version of the server"}}
}

func deadRows(dead, live int64) []Finding {
	text := fmt.Sprintf("%d dead rows and %d live ones in the table of tasks", dead, live)
	return judge(text, dead > manyDeadRows && dead > live/5, "end old transactions, which keep the rows, and check that autovacuum runs; then VACUUM the table")
}

func freePages(free, all int64) []Finding {
	text := fmt.Sprintf("%d of %d pages of the file are free", free, all)
	return judge(text, free > manyDeadRows && free > all/2, "VACUUM returns them to the file system")
}

func historyOf(transactions int64) []Finding {
	text := fmt.Sprintf("InnoDB keeps the history of %d transactions", transactions)
	return judge(text, transactions > longHistory, "end old transactions, which keep the history")
}

func transactionOf(age time.Duration, session string) []Finding {
	if age <= oldTransaction {
		return fine("no transaction is older than a minute")
	}
	return judge(fmt.Sprintf("the oldest transaction is %v old: %s", age.Round(time.Second), session), true,
		"it keeps the server from removing dead rows, which slows claims down: end the transaction or its session")
}

// overdueTasks is the finding about overdue tasks of a kind in a queue, by the handlers that may run
// them.
func overdueTasks(late Overdue, h QueueHandlers) Finding {
	tasks := words.Count(int64(late.Tasks), "task")
	if late.Tasks >= overdue.Most {
		tasks = "1000 or more tasks"
	}
	these := fmt.Sprintf("%s of kind %s in queue %s", tasks, late.Kind, late.Queue)
	switch {
	case late.HaltedBy != 0:
		return Finding{Level: Attention, Text: fmt.Sprintf("%s wait behind dead tasks that halt their sequences, such as task %d, the first since %s UTC", these, late.HaltedBy, late.DueSince.Format(time.DateTime)),
			Advice: "retry the dead task, or delete it"}
	case late.Limit != "":
		return Finding{Level: Fine, Text: fmt.Sprintf("%s wait for %s, the first since %s UTC", these, late.Limit, late.DueSince.Format(time.DateTime))}
	}
	f := Finding{
		Level: Attention, Text: fmt.Sprintf("%s overdue, the first since %s UTC", these, late.DueSince.Format(time.DateTime)),
		Advice: "run more workers that have a handler of the kind and list the queue",
	}
	switch {
	case h.Busy():
		f.Text += fmt.Sprintf("; all %s for the kind were busy on %s up to %s ago", words.Count(int64(h.Concurrency), "handler"), words.Count(int64(len(h.Workers)), "worker"), words.Span(h.Age()))
		f.Advice = "raise Concurrency or run more workers; if their handlers hang, see \"falldue ls --phase running\" and KindConfig.Timeout"
	case len(h.Workers) > 0:
		f.Advice = "workers have free handlers for these tasks: \"falldue why\" explains the delay of one of them"
	}
	return f
}
