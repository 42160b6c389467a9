package testdb

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Proxy passes the connections of a test on to a server, until it silences them.
type Proxy struct {
	listener net.Listener
	server   string

	mu      sync.Mutex
	silence chan struct{} // closed when the present connections go silent
	frozen  bool          // new connections are silent too
	hangsUp atomic.Bool   // what is sent ends its connection
	conns   []net.Conn
}

// Through starts a proxy to the server of a DSN, and returns the DSN of the same
// database through the proxy. The proxy ends with the test.
func Through(t testing.TB, engine, dsn string) (*Proxy, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, silence: make(chan struct{})}
	var through string
	if engine == Postgres {
		var u *url.URL
		if u, err = postgresURL(dsn); err == nil {
			p.server, u.Host = u.Host, listener.Addr().String()
			through = u.String()
		}
	} else {
		var cfg *mysql.Config
		if cfg, err = mysql.ParseDSN(dsn); err == nil {
			p.server, cfg.Addr = cfg.Addr, listener.Addr().String()
			through = cfg.FormatDSN()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { p.accept(&all) })
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		all.Wait()
	})
	return p, through
}

// Silence makes the present connections silent: they stay open, and nothing that is
// sent arrives. New connections are passed on.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.silence)
	p.silence = make(chan struct{})
}

// Freeze makes all connections silent, and the new ones too.
func (p *Proxy) Freeze() {
	p.Silence()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// HangUp makes whatever is sent from now on, by a client or by the server, end its
// connection instead of arriving.
func (p *Proxy) HangUp() { p.hangsUp.Store(true) }

// Resume ends the effect of HangUp.
func (p *Proxy) Resume() { p.hangsUp.Store(false) }

func (p *Proxy) accept(all *sync.WaitGroup) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, client)
		silence, frozen := p.silence, p.frozen
		p.mu.Unlock()
		if frozen {
			continue
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, server)
		p.mu.Unlock()
		all.Go(func() { p.pass(client, server, silence) })
		all.Go(func() { p.pass(server, client, silence) })
	}
}

// pass copies from one connection to another until silence is closed. From then on it
// reads nothing, so that a client that sends much is blocked, as by a dead network.
func (p *Proxy) pass(from, to net.Conn, silence <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-silence:
			return
		default:
		}
		if n > 0 && p.hangsUp.Load() {
			_ = from.Close()
			_ = to.Close()
			return
		}
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}
