package trace

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

// addEntry adds one frame to an index. When that is full it gets half as fine: all entries but the last stand for the
// same number of frames.
func addEntry(index []IndexEntry, one IndexEntry) []IndexEntry {
	if n := len(index); n > 1 && index[n-1].Frames < index[0].Frames {
		index[n-1].join(&one)
		return index
	}
	if len(index) == indexMax {
		index = halve(index)
	}
	return append(index, one)
}

// halve joins the entries of an index in pairs.
func halve(index []IndexEntry) []IndexEntry {
	short := index[:0]
	for i := 0; i < len(index); i += 2 {
		e := index[i]
		if i+1 < len(index) {
			e.join(&index[i+1])
		}
		short = append(short, e)
	}
	return short
}

// join adds the frames of the entry that follows.
func (e *IndexEntry) join(next *IndexEntry) {
	e.Frames, e.Events = e.Frames+next.Frames, e.Events+next.Events
	e.FirstNS, e.LastNS = min(e.FirstNS, next.FirstNS), max(e.LastNS, next.LastNS)
	if e.Summary == nil || next.Summary == nil {
		e.Summary = nil
		return
	}
	sum := *e.Summary // others may point to it
	sum.Add(next.Summary)
	e.Summary = &sum
}
