//go:build !linux || !(amd64 || arm64)

package faults

import "time"

const canJump = false

func jumpClock(uint64) { panic("its clock cannot be made to jump") }

func shiftClock(time.Duration) { panic("its clock cannot be moved") }
