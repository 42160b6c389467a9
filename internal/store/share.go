package store

import (
	"cmp"

	"github.com/falldue/falldue/internal/storable"
)

// Turn identifies lanes that share their turns: the lanes of a kind whose keys have the same first part.
type Turn struct{ Kind, Key string }

// TurnOf returns the turn of a lane.
func TurnOf(at Lane) Turn { return Turn{at.Kind, storable.FirstPart(at.Key)} }

// Share sets how many of room tasks a claim may take from each source. The turns of a priority have shares by
// their weights, and the keys of a turn have equal parts of its share. A key may have several lanes, for example one for
// each number of attempts. A claim takes from these lanes in their order, so each lane may have the whole part of the key.
//
// A turn may have few tasks. So the turns that certainly have more tasks get the shares that they would have without
// the other turns. The other turns come before them, or have their shares in the next claim.
//
// No room is less than a [smallestShare]-th of the claim, since each lane costs the claim a search. The lanes that get
// nothing come first in the next claim.
func Share(sources []Source, room int) {
	for len(sources) > 0 {
		end := 1
		for end < len(sources) && sources[end].Priority == sources[0].Priority {
			end++
		}
		share(sources[:end], room)
		sources = sources[end:]
	}
}

// smallestShare is the divisor of the smallest share of a claim.
const smallestShare = 5

// share sets the rooms of sources of one priority.
func share(sources []Source, room int) {
	if len(sources) == 1 {
		sources[0].Room = room
		return
	}
	type keys struct{ all, more int }
	turns, all, more := make(map[Turn]keys, len(sources)), 0, 0 // with the weights of all turns, and of those with more
	seen := make(map[[2]string]bool, len(sources))              // kinds and keys; true if one of the lanes has more tasks
	for _, from := range sources {
		turn, key := turns[TurnOf(from.Lane)], [2]string{from.Kind, from.Key}
		before, known := seen[key]
		if !known {
			if turn.all++; turn.all == 1 {
				all += from.weight()
			}
		}
		if from.More && !before {
			if turn.more++; turn.more == 1 {
				more += from.weight()
			}
		}
		turns[TurnOf(from.Lane)], seen[key] = turn, before || from.More
	}
	for i, from := range sources {
		turn := turns[TurnOf(from.Lane)]
		of, keys := all, turn.all
		if from.More {
			of, keys = more, turn.more
		}
		sources[i].Room = max(part(part(room*from.weight(), of), keys), part(room, smallestShare))
	}
}

func (s Source) weight() int { return cmp.Or(s.Weight, 1) }

// part returns an n-th of a number of tasks, but no less than one task.
func part(tasks, n int) int { return max((tasks+n-1)/n, 1) }
