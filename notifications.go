package falldue

import (
	"context"

	"github.com/falldue/falldue/dialect"
)

// Notifications sets how a process takes part in LISTEN and NOTIFY of PostgreSQL.
//
//	Mode                Enqueue, EnqueueMany, Retry   EnqueueTx, EnqueueManyTx
//	NotifyDefault       after the call                at the commit if Listen is set, else never
//	NotifyAfterCalls    after the call                never
//	NotifyInTx          at the commit                 at the commit
//
// "After the call" means a separate statement, at most once in 10 milliseconds. No call waits for the statement. "At the
// commit" means a statement inside the transaction. PostgreSQL commits transactions that notify one after the other, so
// notify at the commit only if workers listen. [Queue.Wake] notifies in each mode. Workers find all other tasks by
// polling ([Config].PollInterval).
type Notifications struct {
	// Listen makes the worker start tasks of other processes immediately. Package pgnotify makes such a function, and
	// package pgxqueue sets Listen itself.
	//
	// Listen calls wake with the text of each notification on channel, and once with "" when it has begun to listen. A
	// text contains the names of queues, separated by spaces, or is "" for all queues. Listen returns when ctx ends or
	// when it fails. After a failure the worker logs the error, polls as without Listen, and calls Listen again, after 50
	// milliseconds at first and after 5 seconds at most. Defaults to nil: the worker only polls.
	Listen func(ctx context.Context, channel string, wake func(notification string)) error
	// Mode sets when this process notifies workers that listen. Defaults to NotifyDefault.
	Mode NotifyMode
}

// NotifyMode sets when a process notifies workers that listen, see [Notifications].
type NotifyMode int

// The modes. With NotifyDefault, a process that listens sends notifications inside your transactions, and PostgreSQL
// commits such transactions one after the other. NotifyAfterCalls avoids this: call [Queue.Wake] after your commit.
// NotifyInTx is for processes that end soon after a call, and for processes that only enqueue in transactions.
const (
	NotifyDefault NotifyMode = iota
	NotifyAfterCalls
	NotifyInTx
)

func (n Notifications) validate(s dialect.Server) error {
	if n.Mode < NotifyDefault || n.Mode > NotifyInTx {
		return invalid("Notifications.Mode %d: must be NotifyDefault, NotifyAfterCalls or NotifyInTx", n.Mode)
	}
	if (n.Listen != nil || n.Mode != NotifyDefault) && !s.Caps.Notify {
		return invalid("Notifications are set on %s: only PostgreSQL has LISTEN and NOTIFY", s.Name())
	}
	return nil
}

// ownTx reports whether the queue's own transactions notify.
func (n Notifications) ownTx() bool { return n.Mode == NotifyInTx }

// callersTx reports whether transactions of callers notify.
func (n Notifications) callersTx() bool {
	return n.Mode == NotifyInTx || n.Mode == NotifyDefault && n.Listen != nil
}
