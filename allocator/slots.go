package allocator

import "math/bits"

// slots numbers free blocks as Futhark's free list does: a block takes the lowest empty slot, and draining goes from
// the lowest slot up (seed 000; rts/c/free_list.h). Bitmaps over bitmaps find both in a step per factor of 64.
type slots struct {
	blocks []int32    // by slot, 0: empty
	taken  [][]uint64 // levels: [0] has a bit for each taken slot, each further level a bit for each word of the level before that is not 0
	room   [][]uint64 // the same for empty slots
}

// occupySlot gives block i the lowest empty slot.
func (s *slots) occupySlot(i int32) (slot int32) {
	slot = lowestBit(s.room)
	if slot < 0 {
		slot = int32(len(s.blocks))
		s.blocks = append(s.blocks, 0)
		s.taken, s.room = growForBit(s.taken, slot), growForBit(s.room, slot)
	}
	s.blocks[slot] = i
	setBit(s.taken, slot)
	clearBit(s.room, slot)
	return slot
}

// vacateSlot empties a slot.
func (s *slots) vacateSlot(slot int32) {
	s.blocks[slot] = 0
	clearBit(s.taken, slot)
	setBit(s.room, slot)
}

// blockInLowestSlot returns the block in the lowest slot, 0 when there is none.
func (s *slots) blockInLowestSlot() int32 {
	if slot := lowestBit(s.taken); slot >= 0 {
		return s.blocks[slot]
	}
	return 0
}

// growForBit makes room for a bit at a position that is at most one beyond the present ones.
func growForBit(levels [][]uint64, bit int32) [][]uint64 {
	for l := 0; ; l++ {
		bit >>= 6
		if l == len(levels) {
			levels = append(levels, []uint64{0})
			if l > 0 && levels[l-1][0] != 0 {
				levels[l][0] = 1
			}
		}
		for int(bit) >= len(levels[l]) {
			levels[l] = append(levels[l], 0)
		}
		if len(levels[l]) == 1 {
			return levels
		}
	}
}

func setBit(levels [][]uint64, bit int32) {
	for l := range levels {
		levels[l][bit>>6] |= 1 << (bit & 63)
		bit >>= 6
	}
}

func clearBit(levels [][]uint64, bit int32) {
	for l := range levels {
		levels[l][bit>>6] &^= 1 << (bit & 63)
		if levels[l][bit>>6] != 0 {
			return
		}
		bit >>= 6
	}
}

// lowestBit returns the position of the lowest bit, -1 when there is none.
func lowestBit(levels [][]uint64) (bit int32) {
	for l := len(levels) - 1; l >= 0; l-- {
		word := levels[l][bit]
		if word == 0 {
			return -1
		}
		bit = bit<<6 | int32(bits.TrailingZeros64(word))
	}
	if len(levels) == 0 {
		return -1
	}
	return bit
}
