package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// proxyArgument is the argument that makes this program a proxy.
const proxyArgument = "proxy"

// proxyConfig is the argument of a proxy, which is this program, run again: a process of its own,
// so that worker and proxy don't wait for each other's goroutines.
type proxyConfig struct {
	Server string        // its address, as host:port
	Delay  time.Duration // of each direction
}

// startProxy starts a proxy in front of the server that adds a round trip to each question and its answer.
// It returns the proxy's address, and the function that ends it.
func startProxy(ctx context.Context, server string, roundTrip time.Duration) (address string, stop func(), err error) {
	argument, err := json.Marshal(proxyConfig{server, roundTrip / 2})
	if err != nil {
		return "", nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, program, proxyArgument, string(argument))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _, _ = in.Close(), cmd.Wait() }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("proxy: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

// runProxy is the main function of a proxy. It writes its address, and works until its standard input ends.
func runProxy(ctx context.Context, argument string) error {
	var cfg proxyConfig
	if err := json.Unmarshal([]byte(argument), &cfg); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = listener.Close()
	}()
	fmt.Println(listener.Addr())
	return newDelays(cfg.Delay).serve(ctx, listener, cfg.Server)
}

const (
	// maxOnTheWay is how many chunks of a direction may be on their way. It bounds the memory of a
	// direction whose receiver reads nothing, and is too high to limit the throughput of others.
	maxOnTheWay = 4096
	// chunkSize is the greatest size of a chunk.
	chunkSize = 32 << 10
)

// delays delivers chunks of bytes a while after they were sent, in their order. A direction of a connection
// may have many chunks on their way, as on a long cable: a delay limits no throughput.
type delays struct {
	delay time.Duration
	sent  chan chunk // of all connections, in the order of their due times, since all have the same delay
}

// chunk is what a direction of a connection carries at a time.
type chunk struct {
	due  time.Time
	data []byte // nil at the end of the direction
	to   chan<- []byte
}

func newDelays(delay time.Duration) *delays {
	d := &delays{delay, make(chan chunk, 16*maxOnTheWay)}
	go d.deliver()
	return d
}

// deliver passes on each chunk when it is due.
func (d *delays) deliver() {
	runtime.LockOSThread() // for sleepUntil
	for c := range d.sent {
		sleepUntil(c.due)
		c.to <- c.data // never waits, see carry
	}
}

// serve joins the connections of a listener with a server, until the listener is closed.
func (d *delays) serve(ctx context.Context, listener net.Listener, server string) error {
	for {
		near, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			far, err := new(net.Dialer).DialContext(ctx, "tcp", server)
			if err != nil {
				_ = near.Close()
				return
			}
			go d.carry(far, near)
			d.carry(near, far)
		}()
	}
}

// carry carries what it reads from one connection to another, until the first ends. Then it closes the
// second.
func (d *delays) carry(from, to net.Conn) {
	onTheWay, arrived := make(chan struct{}, maxOnTheWay), make(chan []byte, maxOnTheWay)
	go func() {
		var err error
		for data := range arrived {
			if data == nil {
				break
			}
			if err == nil {
				_, err = to.Write(data)
			}
			<-onTheWay
		}
		_ = to.Close()
	}()
	buffer := make([]byte, chunkSize)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			onTheWay <- struct{}{}
			d.send(append([]byte{}, buffer[:n]...), arrived)
		}
		if err != nil {
			onTheWay <- struct{}{}
			d.send(nil, arrived)
			return
		}
	}
}

func (d *delays) send(data []byte, to chan<- []byte) {
	d.sent <- chunk{time.Now().Add(d.delay), data, to}
}

var errNoAddress = errors.New("the DSN has no host: must have one")

// addressIn returns the address, as host:port, in a DSN of an engine that has servers.
func addressIn(engine, dsn string) (string, error) {
	if engine == postgres {
		u, err := url.Parse(dsn)
		switch {
		case err != nil:
			return "", err
		case u.Hostname() == "":
			return "", errNoAddress
		case u.Port() == "":
			return net.JoinHostPort(u.Hostname(), "5432"), nil
		}
		return u.Host, nil
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	if cfg.Net != "tcp" {
		return "", errNoAddress
	}
	return cfg.Addr, nil
}

// through returns a database whose DSN leads to a proxy of its server.
func (db database) through(proxy string) (database, error) {
	db.far = true
	if db.server.engine == postgres {
		u, err := url.Parse(db.dsn)
		if err != nil {
			return db, err
		}
		u.Host = proxy
		db.dsn = u.String()
		return db, nil
	}
	cfg, err := mysql.ParseDSN(db.dsn)
	if err != nil {
		return db, err
	}
	cfg.Addr = proxy
	db.dsn = cfg.FormatDSN()
	return db, nil
}

// farMark precedes the round trip in the name of a system that was measured through a proxy.
const farMark = " +"

// nearOf returns the name of a system that was measured through a proxy as it is without one, and false for
// other systems.
func nearOf(system string) (near string, far bool) {
	near, _, far = strings.Cut(system, farMark)
	return near, far
}
