package galera

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
)

// serve accepts connections, sends each the name of the server, and keeps it open.
func serve(t *testing.T, name string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(name + "\n"))
		}
	}()
	return l.Addr().String()
}

func TestSpreadConnectsToEachServerInTurnAndSkipsTheDead(t *testing.T) {
	t.Parallel()
	dead, err := freeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSpread([]string{serve(t, "one"), dead[0], serve(t, "two")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	reached := map[string]int{}
	var last net.Conn
	for range 6 {
		conn, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		last = conn
		t.Cleanup(func() { _ = conn.Close() })
		name, err := bufio.NewReader(last).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		reached[name]++
	}
	if reached["one\n"] != 2 || reached["two\n"] != 4 {
		t.Errorf("six connections reached %v; want two at the first, and four at the last, which takes those of the dead one", reached)
	}
	s.Close()
	if _, err := last.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection outlived the spread: %v", err)
	}
}
