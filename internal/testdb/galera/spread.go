package galera

import (
	"io"
	"net"
	"sync"
)

// Spread leads each connection to the next of some addresses, like a balancer
// that does not ask its servers how they are: it passes over those that do not
// answer, but not over a node without a majority.
type Spread struct {
	listener  net.Listener
	addresses []string

	mu    sync.Mutex
	next  int
	conns map[net.Conn]bool // nil when it is closed
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

// Address is where it listens.
func (s *Spread) Address() string { return s.listener.Addr().String() }

// Close closes all connections, and refuses new ones.
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
			return // it was closed
		}
		s.work.Go(func() { s.serve(client) })
	}
}

// serve passes what either end says to the other, until one closes.
func (s *Spread) serve(client net.Conn) {
	defer s.drop(client)
	server := s.dial()
	if server == nil || !s.keep(client) || !s.keep(server) {
		return
	}
	defer s.drop(server)
	s.work.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close() // which ends the other direction
	})
	_, _ = io.Copy(client, server)
}

// keep makes a connection one that Close closes. Where that was called already
// it does so itself, and returns false.
func (s *Spread) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = true
	return true
}

func (s *Spread) drop(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// dial connects to the next address that answers, or returns nil.
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
