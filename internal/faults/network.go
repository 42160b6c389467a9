package faults

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// link is the way of one process to the database: a proxy that can cut it,
// stall it or slow it down.
type link struct {
	proxy *toxiproxy.Proxy
}

// newLink opens a link to an address, on a free port of the loopback interface.
func newLink(name, upstream string) (*link, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics write to its global logger
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &link{toxiproxy.NewProxy(server, name, "127.0.0.1:0", upstream)}
	return l, l.proxy.Start()
}

func (l *link) address() string { return l.proxy.Listen }

func (l *link) close() {
	if l != nil {
		l.proxy.Stop()
	}
}

// cut closes all connections, and refuses new ones until it is mended.
func (l *link) cut() { l.proxy.Stop() }

func (l *link) mend() error { return l.proxy.Start() }

// The two directions of a link.
const (
	requests = "upstream"
	answers  = "downstream"
)

// trouble makes a link behave badly in one direction until heal.
func (l *link) trouble(kind, direction string, attributes map[string]int) error {
	text, err := json.Marshal(map[string]any{"type": kind, "stream": direction, "attributes": attributes})
	if err != nil {
		return err
	}
	_, err = l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	return err
}

func (l *link) heal() { l.proxy.Toxics.ResetToxics(context.Background()) }
