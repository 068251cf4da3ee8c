package allocator

// chain links entries from the oldest to the newest. An entry is in one list at a time.
type chain struct {
	Chunked[struct{ older, newer int32 }]
}

// ages is one list of a chain.
type ages struct {
	oldest, newest int32
	count          int
}

// addAsNewest makes an entry the newest of a list.
func (c *chain) addAsNewest(a *ages, i int32) {
	c.MakePlace(i)
	c.At(i).older, c.At(i).newer = a.newest, 0
	if a.newest != 0 {
		c.At(a.newest).newer = i
	} else {
		a.oldest = i
	}
	a.newest = i
	a.count++
}

// removeEntry takes an entry out of its list.
func (c *chain) removeEntry(a *ages, i int32) {
	l := c.At(i)
	if l.older != 0 {
		c.At(l.older).newer = l.newer
	} else {
		a.oldest = l.newer
	}
	if l.newer != 0 {
		c.At(l.newer).older = l.older
	} else {
		a.newest = l.older
	}
	l.older, l.newer = 0, 0
	a.count--
}
