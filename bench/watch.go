package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// watch measures what a drain uses of the server and of the worker processes.
type watch struct {
	db database

	server, clients time.Duration // of processors
	connections     int           // the most that there were at once
	doing           activity

	group  *processGroup
	before processTimes
	cancel context.CancelFunc
	ended  chan error
}

// activity counts what sessions did at each of some moments.
type activity struct {
	moments  int
	sessions map[string]int // by what they did, without those that were idle
}

// idleSession is what the queries of sessions call a session that does nothing.
const idleSession = "idle"

// sessions query what the sessions of a database do, and how many do the same.
var sessions = map[string]string{
	postgres: `select case when state <> 'active' then 'idle' when wait_event is null then 'running' else wait_event_type || ' ' || wait_event end as what, count(*) as n
		from pg_stat_activity where datname = '%s' group by 1`,
	mySQL: `select case when command = 'Sleep' then 'idle' when coalesce(state, '') = '' then 'running' else state end as what, count(*) as n
		from information_schema.processlist where db = '%s' group by 1`,
}

// begin begins the watch. It does nothing with a nil watch.
func (w *watch) begin(ctx context.Context, group *processGroup) {
	if w == nil {
		return
	}
	w.group, w.before, w.ended = group, readProcessTimes(), make(chan error, 1)
	w.doing = activity{sessions: map[string]int{}}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() { w.ended <- w.sample(ctx) }()
}

// sample asks the server every 100 ms what its sessions do.
func (w *watch) sample(ctx context.Context) error {
	query := cmp.Or(sessions[w.db.server.engine], sessions[mySQL])
	if w.db.server.admin == nil {
		return nil
	}
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		var rows []struct {
			What string `db:"what"`
			N    int    `db:"n"`
		}
		err := w.db.server.admin.SelectContext(ctx, &rows, fmt.Sprintf(query, w.db.name))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ask what sessions do: %w", err)
		}
		all := 0
		for _, r := range rows {
			if all += r.N; r.What != idleSession {
				w.doing.sessions[r.What] += r.N
			}
		}
		w.doing.moments, w.connections = w.doing.moments+1, max(w.connections, all)
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// end ends the watch. It does nothing with a nil watch, or one that has not begun.
func (w *watch) end() error {
	if w == nil || w.cancel == nil {
		return nil
	}
	w.cancel()
	err := <-w.ended
	after := readProcessTimes()
	var clients []int
	for _, cmd := range w.group.commands {
		clients = append(clients, cmd.Process.Pid)
	}
	w.clients = after.of(clients...) - w.before.of(clients...)
	port, failed := w.db.server.port()
	if root := listeningProcess(port); root > 0 {
		w.server = after.of(root) - w.before.of(root)
	}
	return errors.Join(err, failed)
}

// String names the three things that most sessions did, each with how many did it on average.
func (a activity) String() string {
	names := slices.SortedFunc(maps.Keys(a.sessions), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.sessions[y], a.sessions[x]), strings.Compare(x, y))
	})
	var list []string
	for _, name := range names[:min(3, len(names))] {
		list = append(list, fmt.Sprintf("%s %.1f", name, float64(a.sessions[name])/float64(a.moments)))
	}
	return strings.Join(list, ", ")
}

// port returns the port of the server, or 0 if it has none.
func (s *server) port() (int, error) {
	if s.engine == sqlite {
		return 0, nil
	}
	address, err := addressIn(s.engine, s.dsn)
	if errors.Is(err, errNoAddress) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
