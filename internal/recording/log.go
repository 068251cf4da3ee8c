package recording

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Log keeps records in memory, compressed. The zero value is empty. One goroutine uses it.
type Log struct {
	open   *batch // the latest records
	frames []frame
	bytes  int
}

// frame is a compressed batch.
type frame struct {
	events uint32
	packed []byte
}

// logRaw is how many bytes are compressed together.
const logRaw = 64 << 10

// Append adds a record; it is copied.
func (l *Log) Append(r *wire.Record) {
	if l.open == nil {
		b := newBatch(frameDefinitions)
		l.open = &b
	}
	l.open.appendRecord(r)
	if len(l.open.raw) < logRaw {
		return
	}
	f := frame{l.open.head.events, packer().EncodeAll(l.open.raw, nil)}
	l.frames, l.bytes = append(l.frames, f), l.bytes+len(f.packed)
	l.open.clearForNextFrame()
}

// Bytes returns how many bytes the records take.
func (l *Log) Bytes() int {
	if l.open == nil {
		return 0
	}
	return l.bytes + len(l.open.raw)
}

// EachRecord calls fn for every record, in order. The record is valid during the call only. An error of fn ends it.
func (l *Log) EachRecord(fn func(*wire.Record) error) error {
	if l.open == nil {
		return nil
	}
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrameRaw))
	if err != nil {
		return fmt.Errorf("read records in memory: %w", err)
	}
	defer zip.Close()
	var raw []byte
	for i := range l.frames {
		if raw, err = zip.DecodeAll(l.frames[i].packed, raw[:0]); err != nil {
			return fmt.Errorf("read records in memory: %w", err)
		}
		if err := eachRecordOfBatch(raw, l.frames[i].events, fn); err != nil {
			return err
		}
	}
	return eachRecordOfBatch(l.open.raw, l.open.head.events, fn)
}

// eachRecordOfBatch calls fn for the records of a batch.
func eachRecordOfBatch(raw []byte, events uint32, fn func(*wire.Record) error) error {
	var r wire.Record
	state := newState(Version)
	for range events {
		var err error
		if raw, err = state.decodeRecord(raw, &r); err != nil {
			return fmt.Errorf("read records in memory: %w", err)
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return nil
}
