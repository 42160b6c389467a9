package falldue

// placeHeap is a heap of package container/heap whose elements know their places in it, so
// that each can be moved or removed.
type placeHeap[T placed[T]] []T

// placed is an element of a placeHeap.
type placed[T any] interface {
	comesBefore(other T) bool
	at() *int // where it keeps its place
}

// nowhere is the place of what is in no heap.
const nowhere = -1

func (h placeHeap[T]) Len() int           { return len(h) }
func (h placeHeap[T]) Less(i, j int) bool { return h[i].comesBefore(h[j]) }

func (h placeHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].at(), *h[j].at() = i, j
}

// Push adds a T at the end.
func (h *placeHeap[T]) Push(x any) {
	one, _ := x.(T)
	*one.at() = len(*h)
	*h = append(*h, one)
}

// Pop removes and returns the T at the end.
func (h *placeHeap[T]) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*one.at() = nowhere
	return one
}
