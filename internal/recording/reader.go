package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording/foreign"
	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Reader reads a recording from the front, in bounded memory. It skips damage, which Damage describes.
// One goroutine uses it.
type Reader struct {
	file   *os.File
	path   string
	size   int64
	header Header
	footer *Footer
	first  int64        // offset of the first frame behind the header
	index  []IndexEntry // the footer's, if it fits the file
	offset int64        // of the next frame
	frames int
	zip    *zstd.Decoder

	state  codecState
	packed []byte
	raw    []byte
	rest   []byte // of raw, to be decoded
	left   uint32 // events in rest
	events uint64 // read since Rewind
	asked  int64  // creates among them
	latest uint64 // time in the frames so far
	leapt  bool   // not all frames since Rewind were read
	damage string
	search *walker // nil until something is damaged

	process   uint32              // of the last record
	processes map[uint32]struct{} // since Rewind
}

// Open opens a recording, which must be a file that can be sought. Errors are ErrNotRecording, ErrVersion, or of the
// file system. A file that ends in the middle opens: its events up to there are read.
func Open(path string) (*Reader, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil, openError(path, err)
	}
	r, err := openFile(file, path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

func openFile(file *os.File, path string) (*Reader, error) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, openError(path, err)
	case info.IsDir():
		return nil, fmt.Errorf("%s %w: it is %s", path, ErrNotRecording, folderMessage(path))
	case untrusted.CheckRegular(int(file.Fd())) != nil:
		return nil, fmt.Errorf("%s %w: that is a file that can be sought, which a pipe, a device or a file of the kernel cannot", path, ErrNotRecording)
	}
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrameRaw))
	if err != nil {
		return nil, openError(path, err)
	}
	r := &Reader{file: file, path: path, size: info.Size(), zip: zip, processes: map[uint32]struct{}{}}
	if err := r.readHeader(); err != nil {
		zip.Close()
		return nil, err
	}
	r.readFooter()
	return r, nil
}

// folderMessage says what a folder is.
func folderMessage(path string) string {
	for table, part := range map[string]string{"runs": "app=*", "buffers": "host=*", "events": "host=*"} {
		if found, err := fs.Glob(os.DirFS(filepath.Join(path, table)), part); err == nil && len(found) > 0 {
			return foreign.Tables
		}
	}
	return "a folder"
}

// openError names the file that could not be opened, once.
func openError(path string, err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("open recording %s: %w", path, err)
}

func (r *Reader) readHeader() error {
	var magic [len(fileMagic)]byte
	if _, err := io.ReadFull(r.file, magic[:]); err != nil || magic != fileMagic {
		if kind := foreign.KindOfFile(io.NewSectionReader(r.file, 0, r.size)).String(); kind != "" {
			return fmt.Errorf("%s %w: it is %s", r.path, ErrNotRecording, kind)
		}
		return fmt.Errorf("%s %w", r.path, ErrNotRecording)
	}
	r.offset = int64(len(magic))
	head, err := r.readFrame()
	if err == nil {
		err = r.unpackFrame(&head)
	}
	if err != nil || head.kind != frameHeader {
		return fmt.Errorf("%s %w: its header is cut off or damaged", r.path, ErrNotRecording)
	}
	// First the version alone: a later one may have other fields, or others in them.
	var only struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(r.raw, &only); err == nil && only.Version > Version {
		return fmt.Errorf("%s %w", r.path, ErrVersion)
	}
	if err := json.Unmarshal(r.raw, &r.header); err != nil {
		return fmt.Errorf("%s %w: %w", r.path, ErrNotRecording, err)
	}
	if r.header.Version < 1 {
		return fmt.Errorf("%s %w: its header has no version", r.path, ErrNotRecording)
	}
	r.first = r.offset
	return nil
}

const (
	// footerTries bounds the work on a file that is full of what looks like frames.
	footerTries = 8
	// tailMax is how much of a file's end is looked through for its footer.
	tailMax = 2 << 20
)

// readFooter looks for the footer at the end; without one the recording was cut off.
func (r *Reader) readFooter() {
	from := max(r.first, r.size-tailMax)
	tail := make([]byte, r.size-from)
	if _, err := r.file.ReadAt(tail, from); err != nil {
		return
	}
	defer func() { r.offset = r.first }()
	// Packed bytes may look like the start of a frame, so a false one does not end the search, nor does a frame that
	// a later gpumemtop has put behind the footer.
	for range footerTries {
		at := bytes.LastIndex(tail, frameMagic[:])
		if at < 0 {
			return
		}
		r.offset = from + int64(at)
		head, err := r.readFrame()
		if err == nil && head.kind <= frameDefinitions {
			var footer Footer
			if head.kind == frameFooter && r.unpackFrame(&head) == nil && json.Unmarshal(r.raw, &footer) == nil {
				r.footer = &footer
				r.index = r.indexIfMatchingFile(footer.Index)
			}
			return
		}
		tail = tail[:at]
	}
}

// Header returns what was recorded.
func (r *Reader) Header() Header { return r.header }

// Footer returns how the recording ended, false when it was cut off.
func (r *Reader) Footer() (Footer, bool) {
	if r.footer == nil {
		return Footer{}, false
	}
	return *r.footer, true
}

// Size returns the length of the file in bytes, as it was opened.
func (r *Reader) Size() int64 { return r.size }

// Offset returns how far reading has come, in bytes.
func (r *Reader) Offset() int64 { return r.offset }

// Damage says what could not be read so far, "" when nothing is missing. It is complete once Next has returned EOF.
func (r *Reader) Damage() string { return r.damage }

// IsCut reports whether the run goes on after the last record, by the footer or its absence.
func (r *Reader) IsCut() bool {
	footer, whole := r.Footer()
	return !whole || footer.Cut
}

// Close closes the file.
func (r *Reader) Close() error {
	r.zip.Close()
	return r.file.Close()
}

// Rewind starts again at the first event.
func (r *Reader) Rewind() error {
	r.offset, r.frames, r.left, r.rest, r.damage = r.first, 0, 0, nil, ""
	r.events, r.asked, r.latest, r.leapt = 0, 0, 0, false
	r.process = 0
	clear(r.processes)
	return nil
}

// SeekTime goes to the first frame that holds an event at or after a time in ns (CLOCK_MONOTONIC of the recording), to
// the end when there is none. Events before it in that frame are still read.
func (r *Reader) SeekTime(ns uint64) error {
	if err := r.Rewind(); err != nil {
		return err
	}
	frames := 0
	for _, e := range r.index {
		if e.LastNS >= ns {
			r.offset, r.frames = e.Offset, frames
			break
		}
		frames += int(e.Frames)
	}
	err := r.skipFramesBefore(ns)
	r.leapt = r.offset != r.first
	return err
}

// skipFramesBefore steps over frames whose events are all before a time, by their heads alone. It stops at a damaged head: Next
// steps over that and notes the damage.
func (r *Reader) skipFramesBefore(ns uint64) error {
	w := r.newWalker()
	for {
		var head frameHead
		b := w.bytesAt(r.offset, headSize)
		if w.err != nil || !r.parseFrameHead(&head, b, r.offset) || head.kind == frameEvents && head.lastNS >= ns {
			return w.err
		}
		r.offset += head.frameBytes()
		if head.kind == frameEvents {
			r.frames++
		}
	}
}

// Next reads the next record, io.EOF after the last, as the current version has it: see Upgrade. Its payload is valid
// until the following call.
func (r *Reader) Next(rec *wire.Record) error {
	for {
		for r.left == 0 {
			if err := r.nextFrame(); err != nil {
				return err
			}
		}
		rest, err := r.state.decodeRecord(r.rest, rec)
		if err == nil {
			r.rest = rest
			r.left--
			UpgradeRecord(r.header.Version, rec)
			if rec.Kind != wire.KindCreate && rec.Process == r.process {
				return nil
			}
			return r.countAndCheckDensity(rec)
		}
		r.noteDamage("frame %d holds %d events less than it says", r.frames, r.left)
		r.left = 0
	}
}

// The number of creates, events and processes that a file may hold: a base, and more for each byte. Recordings of programs
// stay far below. So the size of a file bounds the memory of its reader: without that, a file of 9 KB could take gigabytes.
const (
	freeCreates     = 1 << 16
	createsPerByte  = 8 // a loop of creates and releases, alone on a processor, makes 2.7
	freeEvents      = 1 << 22
	eventsPerByte   = 16 // the same loop makes 5.4
	freeProcesses   = 1 << 14
	bytesPerProcess = 32 // the least program makes 900
)

// countAndCheckDensity counts a create or the record of another process.
func (r *Reader) countAndCheckDensity(rec *wire.Record) error {
	if rec.Kind == wire.KindCreate {
		r.asked++
	}
	if rec.Process != r.process {
		r.process = rec.Process
		r.processes[rec.Process] = struct{}{}
	}
	return r.tooDenseError()
}

// tooDenseError returns the error for a file that holds too much for its size.
func (r *Reader) tooDenseError() error {
	creates, events, processes := freeCreates+r.size*createsPerByte, freeEvents+r.size*eventsPerByte, freeProcesses+r.size/bytesPerProcess
	if r.asked > creates || int64(r.events) > events || int64(len(r.processes)) > processes {
		return fmt.Errorf("read recording %s: its %d bytes hold more than %d creates, %d events or %d processes: no program makes such a recording",
			r.path, r.size, creates, events, processes)
	}
	return nil
}
