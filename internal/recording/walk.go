package recording

import (
	"bytes"
	"errors"
	"io"
	"slices"
)

// Block is a run of event frames as it can be seen without unpacking it. Times are CLOCK_MONOTONIC ns.
type Block struct {
	Offset     int64 // of the first frame in the file
	Frames     uint64
	Events     uint64
	FirstNS    uint64 // earliest time in these frames
	LastNS     uint64 // latest
	Summary    Summary
	HasSummary bool // false when one of the frames has none, as in recordings of versions 1 and 2
}

// Blocks returns the recording's blocks in the order of the file, at most 8192: one for each event frame, or in longer
// recordings one for several. They come from the footer, else from the heads of the frames, and no events are unpacked:
// what is damaged inside a frame is not noticed. It does not change what Next reads. Errors are of the file system.
func (r *Reader) Blocks() ([]Block, error) {
	index := r.index
	if index == nil {
		var err error
		if index, err = r.buildIndex(); err != nil {
			return nil, err
		}
	}
	blocks := make([]Block, len(index))
	for i, e := range index {
		blocks[i] = Block{Offset: e.Offset, Frames: e.Frames, Events: e.Events, FirstNS: e.FirstNS, LastNS: e.LastNS}
		if e.Summary != nil {
			blocks[i].Summary, blocks[i].HasSummary = *e.Summary, true
		}
	}
	return blocks, nil
}

// buildIndex makes an index from the heads.
func (r *Reader) buildIndex() ([]IndexEntry, error) {
	var index []IndexEntry
	w := r.newWalker()
	for w.nextFrame() {
		if w.head.kind != frameEvents {
			continue
		}
		e := IndexEntry{w.offset, 1, uint64(w.head.events), w.head.firstNS, w.head.lastNS, nil}
		var s Summary
		if s.decode(w.beginningOfPayload()) {
			e.Summary = &s
		}
		index = addIndexEntry(index, e)
	}
	return index, w.err
}

// looksMost bounds the entries of an index that are compared with the file: each may cost a seek of the disk.
const looksMost = 64

// indexIfMatchingFile returns an index if it fits the file, else nil: a footer may be another recording's. Of a long index it
// checks samples: errors in other entries show when these are used.
func (r *Reader) indexIfMatchingFile(index []IndexEntry) []IndexEntry {
	var events uint64
	before := r.first - 1
	every := len(index)/looksMost + 1
	for i := range index {
		e := &index[i]
		if e.Offset <= before || e.Frames == 0 || e.Offset >= r.size {
			return nil
		}
		if (i%every == 0 || i == len(index)-1) && !r.frameMatches(e) {
			return nil
		}
		before = e.Offset
		events += e.Events
	}
	if events != r.footer.Events || len(index) > indexMax {
		return nil
	}
	return index
}

// frameMatches reports whether the first frame of an entry is at the entry's offset.
func (r *Reader) frameMatches(e *IndexEntry) bool {
	var head frameHead
	var b [headSize]byte
	n, _ := r.file.ReadAt(b[:], e.Offset)
	return r.parseFrameHead(&head, b[:n], e.Offset) && head.kind == frameEvents && uint64(head.events) <= e.Events
}

// Torn describes the rest of a truncated recording, after its last whole frame.
type Torn struct {
	Bytes  int64  // that cannot be read
	LastNS uint64 // latest time of an event before, CLOCK_MONOTONIC; 0 when there is none
}

// LostAtEnd returns what a recording without a footer lost at its end, false if the recording ended in order. It unpacks nothing
// and does not change what Next reads. Errors are of the file system.
func (r *Reader) LostAtEnd() (Torn, bool, error) {
	if r.footer != nil {
		return Torn{}, false, nil
	}
	var t Torn
	end, w := r.first, r.newWalker()
	for w.nextFrame() {
		if w.offset+w.head.frameBytes() == r.size && !r.isFrameWhole(w.offset) {
			break // the kernel may have lost a part of what was written last
		}
		end = w.offset + w.head.frameBytes()
		if w.head.kind == frameEvents {
			t.LastNS = max(t.LastNS, w.head.lastNS)
		}
	}
	t.Bytes = r.size - end
	return t, true, w.err
}

// newReaderOfFile returns a reader of the same file at its start, which shares no changing state.
func (r *Reader) newReaderOfFile() *Reader {
	return &Reader{
		file: r.file, path: r.path, size: r.size, header: r.header, footer: r.footer, first: r.first, index: r.index,
		offset: r.first, zip: r.zip, processes: map[uint32]struct{}{},
	}
}

// isFrameWhole reports whether the frame at an offset is whole.
func (r *Reader) isFrameWhole(offset int64) bool {
	f := r.newReaderOfFile()
	f.offset = offset
	_, err := f.readFrame()
	return err == nil
}

// windowSize is what a walk reads at once: many small frames, or little more than the head of a large one.
const windowSize = 16 << 10

// walker goes from head to head.
type walker struct {
	r      *Reader
	window []byte
	from   int64 // of window in the file
	after  int64 // where the next frame should begin

	head   frameHead
	offset int64 // of head
	err    error // of the file system; ends the walk
}

func (r *Reader) newWalker() *walker { return &walker{r: r, after: r.first} }

// nextFrame goes to the next frame whose head is sound, and skips damage. In versions 1 and 2 only the checksum of the whole
// frame shows whether the head is sound.
func (w *walker) nextFrame() bool {
	for w.after < w.r.size {
		b := w.bytesAt(w.after, headSize)
		if w.err != nil {
			return false
		}
		if w.r.parseFrameHead(&w.head, b, w.after) && (w.r.header.Version >= 3 || w.r.isFrameWhole(w.after)) {
			w.offset = w.after
			w.after += w.head.frameBytes()
			return true
		}
		if !w.skipDamage() {
			return false
		}
	}
	return false
}

// skipDamage looks for the next possible head after a damaged one.
func (w *walker) skipDamage() bool {
	for at := w.after + 1; at < w.r.size; {
		b := w.bytesAt(at, len(frameMagic))
		if len(b) < len(frameMagic) || w.err != nil {
			return false
		}
		b = w.window[at-w.from:]
		if i := bytes.Index(b, frameMagic[:]); i >= 0 {
			w.after = at + int64(i)
			return true
		}
		at += int64(len(b) - len(frameMagic) + 1)
	}
	return false
}

// beginningOfPayload returns the beginning of the frame's payload: all of its summary, if it has one.
func (w *walker) beginningOfPayload() []byte {
	at, most := w.offset+headSize, int(w.head.packed)
	n := lengthOfSummaryFrame(w.bytesAt(at, min(skippableHead, most)))
	return w.bytesAt(at, min(n, most))
}

// bytesAt returns n bytes at an offset, less at the end of the file. n is at most windowSize.
func (w *walker) bytesAt(offset int64, n int) []byte {
	if offset < w.from || offset+int64(n) > w.from+int64(len(w.window)) {
		w.window = slices.Grow(w.window[:0], windowSize)[:windowSize]
		got, err := w.r.file.ReadAt(w.window, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			w.err = readError(err)
		}
		w.window, w.from = w.window[:got], offset
	}
	b := w.window[offset-w.from:]
	return b[:min(n, len(b))]
}
