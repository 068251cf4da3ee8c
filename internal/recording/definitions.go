package recording

import (
	"errors"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// EachDefinition gives the records that define processes, threads, modules, tags, sites, devices, contexts, queues and
// kernels, in their order, without reading the other events; of recordings of versions 1 and 2 it must read all. A
// record's payload is valid during the call only. Damaged frames are left out silently. It does not change what
// Next reads. An error of fn ends it and comes back as it is; others are of the file system.
func (r *Reader) EachDefinition(fn func(*wire.Record) error) error {
	f := r.newReaderOfFile()
	if r.header.Version < 3 {
		return f.eachDefinitionAmongEvents(fn)
	}
	missing := int64(-1) // offset of an event frame whose definitions have not come: a crash may have prevented them
	w := r.newWalker()
	for w.nextFrame() {
		if w.head.kind == frameDefinitions {
			given, err := f.eachDefinitionAt(w.offset, fn)
			if err != nil {
				return err
			}
			if given {
				missing = -1
			}
			continue
		}
		if w.head.kind > frameDefinitions {
			continue // a later gpumemtop may put it anywhere
		}
		if _, err := f.eachDefinitionAt(missing, fn); err != nil {
			return err
		}
		missing = -1
		if w.head.kind == frameEvents && w.head.flags&flagDefines != 0 {
			missing = w.offset
		}
	}
	if w.err != nil {
		return w.err
	}
	_, err := f.eachDefinitionAt(missing, fn)
	return err
}

// eachDefinitionAt gives the definitions in the frame at an offset, if there is one; false when the frame is damaged.
func (r *Reader) eachDefinitionAt(offset int64, fn func(*wire.Record) error) (bool, error) {
	if offset < 0 {
		return false, nil
	}
	r.offset = offset
	head, err := r.readFrame()
	if err == nil {
		err = r.unpackFrame(&head)
	}
	if errors.Is(err, errFrame) || errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, readError(err)
	}
	var rec wire.Record
	state, rest := newState(r.header.Version), r.raw
	for range head.events {
		if rest, err = state.decodeRecord(rest, &rec); err != nil {
			break
		}
		if !rec.IsDefinition() {
			continue
		}
		if err := fn(&rec); err != nil {
			return true, err
		}
	}
	return true, nil
}

// eachDefinitionAmongEvents gives the definitions among all events.
func (r *Reader) eachDefinitionAmongEvents(fn func(*wire.Record) error) error {
	var rec wire.Record
	for {
		err := r.Next(&rec)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !rec.IsDefinition():
			continue
		}
		if err := fn(&rec); err != nil {
			return err
		}
	}
}

func readError(err error) error { return fmt.Errorf("read recording: %w", err) }
