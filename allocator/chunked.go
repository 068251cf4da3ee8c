package allocator

// Chunked is a list by the index of a block, or by slot. A chunk is made when one of its places is needed, because a program may have
// very many blocks and release few of them. A list that grows copies none and leaves no garbage.
type Chunked[T any] []*[chunk]T

const chunk = 256

// At returns place i, which was made.
func (c Chunked[T]) At(i int32) *T { return &c[uint32(i)/chunk][uint32(i)%chunk] }

// has reports whether place i was made.
func (c Chunked[T]) has(i int32) bool { return int(i)/chunk < len(c) && c[i/chunk] != nil }

// MakePlace makes place i.
func (c *Chunked[T]) MakePlace(i int32) {
	for len(*c) <= int(i)/chunk {
		*c = append(*c, nil)
	}
	if (*c)[i/chunk] == nil {
		(*c)[i/chunk] = new([chunk]T)
	}
}
