package tasktest

import "time"

func init() { maxRunning = 200 * time.Millisecond }
