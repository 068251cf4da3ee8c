package stack

import "slices"

// Unwind information is found by the binary search table in .eh_frame_hdr and read one entry at a time. We do not use a
// parser of whole sections such as delve's package frame: it needs .eh_frame in memory (31 ms and 16 MiB for libLLVM-14),
// assumes entries in the order of their addresses, which the C library's are not, rejects a file for one unknown
// augmentation, forgets what DW_CFA_restore restores, and allocates as much memory as a bad file claims. libgcc's
// _Unwind_Find_FDE uses the same table, so the shim does not find what is missing there either.

const (
	entryMax = 1 << 17 // largest accepted entry, bytes; of 2700 programs and libraries the largest has 9984
	cieMax   = 1 << 12
)

// table is the binary search table of an image: pairs of addresses of a function and its entry, relative to the header.
type table struct {
	first uint64 // of the first pair
	count uint64
	wide  bool // numbers of 8 bytes, not 4
}

// findUnwindTable reads the head of .eh_frame_hdr. An image without a search table counts as one without unwind information.
// libgcc would scan all entries, but linkers for amd64 omit the table only if they cannot parse those.
func (i *image) findUnwindTable() {
	var raw [32]byte
	c := cursor{data: raw[:i.readAtAddress(raw[:], i.header)], start: i.header}
	version, frames, count, pairs := c.readU8(), c.readU8(), c.readU8(), c.readU8()
	c.readPointer(frames, i.header)
	if i.header == 0 || version != 1 || count == pointerOmitted || frames == pointerOmitted {
		return
	}
	number := c.readPointer(count, i.header)
	if c.short {
		return
	}
	switch pairs {
	case relativeToHeader | 0x0b:
		i.table = table{first: i.header + uint64(c.at), count: number}
	case relativeToHeader | 0x0c:
		i.table = table{first: i.header + uint64(c.at), count: number, wide: true}
	}
}

// readUnwindTablePair reads one pair of the table, as addresses in the file.
func (i *image) readUnwindTablePair(index uint64) (function, entry uint64, ok bool) {
	size, form := uint64(8), uint8(0x0b)
	if i.table.wide {
		size, form = 16, 0x0c
	}
	var raw [16]byte
	c := cursor{data: raw[:i.readAtAddress(raw[:size], i.table.first+index*size)]}
	function, entry = i.header+c.readValue(form), i.header+c.readValue(form)
	return function, entry, !c.short
}

// searchUnwindTable returns the address of the last entry that begins at pc or before.
func (i *image) searchUnwindTable(pc uint64) (entry uint64, ok bool) {
	for low, high := uint64(0), i.table.count; low < high; {
		middle := low + (high-low)/2
		function, at, readable := i.readUnwindTablePair(middle)
		if !readable {
			return 0, false
		}
		if pc < function {
			high = middle
		} else {
			low, entry, ok = middle+1, at, true
		}
	}
	return entry, ok
}

// common is a CIE: what several entries have in common.
type common struct {
	code       uint64 // factor of code addresses
	data       int64  // factor of offsets
	ra         uint64 // column of the return address
	pointers   uint8  // encoding of addresses
	sized      bool   // entries have the length of their augmentation
	signal     bool   // the frame of a signal handler's return: the pc above it is not a return address
	initialize []byte
}

// function is an FDE: the unwind information of one function.
type function struct {
	begin  uint64
	common common
	code   []byte
}

// readFrameEntry reads the length of an entry at an address of .eh_frame, and then its content after the length.
func (i *image) readFrameEntry(address uint64, most uint64) (cursor, bool) {
	var raw [12]byte
	c := cursor{data: raw[:i.readAtAddress(raw[:], address)]}
	length := uint64(c.readU32())
	if length == 0xffffffff {
		length = c.readU64()
	}
	if c.short || length < 4 || length > most {
		return cursor{}, false
	}
	body := make([]byte, length)
	address += uint64(c.at)
	return cursor{data: body, start: address}, i.readAtAddress(body, address) == len(body)
}

// unwindEntryAt returns the entry for the code at pc.
func (i *image) unwindEntryAt(pc uint64) (f function, ok bool) {
	at, ok := i.searchUnwindTable(pc)
	if !ok {
		return f, false
	}
	c, ok := i.readFrameEntry(at, entryMax)
	if !ok {
		return f, false
	}
	place := c.start
	back := uint64(c.readU32()) // distance of the CIE before this place
	if f.common, ok = i.readCIE(place - back); !ok || back == 0 {
		return f, false
	}
	f.begin = c.readPointer(f.common.pointers, 0)
	size := c.readValue(f.common.pointers)
	if f.common.sized {
		c.readBlock()
	}
	if c.short || pc-f.begin >= size {
		return f, false
	}
	f.code = c.data[c.at:]
	return f, true
}

func (i *image) readCIE(address uint64) (c common, ok bool) {
	in, ok := i.readFrameEntry(address, cieMax)
	if !ok || in.readU32() != 0 {
		return c, false
	}
	version, augmentation := in.readU8(), in.readText()
	if !slices.Contains([]uint8{1, 3}, version) {
		return c, false
	}
	c.code, c.data = in.readULEB(), in.readSLEB()
	if version == 1 {
		c.ra = uint64(in.readU8())
	} else {
		c.ra = in.readULEB()
	}
	if !c.readAugmentation(&in, augmentation) || in.short {
		return c, false
	}
	c.initialize = in.data[in.at:]
	return c, true
}

// readAugmentation reads the data that the letters of augmentation announce. It skips the rest from the first unknown letter on.
func (c *common) readAugmentation(in *cursor, augmentation string) bool {
	if augmentation == "" {
		return true
	}
	if augmentation[0] != 'z' {
		return false
	}
	c.sized = true
	data := in.readBlock()
	extra := cursor{data: data, start: in.start + uint64(in.at-len(data))}
	for _, letter := range augmentation[1:] {
		switch letter {
		case 'R':
			c.pointers = extra.readU8()
		case 'L':
			extra.readU8()
		case 'P':
			extra.readValue(extra.readU8())
		case 'S':
			c.signal = true
		default:
			return true
		}
	}
	return !extra.short
}
