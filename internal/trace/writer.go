package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Writer appends records to a file. One goroutine uses it. After the first write error it writes nothing more and
// returns that error; what is in the file then is a whole recording up to there.
type Writer struct {
	file   *os.File
	zip    *zstd.Encoder
	err    error
	offset int64

	state  codecState
	raw    []byte
	packed []byte
	head   frameHead
	footer Footer
}

// Create makes a recording file. An existing one is replaced only with force, and only if it is a regular file.
func Create(path string, h Header, force bool) (*Writer, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("create recording: %s is no regular file: use -o to name another", path)
		}
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: use -f to overwrite it or -o to name another", path)
	}
	if err != nil {
		return nil, fmt.Errorf("create recording: %w: use -o to name a file that can be written", err)
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create recording: %w", err), file.Close())
	}
	w := &Writer{file: file, zip: zip, state: newState(Version)}
	h.Version = Version
	w.write(fileMagic[:])
	w.writeJSON(frameHeader, h)
	if w.err != nil {
		err := errors.Join(w.err, file.Close())
		if !force {
			// The file is ours and holds nothing; what cannot be removed either is worth no second complaint.
			_ = os.Remove(path)
		}
		return nil, err
	}
	return w, nil
}

// Append adds a record. It reaches the file with the frame, at the latest with Flush.
func (w *Writer) Append(r *wire.Record) error {
	if w.err != nil {
		return w.err
	}
	if w.head.events == 0 {
		w.head.firstNS, w.head.lastNS = r.Time, r.Time
	}
	w.raw = w.state.append(w.raw, r)
	w.head.events++
	w.head.firstNS = min(w.head.firstNS, r.Time)
	w.head.lastNS = max(w.head.lastNS, r.Time)
	if len(w.raw) >= cutRaw || w.head.events >= cutEvents {
		return w.Flush()
	}
	return nil
}

// Flush writes what was appended since the last frame.
func (w *Writer) Flush() error {
	if w.head.events == 0 || w.err != nil {
		return w.err
	}
	w.index()
	w.head.kind = frameEvents
	w.writeFrame(w.raw)
	w.raw = w.raw[:0]
	w.head = frameHead{}
	w.state = newState(Version)
	return w.err
}

// index notes the frame that is about to be written. When the index is full it gets half as fine: all entries but the
// last stand for the same number of frames.
func (w *Writer) index() {
	w.footer.Events += uint64(w.head.events)
	one := IndexEntry{w.offset, 1, uint64(w.head.events), w.head.firstNS, w.head.lastNS}
	index := w.footer.Index
	if n := len(index); n > 1 && index[n-1].Frames < index[0].Frames {
		last := halve([]IndexEntry{index[n-1], one})
		index[n-1] = last[0]
		return
	}
	if len(index) == indexMax {
		index = halve(index)
	}
	w.footer.Index = append(index, one)
}

// Bytes returns the length of the file.
func (w *Writer) Bytes() uint64 { return uint64(w.offset) }

// Close flushes, writes the footer and closes the file. The Index and Events of f are filled in.
func (w *Writer) Close(f Footer) error {
	if w.Flush() == nil {
		f.Index, f.Events = w.footer.Index, w.footer.Events
		w.writeJSON(frameFooter, f)
	}
	if err := w.zip.Close(); err != nil && w.err == nil {
		w.err = err
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
	w.head = frameHead{kind: kind}
	w.writeFrame(data)
	w.head = frameHead{}
}

// writeFrame writes one frame in a single call, so that a crash cuts at most one. On failure what has reached the
// file of it is cut off again.
func (w *Writer) writeFrame(raw []byte) {
	if len(raw) > maxFrameRaw && w.err == nil {
		w.err = fmt.Errorf("write recording: a frame of %d bytes is more than a reader takes", len(raw))
		return
	}
	var head [headSize]byte
	w.packed = append(w.packed[:0], head[:]...)
	w.packed = w.zip.EncodeAll(raw, w.packed)
	w.head.raw, w.head.packed = uint32(len(raw)), uint32(len(w.packed)-headSize)
	w.head.encode(&head, w.packed[headSize:])
	copy(w.packed, head[:])
	w.write(w.packed)
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.file.Write(b); err != nil {
		w.err = fmt.Errorf("write recording: %w", err)
		if err := w.file.Truncate(w.offset); err != nil {
			w.err = errors.Join(w.err, err)
		}
		return
	}
	w.offset += int64(len(b))
}
