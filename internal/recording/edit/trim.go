// Package edit makes recordings of recordings: a part of one, or several in one. It knows headers, footers and the
// order of records, and leaves files to who calls it. It reads no clock.
package edit

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Sink takes records, as *recording.Writer does.
type Sink interface {
	Append(*wire.Record) error
}

// Recording is a recording to read, such as a *recording.Reader.
type Recording interface {
	recording.Source
	Header() recording.Header
	Footer() (recording.Footer, bool)
	Damage() string
}

// TrimHeader returns the header of a part of a recording.
func TrimHeader(h recording.Header, part extract.Options) recording.Header {
	if part.Since > h.ClockNS {
		h.Created = h.Created.Add(time.Duration(part.Since - h.ClockNS))
		h.ClockNS = part.Since
	}
	return h
}

// WritePart writes the part of a recording that a source gives into a sink, in bounded memory, and returns its footer. about
// says which part it is, for people; empty: all of it. The sink is left open.
func WritePart(to Sink, in Recording, src recording.Source, part extract.Options, about string) (recording.Footer, error) {
	if err := src.Rewind(); err != nil {
		return recording.Footer{}, fmt.Errorf("go to the start of the recording: %w", err)
	}
	footer := recording.Footer{Status: -1, EndedNS: TrimHeader(in.Header(), part).ClockNS}
	err := eachRecord(src, func(r *wire.Record) error {
		footer.EndedNS = max(footer.EndedNS, r.Time)
		if r.Kind == wire.KindLost {
			footer.Lost += r.AsLost().Events()
		}
		return to.Append(r)
	})
	if err != nil {
		return footer, err
	}
	var messages []string
	was, whole := in.Footer()
	switch {
	case !whole:
		messages = append(messages, "it had been cut off")
	case part.Until == 0 || part.Until >= was.EndedNS:
		footer.Status, footer.Signal, footer.EndedNS = was.Status, was.Signal, max(was.EndedNS, footer.EndedNS)
	default:
		footer.EndedNS = max(part.Until, footer.EndedNS)
	}
	footer.Cut = recording.RunGoesOn(src)
	if was.Message != "" {
		messages = append(messages, was.Message)
	}
	if about != "" {
		messages = append(messages, "trimmed: "+about)
	}
	footer.Message = strings.Join(messages, "; ")
	return footer, nil
}

// eachRecord calls fn for every record that is left in a source.
func eachRecord(src recording.Source, fn func(*wire.Record) error) error {
	var r wire.Record
	for {
		err := src.Next(&r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
}
