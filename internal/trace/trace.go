// Package trace is the recording file: append-only, in frames that each stand alone, so that whatever was written
// before a crash can be read. docs/FORMAT.md gives the layout. The package does not interpret events.
package trace

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

// Version is the format that this package writes. It reads that and older ones.
const Version = 2

var (
	// ErrNotRecording says that a file is something else.
	ErrNotRecording = errors.New("is no gpumemtop recording")
	// ErrVersion says that a file was written by a later gpumemtop.
	ErrVersion = errors.New("was written by a later gpumemtop: update this one")
)

// Header says what was recorded. Unknown fields are ignored when read.
type Header struct {
	Version     int               `json:"version"`
	Created     time.Time         `json:"created"`
	ClockNS     uint64            `json:"clock_ns"` // CLOCK_MONOTONIC at Created
	Host        string            `json:"host"`
	Program     string            `json:"program"`
	Arguments   []string          `json:"arguments"`
	Policy      string            `json:"policy"`
	Limits      Limits            `json:"limits"`
	Tags        string            `json:"tags"`
	Environment map[string]string `json:"environment,omitempty"`
	// Scrub is what recycled blocks were filled with, "zero" or "poison"; empty: nothing.
	Scrub string `json:"scrub,omitempty"`
	// DeviceMemory is how many bytes of device memory each process was made to have; 0: what the device had.
	DeviceMemory uint64 `json:"device_memory,omitempty"`
	// Merged says what a merged recording was made of; empty for one that a session wrote.
	Merged []Origin `json:"merged,omitempty"`
}

// Origin is one recording that went into a merged one.
type Origin struct {
	Host      string    `json:"host"`
	Program   string    `json:"program"`
	Arguments []string  `json:"arguments,omitempty"`
	Policy    string    `json:"policy"`
	Limits    Limits    `json:"limits,omitempty"`
	Created   time.Time `json:"created"`
	// First and Last are the numbers that its processes have in the merged recording.
	First uint32 `json:"first"`
	Last  uint32 `json:"last"`
}

// HostOf returns the host that a process ran on.
func (h *Header) HostOf(process uint32) string {
	for i := range h.Merged {
		if o := &h.Merged[i]; process >= o.First && process <= o.Last {
			return o.Host
		}
	}
	return h.Host
}

// Footer is written when a recording ends in order.
type Footer struct {
	Events  uint64 `json:"events"`
	Lost    uint64 `json:"lost"`
	EndedNS uint64 `json:"ended_ns"`          // CLOCK_MONOTONIC
	Status  int    `json:"status"`            // exit status of the program, -1 when unknown or signaled
	Signal  int    `json:"signal"`            // that ended it, else 0
	Message string `json:"message,omitempty"` // anything the session wants to say
	// Index is where event frames start, in order, at most indexMax entries; the writer fills it in.
	Index []IndexEntry `json:"index"`
}

// IndexEntry locates a run of event frames: one, or in long recordings several.
type IndexEntry struct {
	Offset  int64  `json:"offset"` // of the first frame in the file
	Frames  uint64 `json:"frames"`
	Events  uint64 `json:"events"`
	FirstNS uint64 `json:"first_ns"` // earliest time in these frames
	LastNS  uint64 `json:"last_ns"`  // latest
}

// indexMax bounds the index: a session writes four frames a second for as long as it runs, while the footer must
// stay within what a reader looks through at the end of a file.
const indexMax = 8192

// halve joins the entries of an index in pairs.
func halve(index []IndexEntry) []IndexEntry {
	short := index[:0]
	for i := 0; i < len(index); i += 2 {
		e := index[i]
		if i+1 < len(index) {
			next := index[i+1]
			e.Frames, e.Events = e.Frames+next.Frames, e.Events+next.Events
			e.FirstNS, e.LastNS = min(e.FirstNS, next.FirstNS), max(e.LastNS, next.LastNS)
		}
		short = append(short, e)
	}
	return short
}

// A file starts with this, then come frames.
var fileMagic = [8]byte{'G', 'M', 'T', 'R', 'E', 'C', '\r', '\n'}

// frameMagic starts every frame, so that reading can go on behind a damaged one.
var frameMagic = [4]byte{0xf3, 'G', 'M', 'F'}

type frameType uint8

const (
	frameHeader frameType = 1
	frameEvents frameType = 2
	frameFooter frameType = 3
)

// frameHead is the fixed part of a frame, 48 bytes, little endian. The checksum covers the head up to itself and the
// payload as it is in the file.
type frameHead struct {
	kind     frameType
	packed   uint32 // bytes of payload in the file
	raw      uint32 // bytes of payload unpacked
	events   uint32
	firstNS  uint64
	lastNS   uint64
	checksum uint32
}

const (
	headSize    = 48
	checkedSize = 44 // of the head, by the checksum

	// Bounds that a reader insists on, so that a damaged length cannot take all memory.
	maxFrameRaw    = 16 << 20
	maxFramePacked = 17 << 20
	// When a writer cuts a frame.
	cutRaw    = 1 << 20
	cutEvents = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (h *frameHead) encode(b *[headSize]byte, payload []byte) {
	copy(b[:4], frameMagic[:])
	b[4] = byte(h.kind)
	b[5], b[6], b[7] = 0, 0, 0
	binary.LittleEndian.PutUint32(b[8:], h.packed)
	binary.LittleEndian.PutUint32(b[12:], h.raw)
	binary.LittleEndian.PutUint32(b[16:], h.events)
	binary.LittleEndian.PutUint32(b[20:], 0)
	binary.LittleEndian.PutUint64(b[24:], h.firstNS)
	binary.LittleEndian.PutUint64(b[32:], h.lastNS)
	binary.LittleEndian.PutUint32(b[40:], 0)
	binary.LittleEndian.PutUint32(b[44:], checksum(b[:checkedSize], payload))
}

// decode reads a head; false when it cannot be one.
func (h *frameHead) decode(b []byte) bool {
	if len(b) < headSize || [4]byte(b[:4]) != frameMagic {
		return false
	}
	h.kind = frameType(b[4])
	h.packed = binary.LittleEndian.Uint32(b[8:])
	h.raw = binary.LittleEndian.Uint32(b[12:])
	h.events = binary.LittleEndian.Uint32(b[16:])
	h.firstNS = binary.LittleEndian.Uint64(b[24:])
	h.lastNS = binary.LittleEndian.Uint64(b[32:])
	h.checksum = binary.LittleEndian.Uint32(b[44:])
	return h.packed <= maxFramePacked && h.raw <= maxFrameRaw
}

func checksum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, payload)
}
