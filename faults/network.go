package faults

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// link is the connection of one process to the database: a proxy for each server,
// which can cut, stall or slow down what passes.
type link struct {
	proxies []*toxiproxy.Proxy
}

// newLink opens a link to the servers of a database on free ports of the loopback
// interface. The addresses of the servers are separated by commas.
func newLink(name, upstream string) (*link, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics write to its global logger
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &link{}
	for address := range strings.SplitSeq(upstream, ",") {
		l.proxies = append(l.proxies, toxiproxy.NewProxy(server, name, "127.0.0.1:0", address))
	}
	err := l.mend()
	return l, err
}

func (l *link) address() string {
	var addresses []string
	for _, p := range l.proxies {
		addresses = append(addresses, p.Listen)
	}
	return strings.Join(addresses, ",")
}

func (l *link) close() {
	if l != nil {
		l.cut()
	}
}

// cut closes all connections, and refuses new ones until mend.
func (l *link) cut() {
	for _, p := range l.proxies {
		p.Stop()
	}
}

func (l *link) mend() error {
	var wrong []error
	for _, p := range l.proxies {
		wrong = append(wrong, p.Start())
	}
	return errors.Join(wrong...)
}

// The two directions of a link.
const (
	requests = "upstream"
	answers  = "downstream"
)

// disturb makes a link misbehave in one direction until heal.
func (l *link) disturb(kind, direction string, attributes map[string]int) error {
	text, err := json.Marshal(map[string]any{"type": kind, "stream": direction, "attributes": attributes})
	if err != nil {
		return err
	}
	var wrong []error
	for _, p := range l.proxies {
		_, err := p.Toxics.AddToxicJson(strings.NewReader(string(text)))
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

func (l *link) heal() {
	for _, p := range l.proxies {
		p.Toxics.ResetToxics(context.Background())
	}
}
