//go:build !linux || !(amd64 || arm64)

package faults

const canJump = false

func jumpClock(uint64) { panic("its clock cannot be made to jump") }
