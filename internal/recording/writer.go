package recording

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/disk"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Writer appends records to a file. One goroutine uses it. After the first write error it writes nothing more and
// returns that error; the file is then a valid recording up to there.
type Writer struct {
	file   *disk.Writer
	err    error
	offset int64

	summarize   func() Summary // nil: blocks have none
	events      batch
	definitions batch // of those events, the ones that define
	packed      []byte
	footer      Footer
}

// batch is a frame of records that is being filled.
type batch struct {
	head  frameHead
	state codecState
	raw   []byte
}

func newBatch(kind frameType) batch {
	return batch{head: frameHead{kind: kind}, state: newState(Version)}
}

// appendRecord adds a record, which refers to those before it.
func (f *batch) appendRecord(r *wire.Record) {
	if f.head.events == 0 {
		f.head.firstNS, f.head.lastNS = r.Time, r.Time
	}
	f.raw = f.state.appendRecord(f.raw, r)
	f.head.events++
	f.head.firstNS = min(f.head.firstNS, r.Time)
	f.head.lastNS = max(f.head.lastNS, r.Time)
}

// clearForNextFrame starts the next frame.
func (f *batch) clearForNextFrame() {
	f.raw = f.raw[:0]
	f.head = frameHead{kind: f.head.kind}
	f.state = newState(Version)
}

// packer returns the encoder for the frames of all writers. It keeps no state between frames, so the window is one frame.
var packer = sync.OnceValue(func() *zstd.Encoder {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(cutRaw))
	if err != nil {
		panic(err) // the options contradict each other
	}
	return zip
})

// Create makes a recording file, which only this user may read: it holds paths and arguments. An existing one is replaced
// only with force, and only if it is a regular file that no other writer has open.
func Create(path string, h Header, force bool) (*Writer, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("create recording: %s is no regular file: use -o to name another", path)
		}
		flags = os.O_WRONLY | os.O_CREATE
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		return nil, fmt.Errorf("create recording: %s is a folder: use -o to name a file", path)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: use -f to overwrite it or -o to name another", path)
	}
	if err != nil {
		return nil, fmt.Errorf("create recording: %w: use -o to name a file that can be written", err)
	}
	if err := lockAndEmptyFile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("create recording: %s: %w", path, err), file.Close())
	}
	w := &Writer{file: disk.NewWriter(file), events: newBatch(frameEvents), definitions: newBatch(frameDefinitions)}
	h.Version = Version
	w.writeInOneCall(fileMagic[:])
	w.writeJSON(frameHeader, h)
	if w.err != nil {
		err := errors.Join(w.err, w.file.Close())
		if !force {
			// The file is ours and empty. A failure to remove it needs no second message.
			_ = os.Remove(path)
		}
		return nil, err
	}
	return w, nil
}

// lockAndEmptyFile makes a file this writer's alone, and empty, until it is closed.
func lockAndEmptyFile(file *os.File) error {
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return errors.New("another gpumemtop is writing it: use -o to name another")
	case err != nil && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.ENOLCK): // a file system without locks
		return err
	}
	return file.Truncate(0)
}

// SetSummarizer sets the function that summarizes a block: the events since its last call. Append, Flush and Close call it at the
// end of each block. Call SetSummarizer before the first Append.
func (w *Writer) SetSummarizer(summarize func() Summary) { w.summarize = summarize }

// Append adds a record. It reaches the file with the frame, at the latest with Flush.
func (w *Writer) Append(r *wire.Record) error {
	if w.err != nil {
		return w.err
	}
	w.events.appendRecord(r)
	if r.IsDefinition() {
		w.definitions.appendRecord(r)
	}
	if len(w.events.raw) >= cutRaw || w.events.head.events >= cutEvents {
		return w.Flush()
	}
	return nil
}

// Flush writes what was appended since the last frame.
func (w *Writer) Flush() error {
	head := &w.events.head
	if head.events == 0 || w.err != nil {
		return w.err
	}
	var summary *Summary
	if w.summarize != nil {
		s := w.summarize()
		summary = &s
	}
	w.addFrameToIndex(summary)
	w.packed = w.packed[:0]
	if w.definitions.head.events == 0 {
		w.appendPackedFrame(head, summary, w.events.raw)
	} else {
		// Both frames go out in one call: a crash leaves both or none.
		head.flags |= flagDefines
		w.appendPackedFrame(head, summary, w.events.raw)
		w.appendPackedFrame(&w.definitions.head, nil, w.definitions.raw)
		w.definitions.clearForNextFrame()
	}
	w.writeInOneCall(w.packed)
	w.events.clearForNextFrame()
	return w.err
}

// addFrameToIndex notes the frame that is about to be written.
func (w *Writer) addFrameToIndex(summary *Summary) {
	head := &w.events.head
	w.footer.Events += uint64(head.events)
	w.footer.Index = addIndexEntry(w.footer.Index, IndexEntry{w.offset, 1, uint64(head.events), head.firstNS, head.lastNS, summary})
}

// Bytes returns the length of the file.
func (w *Writer) Bytes() uint64 { return uint64(w.offset) }

// Close flushes, writes the footer and closes the file. The Index and Events of f are filled in.
func (w *Writer) Close(f Footer) error {
	if w.Flush() == nil {
		f.Index, f.Events = w.footer.Index, w.footer.Events
		w.writeJSON(frameFooter, f)
	}
	if err := w.file.Close(); err != nil && w.err == nil {
		w.err = fmt.Errorf("close recording: %w", err)
	}
	return w.err
}

func (w *Writer) writeJSON(kind frameType, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		w.err = fmt.Errorf("write recording: %w", err)
		return
	}
	w.packed = w.packed[:0]
	w.appendPackedFrame(&frameHead{kind: kind}, nil, data)
	w.writeInOneCall(w.packed)
}

// appendPackedFrame appends a frame to the bytes that are written next.
func (w *Writer) appendPackedFrame(head *frameHead, summary *Summary, raw []byte) {
	if len(raw) > maxFrameRaw && w.err == nil {
		w.err = fmt.Errorf("write recording: a frame of %d bytes is more than a reader takes", len(raw))
		return
	}
	start := len(w.packed)
	var b [headSize]byte
	w.packed = append(w.packed, b[:]...)
	if summary != nil {
		w.packed = summary.appendFrame(w.packed)
	}
	if (head.kind == frameHeader || head.kind == frameFooter) && len(raw) <= storedMax {
		w.packed = appendUncompressedFrame(raw, w.packed)
	} else {
		w.packed = packer().EncodeAll(raw, w.packed)
	}
	payload := w.packed[start+headSize:]
	head.raw, head.packed = uint32(len(raw)), uint32(len(payload))
	head.encode(&b, payload)
	copy(w.packed[start:], b[:])
}

// storedMax is the longest header or footer that is stored: the packer has 256 KiB of tables, and a short run waits for the
// first use of each page.
const storedMax = 4 << 10

// appendUncompressedFrame adds a frame of zstd with one block, which is not compressed (RFC 8878 §3.1.1).
func appendUncompressedFrame(raw, to []byte) []byte {
	const (
		magic     = 0xfd2fb528
		whole     = 0xa0 // one segment, whose length has four bytes
		lastBlock = 1
	)
	to = append(binary.LittleEndian.AppendUint32(to, magic), whole)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(raw)))
	block := uint32(len(raw))<<3 | lastBlock
	return append(append(to, byte(block), byte(block>>8), byte(block>>16)), raw...)
}

// writeInOneCall writes in a single call, so that a crash cuts as little as possible. On failure it truncates the file to its former
// length.
func (w *Writer) writeInOneCall(b []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.file.Write(b); err != nil {
		w.err = fmt.Errorf("write recording: %w", err)
		return
	}
	w.offset += int64(len(b))
}
