//go:build amd64 || arm64

package faults

import (
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/agiledragon/gomonkey/v2"
)

const canJump = true

// The clock stays where it jumped to for jumpEvery, and is off by up to
// jumpWidth either way.
const (
	jumpEvery = 200 * time.Millisecond
	jumpWidth = 36 * time.Hour
)

// replacement keeps what time.Now leads to: its code is no reference to that.
var replacement any //nolint:unused // it is not to be collected

// jumpClock makes the clock of this process jump from now on, as one does that an
// administrator sets. Only the time of day does: no clock of a system that
// measures how long something takes ever jumps.
//
// The runtime reads the clock without asking the system, so nothing outside the
// process can do this to it, and the code of time.Now is replaced.
func jumpClock(seed uint64) {
	replacement = gomonkey.ApplyFunc(time.Now, func() time.Time {
		now := trueTime()
		dice := rand.New(rand.NewPCG(seed, uint64(now.Sub(started)/jumpEvery))) //nolint:gosec // not negative
		return shifted(now, time.Duration(dice.Int64N(int64(2*jumpWidth)))-jumpWidth)
	})
}

// shifted moves the time of day of t and leaves its monotonic reading as it is,
// which time's own functions never do. A time that has both keeps the seconds of
// the former above 30 bits of nanoseconds.
func shifted(t time.Time, by time.Duration) time.Time {
	*(*int64)(unsafe.Pointer(&t)) += int64(by/time.Second) << 30 //nolint:gosec // there is no other way
	return t
}
