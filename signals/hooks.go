package signals

import "github.com/falldue/falldue"

// JoinHooks returns hooks that call the hooks of each set, in the order of the list: a Config has room
// for one set. A hook that no set has stays nil, and costs nothing. A panic of one hook does not
// keep the worker from calling the next one.
func JoinHooks(list ...falldue.Hooks) (joined falldue.Hooks) {
	for _, h := range list {
		joined.Event = join(joined.Event, h.Event)
		joined.Sweep = join(joined.Sweep, h.Sweep)
		joined.Claim = join(joined.Claim, h.Claim)
		joined.Settle = join(joined.Settle, h.Settle)
		joined.Extend = join(joined.Extend, h.Extend)
		joined.Overtime = join(joined.Overtime, h.Overtime)
		joined.Trouble = join(joined.Trouble, h.Trouble)
	}
	return joined
}

// join returns a function that calls first and then second. Each may be nil.
func join[T any](first, second func(T)) func(T) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(v T) {
		defer second(v)
		first(v)
	}
}
