package main

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestProxyDelaysEachRoundTrip asks a server that echoes, through a proxy in a process of its own.
func TestProxyDelaysEachRoundTrip(t *testing.T) {
	t.Parallel()
	server, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ended := make(chan error, 1)
	go func() {
		conn, err := server.Accept()
		if err == nil {
			_, err = io.Copy(conn, conn)
		}
		ended <- err
	}()
	const roundTrip = 20 * time.Millisecond
	address, stop, err := startProxy(t.Context(), server.Addr().String(), roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		begin, answer := time.Now(), make([]byte, 4)
		_, err := conn.Write([]byte("ping"))
		if _, unread := io.ReadFull(conn, answer); err != nil || unread != nil || string(answer) != "ping" {
			t.Fatalf("the answer is %q, errors %v and %v", answer, err, unread)
		}
		if took := time.Since(begin); took < roundTrip {
			t.Errorf("a round trip took %v, less than %v", took, roundTrip)
		}
	}
	if err := errors.Join(conn.Close(), <-ended); err != nil {
		t.Error(err) // the end of one connection ends the other
	}
}

// TestDelaysLimitNoThroughput sends many chunks, which are on their way at the same time.
func TestDelaysLimitNoThroughput(t *testing.T) {
	t.Parallel()
	const chunks, delay = 200, 50 * time.Millisecond
	d, arrived := newDelays(delay), make(chan []byte, chunks)
	begin := time.Now()
	for i := range chunks {
		d.send([]byte{byte(i)}, arrived)
	}
	for i := range chunks {
		got := <-arrived
		if took := time.Since(begin); got[0] != byte(i) || took < delay {
			t.Errorf("chunk %d has arrived after %v as number %d", got[0], took, i)
		}
	}
	if took := time.Since(begin); took > chunks*delay/2 {
		t.Errorf("%d chunks took %v, as if each waited for the one before", chunks, took)
	}
}

func TestDatabaseThroughAProxy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ engine, dsn, address, far string }{
		{postgres, "postgres://me:word@db/x?sslmode=disable", "db:5432", "postgres://me:word@127.0.0.1:9/x?sslmode=disable"},
		{mariaDB, "me:word@tcp(db:3307)/x?parseTime=true", "db:3307", "me:word@tcp(127.0.0.1:9)/x?parseTime=true"},
	} {
		address, err := addressIn(c.engine, c.dsn)
		if err != nil || address != c.address {
			t.Errorf("address %q, error %v, want %q", address, err, c.address)
		}
		db, err := database{server: &server{engine: c.engine}, dsn: c.dsn}.through("127.0.0.1:9")
		if err != nil || db.dsn != c.far || !db.far {
			t.Errorf("DSN %q, error %v, want %q", db.dsn, err, c.far)
		}
	}
	for engine, dsn := range map[string]string{postgres: "postgres:///x?host=/run/postgresql", mySQL: "me@unix(/run/mysqld.sock)/x"} {
		if _, err := addressIn(engine, dsn); !errors.Is(err, errNoAddress) {
			t.Errorf("%s: error %v", dsn, err)
		}
	}
	if err := run(t.Context(), &config{engine: sqlite, roundTrip: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "--round-trip") {
		t.Errorf("error %v on SQLite, which has no server", err)
	}
}

// TestTableShowsTheCostOfTheRoundTrip: each far system stands behind the same near system, and has a
// column with the ratio.
func TestTableShowsTheCostOfTheRoundTrip(t *testing.T) {
	t.Parallel()
	c, all := config{roundTrip: time.Millisecond}, results{}
	for _, system := range []string{rawName, tunedName} {
		for i, far := range c.distances() {
			all.add(postgres, "drain_kept", system+far, float64(100-30*i))
		}
	}
	if got := all.systems(); !slices.Equal(got, []string{"falldue", "falldue +1ms", "raw", "raw +1ms"}) {
		t.Errorf("systems %q", got)
	}
	text := tableOf(all, all.systems()).RenderCSV()
	if !strings.Contains(text, ",falldue +1ms / falldue,raw +1ms / raw\n") || !strings.HasSuffix(text, ",0.7,0.7") {
		t.Errorf("no ratios in %s", text)
	}
}
