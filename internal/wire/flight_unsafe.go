package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"unsafe"
)

// ParseFlight reads a record of the flight log, of SizeofFlight bytes, into f. The error says what is wrong with it. The
// indices and counts in f are in their ranges; texts are the program's and not clean.
func ParseFlight(b []byte, f *Flight) error {
	if len(b) != SizeofFlight {
		return fmt.Errorf("%d bytes, a record has %d: it was cut off, or another version wrote it", len(b), SizeofFlight)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(f)), SizeofFlight), b)
	switch {
	case f.Magic != flightMagic:
		return errors.New("no record of a flight log")
	case f.Version != flightVersion || f.Size != SizeofFlight:
		return fmt.Errorf("version %d of a record, want %d", f.Version, flightVersion)
	case f.Sum != f.checksum():
		return errors.New("damaged: its checksum is wrong")
	}
	for i := range f.Sites {
		s := &f.Sites[i]
		s.Depth = min(s.Depth, StackMax)
		for j := range s.Frames {
			if s.Frames[j].Module > uint64(len(f.Modules)) {
				s.Frames[j].Module = 0
			}
		}
	}
	return nil
}

// AppendFlight writes a record, with its checksum.
func AppendFlight(b []byte, f *Flight) []byte {
	f.Magic, f.Version, f.Size = flightMagic, flightVersion, SizeofFlight
	f.Sum = f.checksum()
	return append(b, unsafe.Slice((*byte)(unsafe.Pointer(f)), SizeofFlight)...)
}

// checksum is FNV-1a over words.
func (f *Flight) checksum() uint64 {
	sum := uint64(0xcbf29ce484222325)
	for _, word := range unsafe.Slice((*uint64)(unsafe.Pointer(f)), unsafe.Offsetof(f.Sum)/8) {
		sum = (sum ^ word) * 0x100000001b3
	}
	return sum
}

// FlightFieldText returns a text of a record: what stands before the first NUL.
func FlightFieldText(field []byte) []byte {
	text, _, _ := bytes.Cut(field, []byte{0})
	return text
}

// AppendKeyOfSite writes what is the same for the same call site in any process.
func (f *Flight) AppendKeyOfSite(b []byte, s *FlightSite) []byte {
	for _, frame := range s.Frames[:s.Depth] {
		if frame.Module > 0 {
			m := &f.Modules[frame.Module-1]
			path, function, _ := bytes.Cut(m.Path[:], []byte{0})
			b = append(b, path...)
			if m.Script != 0 {
				b = append(append(b, 0), FlightFieldText(function)...)
			} else {
				b = append(append(b, 0), m.buildID()...)
			}
		}
		b = binary.LittleEndian.AppendUint64(append(b, 0), frame.Offset)
	}
	return b
}

// buildID returns the build id of a module that is no script; empty: unknown.
func (m *FlightModule) buildID() []byte {
	end := len(m.Path) - flightBuild
	if len(FlightFieldText(m.Path[:])) > end-1 {
		return nil // an older record, whose path reaches there
	}
	return bytes.TrimRight(m.Path[end:], "\x00")
}

// flightBuild is GMT_FLIGHT_BUILD.
const flightBuild = 20

// SiteFrames returns the frames of a call site, innermost first.
func (f *Flight) SiteFrames(s *FlightSite) (frames []FlightFrame) {
	for _, frame := range s.Frames[:s.Depth] {
		named := FlightFrame{Offset: frame.Offset}
		if frame.Module > 0 {
			m := &f.Modules[frame.Module-1]
			path, function, _ := bytes.Cut(m.Path[:], []byte{0})
			named.Module = string(path)
			if m.Script != 0 {
				named.Function = string(FlightFieldText(function))
			} else {
				named.Build = hex.EncodeToString(m.buildID())
			}
		}
		frames = append(frames, named)
	}
	return frames
}

// FlightFrame is a frame of a call site in a record.
type FlightFrame struct {
	Module   string // path, or the file of a function of Python; "" when unknown
	Function string // of Python: Offset is a line
	Build    string // id of the module in hexadecimal; empty: unknown, or cut to 20 bytes
	Offset   uint64 // of the return address in the module
}
