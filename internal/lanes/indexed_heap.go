package lanes

// indexedHeap is a heap for package container/heap. Each element stores its index, so that it can be moved or removed.
type indexedHeap[T placed[T]] []T

// placed is an element of an indexedHeap.
type placed[T any] interface {
	comesBefore(other T) bool
	at() *int // where the element stores its index
}

// notInHeap is the index of an element outside the heap.
const notInHeap = -1

func (h indexedHeap[T]) Len() int           { return len(h) }
func (h indexedHeap[T]) Less(i, j int) bool { return h[i].comesBefore(h[j]) }

func (h indexedHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].at(), *h[j].at() = i, j
}

// Push adds a T at the end.
func (h *indexedHeap[T]) Push(x any) {
	one, _ := x.(T)
	*one.at() = len(*h)
	*h = append(*h, one)
}

// Pop removes and returns the T at the end.
func (h *indexedHeap[T]) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*one.at() = notInHeap
	return one
}
