package falldue

// NewOn is like New, on a server that the test has probed or invented.
var NewOn = newQueue
