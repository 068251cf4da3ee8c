package carve

import (
	"errors"
	"math/bits"
)

// marks is a set of numbers below a bound. It finds the member next to a number in as many steps as the bound has
// digits to the base 64. Each bit of a level shows that a word of the level below is not 0.
type marks [][]uint64

const digit = 6 // bits

func newMarks(bound int) (m marks) {
	for bound > 0 {
		bound = (bound + 1<<digit - 1) >> digit
		m = append(m, make([]uint64, bound))
		if bound == 1 {
			break
		}
	}
	return m
}

func (m marks) set(i int) {
	for _, words := range m {
		word := &words[i>>digit]
		was := *word
		*word |= 1 << (i & (1<<digit - 1))
		if was != 0 {
			return
		}
		i >>= digit
	}
}

func (m marks) clear(i int) {
	for _, words := range m {
		word := &words[i>>digit]
		*word &^= 1 << (i & (1<<digit - 1))
		if *word != 0 {
			return
		}
		i >>= digit
	}
}

// nextAbove returns the lowest number in the set above i, -1 when there is none.
func (m marks) nextAbove(i int) int {
	for level, words := range m {
		// Shifts of 64 give 0.
		if word := words[i>>digit] >> (i & (1<<digit - 1)) >> 1; word != 0 {
			i += 1 + bits.TrailingZeros64(word)
			for level--; level >= 0; level-- {
				i = i<<digit | bits.TrailingZeros64(m[level][i])
			}
			return i
		}
		i >>= digit
	}
	return -1
}

// nextBelow returns the highest number in the set below i, -1 when there is none.
func (m marks) nextBelow(i int) int {
	for level, words := range m {
		if word := words[i>>digit] & (1<<(i&(1<<digit-1)) - 1); word != 0 {
			i = i>>digit<<digit | (bits.Len64(word) - 1)
			for level--; level >= 0; level-- {
				i = i<<digit | (bits.Len64(m[level][i]) - 1)
			}
			return i
		}
		i >>= digit
	}
	return -1
}

// eachNumber yields the numbers in order.
func (m marks) eachNumber(yield func(int) bool) {
	if len(m) == 0 {
		return
	}
	for index, word := range m[0] {
		for ; word != 0; word &= word - 1 {
			if !yield(index<<digit | bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

func (m marks) count() (n int) {
	for range m.eachNumber {
		n++
	}
	return n
}

func (m marks) validate() error {
	for level := 1; level < len(m); level++ {
		for index, word := range m[level-1] {
			if word != 0 != (m[level][index>>digit]>>(index&(1<<digit-1))&1 != 0) {
				return errors.New("a level of marks differs from the one below")
			}
		}
	}
	return nil
}
