//go:build amd64 || arm64

package faults

import (
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/agiledragon/gomonkey/v2"
)

const canJump = true

// The clock jumps every jumpEvery, and is wrong by up to jumpWidth in either
// direction.
const (
	jumpEvery = 200 * time.Millisecond
	jumpWidth = 36 * time.Hour
)

// replacement keeps the function that time.Now jumps to from being collected: the
// patched code is no reference that the garbage collector sees.
var replacement any //nolint:unused // it is not to be collected

// jumpClock makes the time of day of this process jump from now on, as when an
// administrator sets the clock. The monotonic clock does not jump, since that of a
// real system does not either.
//
// It replaces the code of time.Now. Nothing outside the process can do this: the
// runtime reads the time without a system call, LD_PRELOAD does not act on static
// programs, and time namespaces have no time of day of their own.
func jumpClock(seed uint64) {
	moveClock(func(now time.Time) time.Duration {
		dice := rand.New(rand.NewPCG(seed, uint64(now.Sub(started)/jumpEvery))) //nolint:gosec // not negative
		return time.Duration(dice.Int64N(int64(2*jumpWidth))) - jumpWidth
	})
}

// shiftClock moves the time of day of this process by a duration, as [jumpClock] does.
func shiftClock(by time.Duration) {
	moveClock(func(time.Time) time.Duration { return by })
}

func moveClock(by func(now time.Time) time.Duration) {
	replacement = gomonkey.ApplyFunc(time.Now, func() time.Time {
		now := trueTime()
		return shifted(now, by(now))
	})
}

// shifted returns t with another time of day and the same monotonic reading, which
// no function of package time does. A time with both readings stores the seconds of
// the former above 30 bits of nanoseconds.
func shifted(t time.Time, by time.Duration) time.Time {
	*(*int64)(unsafe.Pointer(&t)) += int64(by/time.Second) << 30 //nolint:gosec // there is no other way
	return t
}
