package recording

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// nextFrame goes to the next frame of events. It steps over those of other types, which a later version may add.
func (r *Reader) nextFrame() error {
	for {
		start := r.offset
		head, err := r.readFrame()
		if err == nil && head.kind == frameEvents {
			if err = r.unpackFrame(&head); err == nil {
				r.frames++
				r.events += uint64(head.events)
				r.latest = max(r.latest, head.lastNS)
				r.state = newState(r.header.Version)
				r.rest, r.left = r.raw, head.events
				return r.tooDenseError()
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			r.noteMissingFramesAtEnd()
			return io.EOF
		case errors.Is(err, errFrame):
			if !r.findFrameAfterDamage(start) {
				return io.EOF
			}
		case err != nil:
			return readError(err)
		}
	}
}

// noteMissingFramesAtEnd notes, at the end, missing frames although none is damaged.
func (r *Reader) noteMissingFramesAtEnd() {
	switch {
	case r.damage != "":
	case r.footer == nil:
		r.noteDamage("it ends without a footer after frame %d%s: the program or gpumemtop was killed; all events up to there are whole",
			r.frames, r.timeReadText())
	case !r.leapt && r.events != r.footer.Events:
		r.noteDamage("it holds %d events, and its footer speaks of %d: it was put together or cut", r.events, r.footer.Events)
	}
}

// timeReadText returns the time that the frames so far reach, in words; empty: there are none.
func (r *Reader) timeReadText() string {
	if r.frames == 0 || r.latest < r.header.ClockNS {
		return ""
	}
	return fmt.Sprintf(" at %.3f s", float64(r.latest-r.header.ClockNS)/1e9)
}

// findFrameAfterDamage looks for the next frame after a damaged or truncated one at start.
func (r *Reader) findFrameAfterDamage(start int64) bool {
	if r.search == nil {
		r.search = r.newWalker()
	}
	if r.search.after = start; r.search.skipDamage() {
		r.offset = r.search.after
		r.noteDamage("%d bytes behind frame %d are damaged", r.offset-start, r.frames)
		return true
	}
	r.noteDamage("the last %d bytes, behind frame %d%s, are cut off; the events before are whole", r.size-start, r.frames, r.timeReadText())
	r.offset = r.size
	return false
}

// damageMax bounds the text about damage; a file that is damaged all over is not described in full.
const damageMax = 1000

func (r *Reader) noteDamage(format string, args ...any) {
	switch {
	case r.damage == "":
		r.damage = fmt.Sprintf(format, args...)
	case len(r.damage) < damageMax:
		r.damage += "; " + fmt.Sprintf(format, args...)
	case !strings.HasSuffix(r.damage, moreDamage):
		r.damage += moreDamage
	}
}

const moreDamage = "; and more"

var errFrame = errors.New("no whole frame")

// readFrame reads the frame at offset, packed, and moves to its end.
func (r *Reader) readFrame() (frameHead, error) {
	var head frameHead
	var b [headSize]byte
	n, err := r.file.ReadAt(b[:], r.offset)
	if n == 0 && errors.Is(err, io.EOF) {
		return head, io.EOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return head, err
	}
	if !r.parseFrameHead(&head, b[:n], r.offset) {
		return head, errFrame
	}
	r.packed = slices.Grow(r.packed[:0], int(head.packed))[:head.packed]
	if _, err := r.file.ReadAt(r.packed, r.offset+headSize); err != nil {
		return head, err
	}
	if checksum(b[:checkedSize], r.packed) != head.checksum {
		return head, errFrame
	}
	r.offset += head.frameBytes()
	return head, nil
}

// parseFrameHead reads a head and reports whether it is valid, as far as its own bytes show, and its frame within the file.
func (r *Reader) parseFrameHead(head *frameHead, b []byte, offset int64) bool {
	return head.decode(b) && (head.sound || r.header.Version < 3) && offset+head.frameBytes() <= r.size
}

// unpackFrame unpacks the frame that readFrame read into raw.
func (r *Reader) unpackFrame(head *frameHead) error {
	raw, err := r.zip.DecodeAll(r.packed, r.raw[:0])
	if err != nil || len(raw) != int(head.raw) {
		return errFrame
	}
	r.raw = raw
	return nil
}
