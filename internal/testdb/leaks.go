package testdb

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leaksAfter is how long goroutines may need to end after the tests. On a busy machine a driver
// takes seconds to give up a connection.
const leaksAfter = 30 * time.Second

// Main runs the tests of a package for its TestMain, as [SetParallel] says. They fail if goroutines stay.
func Main(m *testing.M, opts ...goleak.Option) {
	SetParallel()
	code := m.Run()
	closePostgresConns()
	if code == 0 {
		err := goleak.Find(opts...) // it tries for a second or two
		for begun := time.Now(); err != nil && time.Since(begun) < leaksAfter; {
			err = goleak.Find(opts...)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// SetParallel makes twelve tests of the package run at a time, unless -parallel says otherwise. They
// mostly wait, for a server or for a lease to end, so that more of them run than there are processors.
func SetParallel() {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		_ = flag.Set("test.parallel", "12")
	}
}
