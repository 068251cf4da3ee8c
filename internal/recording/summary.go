package recording

import (
	"encoding/binary"
	"hash/crc32"
)

// Summary sums up a block, for readers that do not unpack it. The package only stores it. InUse, Cached and Cooling are the bytes
// (docs/METRICS.md) at the moment when most was in use, from the end of the block before to the end of this one; the other fields
// are counts within the block.
type Summary struct {
	InUse    uint64 `json:"in_use,omitempty"`
	Cached   uint64 `json:"cached,omitempty"`
	Cooling  uint64 `json:"cooling,omitempty"`
	Hits     uint64 `json:"hits,omitempty"`
	Misses   uint64 `json:"misses,omitempty"`
	Creates  uint64 `json:"creates,omitempty"`
	Releases uint64 `json:"releases,omitempty"`
	Lost     uint64 `json:"lost,omitempty"` // events
}

// JoinNext joins the summary of the block that follows.
func (s *Summary) JoinNext(next *Summary) {
	if next.InUse > s.InUse {
		s.InUse, s.Cached, s.Cooling = next.InUse, next.Cached, next.Cooling
	}
	s.Hits += next.Hits
	s.Misses += next.Misses
	s.Creates += next.Creates
	s.Releases += next.Releases
	s.Lost += next.Lost
}

// A summary is a skippable frame of zstd (RFC 8878 §3.1.2) in front of the packed events: magic and length, a checksum
// of what follows it, the eight numbers. A later version may append to it.
const (
	skippableMagic = 0x184D2A50
	skippableHead  = 8
	summaryNumbers = 8
	summarySize    = skippableHead + 4 + 8*summaryNumbers
	summaryMax     = 4096 // that a reader takes for one
)

// appendFrame adds the summary's frame to b.
func (s *Summary) appendFrame(b []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, skippableMagic)
	b = binary.LittleEndian.AppendUint32(b, summarySize-skippableHead)
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, v := range [summaryNumbers]uint64{s.InUse, s.Cached, s.Cooling, s.Hits, s.Misses, s.Creates, s.Releases, s.Lost} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	sum := crc32.Checksum(b[start+skippableHead+4:], castagnoli)
	binary.LittleEndian.PutUint32(b[start+skippableHead:], sum)
	return b
}

// lengthOfSummaryFrame returns the length of the skippable frame that b begins with, 0 when it begins with none that could be
// a summary.
func lengthOfSummaryFrame(b []byte) int {
	if len(b) < skippableHead || binary.LittleEndian.Uint32(b) != skippableMagic {
		return 0
	}
	n := int64(binary.LittleEndian.Uint32(b[4:])) + skippableHead
	if n < summarySize || n > summaryMax {
		return 0
	}
	return int(n)
}

// decode reads the summary that a payload begins with; false when it begins with none that is whole.
func (s *Summary) decode(b []byte) bool {
	n := lengthOfSummaryFrame(b)
	if n == 0 || n > len(b) {
		return false
	}
	b = b[skippableHead:n]
	if binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return false
	}
	for i, v := range []*uint64{&s.InUse, &s.Cached, &s.Cooling, &s.Hits, &s.Misses, &s.Creates, &s.Releases, &s.Lost} {
		*v = binary.LittleEndian.Uint64(b[4+8*i:])
	}
	return true
}

// IndexEntry locates a run of event frames: one, or in long recordings several.
type IndexEntry struct {
	Offset  int64  `json:"offset"` // of the first frame in the file
	Frames  uint64 `json:"frames"`
	Events  uint64 `json:"events"`
	FirstNS uint64 `json:"first_ns"` // earliest time in these frames
	LastNS  uint64 `json:"last_ns"`  // latest
	// Summary is of all these frames; nil when one of them has none.
	Summary *Summary `json:"summary,omitempty"`
}

// indexMax bounds the index: a session writes four frames a second for as long as it runs, while the footer must
// stay within what a reader looks through at the end of a file.
const indexMax = 8192

// addIndexEntry adds one frame to an index. A full index is halved first: all entries but the last stand for the same number of
// frames.
func addIndexEntry(index []IndexEntry, one IndexEntry) []IndexEntry {
	if n := len(index); n > 1 && index[n-1].Frames < index[0].Frames {
		index[n-1].joinNext(&one)
		return index
	}
	if len(index) == indexMax {
		index = joinPairsOfIndex(index)
	}
	return append(index, one)
}

// joinPairsOfIndex joins the entries of an index in pairs.
func joinPairsOfIndex(index []IndexEntry) []IndexEntry {
	short := index[:0]
	for i := 0; i < len(index); i += 2 {
		e := index[i]
		if i+1 < len(index) {
			e.joinNext(&index[i+1])
		}
		short = append(short, e)
	}
	return short
}

// joinNext adds the frames of the entry that follows.
func (e *IndexEntry) joinNext(next *IndexEntry) {
	e.Frames, e.Events = e.Frames+next.Frames, e.Events+next.Events
	e.FirstNS, e.LastNS = min(e.FirstNS, next.FirstNS), max(e.LastNS, next.LastNS)
	if e.Summary == nil || next.Summary == nil {
		e.Summary = nil
		return
	}
	sum := *e.Summary // others may point to it
	sum.JoinNext(next.Summary)
	e.Summary = &sum
}
