package falldue

// NewOn is New on a server that the test has probed, or made up.
var NewOn = newQueue
