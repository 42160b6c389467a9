package galera

import (
	"io"
	"net"
	"sync"
)

// Spread is a balancer: it forwards each connection to the next of its addresses. It
// has no health checks: it skips servers that do not accept the connection, but
// not a node without a majority.
type Spread struct {
	listener  net.Listener
	addresses []string

	mu    sync.Mutex
	next  int
	conns map[net.Conn]bool // open connections; nil after Close
	work  sync.WaitGroup
}

// NewSpread listens on a free port of the loopback interface.
func NewSpread(addresses []string) (*Spread, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Spread{listener: l, addresses: addresses, conns: map[net.Conn]bool{}}
	s.work.Go(s.accept)
	return s, nil
}

// Address returns the address on which s listens.
func (s *Spread) Address() string { return s.listener.Addr().String() }

// Close closes all connections and refuses new ones.
func (s *Spread) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.work.Wait()
}

func (s *Spread) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return // s was closed
		}
		s.work.Go(func() { s.serve(client) })
	}
}

// serve copies data in both directions, until one end closes.
func (s *Spread) serve(client net.Conn) {
	defer s.closeConn(client)
	server := s.dial()
	if server == nil || !s.track(client) || !s.track(server) {
		return
	}
	defer s.closeConn(server)
	s.work.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close() // which ends the other direction
	})
	_, _ = io.Copy(client, server)
}

// track adds a connection to those that Close closes. After Close it closes the
// connection itself and returns false.
func (s *Spread) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = true
	return true
}

func (s *Spread) closeConn(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// dial connects to the next address that accepts a connection, or returns nil.
func (s *Spread) dial() net.Conn {
	s.mu.Lock()
	s.next++
	first := s.next
	s.mu.Unlock()
	for i := range s.addresses {
		if conn, err := net.Dial("tcp", s.addresses[(first+i)%len(s.addresses)]); err == nil {
			return conn
		}
	}
	return nil
}
