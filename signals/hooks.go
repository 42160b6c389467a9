package signals

import "github.com/falldue/falldue"

// JoinHooks joins several sets of hooks into one, since a [falldue.Config] takes only one set. The hooks of all sets
// are called, in the order of the list. A hook that is nil in all sets stays nil, and costs nothing. After a panic of
// one hook, the worker still calls the next one.
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
