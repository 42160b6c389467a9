package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/internal/testdb/galera"
)

// cluster is a Galera cluster that the run has to itself.
type cluster struct {
	nodes  []*node
	spread *galera.Spread
}

// node is a server of a cluster.
type node struct {
	galera.Node
	*server
}

// startCluster creates a cluster in folder and starts it. The caller closes the
// cluster, also after an error.
func startCluster(ctx context.Context, program, folder string) (*cluster, error) {
	plan, err := galera.New(folder)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(folder, 0o711); err != nil { //nolint:gosec // another user's folders are in there, and nobody can list it
		return nil, err
	}
	c := &cluster{}
	var addresses []string
	for i, n := range plan {
		s := &server{engine: testdb.Galera, dsn: galera.DSN(n.Address), quit: syscall.SIGTERM, program: program}
		s.joined = func(ctx context.Context) error {
			_, err := n.State(ctx)
			return err
		}
		s.Folder, s.User = n.Folder, "mysql"
		if s.Create, s.Launch, err = n.Commands(i == 0); err != nil {
			return c, err
		}
		if err := os.Mkdir(n.Folder, 0o700); err != nil {
			return c, err
		}
		c.nodes = append(c.nodes, &node{n, s})
		addresses = append(addresses, n.Address)
	}
	for i, n := range c.nodes {
		if err := n.begin(ctx); err != nil {
			return c, err
		}
		if i == 0 { // from now on it has others to join
			if _, n.Launch, err = n.Commands(false); err != nil {
				return c, err
			}
		}
	}
	c.spread, err = galera.NewSpread(addresses)
	return c, err
}

// dsn returns a DSN that connects to the nodes in turn.
func (c *cluster) dsn() string { return galera.DSN(c.spread.Address()) }

// address returns the address of a node, or one that leads to all nodes in turn.
func (c *cluster) address(dice *rand.Rand) string {
	if i := dice.IntN(len(c.nodes) + 1); i < len(c.nodes) {
		return c.nodes[i].Address
	}
	return c.spread.Address()
}

func (c *cluster) close() {
	if c.spread != nil {
		c.spread.Close()
	}
	for _, n := range c.nodes {
		n.end(syscall.SIGKILL) // nobody reads its data again
	}
}

// settled waits until each node has all data and sees the others.
func (c *cluster) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, n := range c.nodes {
		if err := n.await(ctx, func(size int, err error) bool { return err == nil && size == len(c.nodes) }); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a node has the wanted state.
func (n *node) await(ctx context.Context, wanted func(size int, err error) bool) error {
	for {
		size, err := n.State(ctx)
		if wanted(size, err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s sees %d nodes: %w", n.Name, size, errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func hasNodes(r *Run) bool { return r.db.cluster != nil }

// nodeFaults are the faults of one node of the run's own cluster.
var nodeFaults = []fault{
	// The node has lost what it had not written, and copies all data from another.
	{"kill a node", hasNodes, onNode(func(ctx context.Context, _ *Run, n *node, _ *rand.Rand) error {
		return n.restart(context.WithoutCancel(ctx), syscall.SIGKILL)
	})},
	// The node gets the transactions that it missed.
	{"restart a node", hasNodes, onNode(func(ctx context.Context, _ *Run, n *node, _ *rand.Rand) error {
		return n.restart(context.WithoutCancel(ctx), n.quit)
	})},
	{"cut off a node", hasNodes, onNode(func(ctx context.Context, r *Run, n *node, dice *rand.Rand) error {
		after := context.WithoutCancel(ctx)
		if err := n.CutOff(after, true); err != nil {
			return err
		}
		apart, cancel := context.WithTimeout(after, startTime)
		defer cancel()
		err := n.await(apart, func(_ int, err error) bool { return err != nil })
		r.wait(ctx, span(dice, lease*2))
		return errors.Join(err, n.CutOff(after, false))
	})},
	// Long enough for the others to drop it from the cluster.
	{"pause a node", hasNodes, onNode(func(ctx context.Context, r *Run, n *node, dice *rand.Rand) error {
		if err := pause(n.process); err != nil {
			return err
		}
		r.wait(ctx, span(dice, lease*4))
		return resume(n.process)
	})},
}

// onNode injects a fault into a random node while no other node has one: without
// two of three nodes there is no majority.
func onNode(do func(context.Context, *Run, *node, *rand.Rand) error) func(context.Context, *Run, *rand.Rand) error {
	return func(ctx context.Context, r *Run, dice *rand.Rand) error {
		c := r.db.cluster
		n := c.nodes[dice.IntN(len(c.nodes))]
		if !r.db.mu.TryLock() {
			return errBusy
		}
		defer r.db.mu.Unlock()
		r.say("a fault in %s", n.Name)
		if err := errors.Join(do(ctx, r, n, dice), c.settled(context.WithoutCancel(ctx))); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		return nil
	}
}
