// Package recording is the recording file: append-only, in frames that each stand alone, so that whatever was written
// before a crash can be read. docs/FORMAT.md gives the layout. The package does not interpret events.
package recording

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"time"
)

// Version is the format that this package writes. It reads that and older ones.
const Version = 4

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
	Auto        bool              `json:"auto,omitempty"` // the session may switch policies by itself
	Tags        string            `json:"tags"`
	Environment map[string]string `json:"environment,omitempty"`
	// Scrub is what recycled blocks were filled with, "zero" or "poison"; empty: nothing.
	Scrub string `json:"scrub,omitempty"`
	// DeviceMemory is how many bytes of device memory each process was made to have; 0: what the device had.
	DeviceMemory uint64 `json:"device_memory,omitempty"`
	// Attached says that the processes ran already when the recording began, or were started by others: Program is the
	// first of those that were asked for by process id, empty where none was, and what was there before is carried.
	Attached bool `json:"attached,omitempty"`
	// Merged says what a merged recording was made of; empty for one that a session wrote.
	Merged []Origin `json:"merged,omitempty"`
	Identity
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
	// DeviceMemory is as in the header of that recording.
	DeviceMemory uint64 `json:"device_memory,omitempty"`
	Identity
}

// HostIfSeveral returns the host that a process ran on where processes ran on several; else it is empty.
func (h *Header) HostIfSeveral(process uint32) string {
	for i := range h.Merged {
		if h.Merged[i].Host != h.Merged[0].Host {
			return h.HostOf(process)
		}
	}
	return ""
}

// HaveSeparateDevices reports whether two processes had devices of their own: on different hosts, or made so.
func (h *Header) HaveSeparateDevices(a, b uint32) bool {
	memory := func(process uint32) uint64 {
		for i := range h.Merged {
			if o := &h.Merged[i]; process >= o.First && process <= o.Last {
				return max(o.DeviceMemory, h.DeviceMemory)
			}
		}
		return h.DeviceMemory
	}
	return h.HostOf(a) != h.HostOf(b) || memory(a) > 0 || memory(b) > 0
}

// Footer is written when a recording ends in order.
type Footer struct {
	Events  uint64 `json:"events"`
	Lost    uint64 `json:"lost"`
	EndedNS uint64 `json:"ended_ns"`          // CLOCK_MONOTONIC
	Status  int    `json:"status"`            // exit status of the program, -1 when unknown or signaled
	Signal  int    `json:"signal"`            // that ended it, else 0
	Message string `json:"message,omitempty"` // anything the session wants to say
	// Asked is which devices programs asked for before a context, in words.
	Asked []string `json:"asked,omitempty"`
	// Cut says that the run goes on behind the last record, as in a part of it: what lives then is no leak.
	Cut bool `json:"cut,omitempty"`
	// Index is where event frames start, in order, at most indexMax entries; the writer fills it in.
	Index []IndexEntry `json:"index"`
}

// fileMagic starts every file; then come frames.
var fileMagic = [8]byte{'G', 'M', 'T', 'R', 'E', 'C', '\r', '\n'}

// frameMagic starts every frame, so that reading can go on behind a damaged one.
var frameMagic = [4]byte{0xf3, 'G', 'M', 'F'}

type frameType uint8

const (
	frameHeader      frameType = 1
	frameEvents      frameType = 2
	frameFooter      frameType = 3
	frameDefinitions frameType = 4 // from version 3 on
)

// flagDefines says of an event frame that a frame of definitions follows it.
const flagDefines = 1

// frameHead is the fixed part of a frame, 48 bytes, little endian. The checksum covers the head up to itself and the
// payload as it is in the file. From version 3 on the head has a checksum of its own, so that it can be trusted
// without the payload.
type frameHead struct {
	kind     frameType
	flags    uint8
	packed   uint32 // bytes of payload in the file
	raw      uint32 // bytes of payload unpacked
	events   uint32
	firstNS  uint64
	lastNS   uint64
	sound    bool // the head's own checksum is right
	checksum uint32
}

const (
	headSize    = 48
	ownSize     = 40 // of the head, by its own checksum
	checkedSize = 44 // of the head, by the frame's checksum

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
	b[4], b[5], b[6], b[7] = byte(h.kind), h.flags, 0, 0
	binary.LittleEndian.PutUint32(b[8:], h.packed)
	binary.LittleEndian.PutUint32(b[12:], h.raw)
	binary.LittleEndian.PutUint32(b[16:], h.events)
	binary.LittleEndian.PutUint32(b[20:], 0)
	binary.LittleEndian.PutUint64(b[24:], h.firstNS)
	binary.LittleEndian.PutUint64(b[32:], h.lastNS)
	binary.LittleEndian.PutUint32(b[40:], crc32.Checksum(b[:ownSize], castagnoli))
	binary.LittleEndian.PutUint32(b[44:], checksum(b[:checkedSize], payload))
}

// decode reads a head; false when it cannot be one.
func (h *frameHead) decode(b []byte) bool {
	if len(b) < headSize || [4]byte(b[:4]) != frameMagic {
		return false
	}
	h.kind, h.flags = frameType(b[4]), b[5]
	h.packed = binary.LittleEndian.Uint32(b[8:])
	h.raw = binary.LittleEndian.Uint32(b[12:])
	h.events = binary.LittleEndian.Uint32(b[16:])
	h.firstNS = binary.LittleEndian.Uint64(b[24:])
	h.lastNS = binary.LittleEndian.Uint64(b[32:])
	h.sound = binary.LittleEndian.Uint32(b[40:]) == crc32.Checksum(b[:ownSize], castagnoli)
	h.checksum = binary.LittleEndian.Uint32(b[44:])
	return h.packed <= maxFramePacked && h.raw <= maxFrameRaw
}

// frameBytes returns the bytes of the whole frame.
func (h *frameHead) frameBytes() int64 { return headSize + int64(h.packed) }

func checksum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, payload)
}

// Limits are the values of allocator limits by name, as the allocator takes them. In JSON what is a number is one, and
// the rest are strings; version 1 had numbers only.
type Limits map[string]string

// MarshalJSON implements json.Marshaler.
func (l Limits) MarshalJSON() ([]byte, error) {
	values := make(map[string]any, len(l))
	for name, text := range l {
		values[name] = text
		if isJSONNumber(text) {
			values[name] = json.Number(text)
		}
	}
	return json.Marshal(values)
}

// isJSONNumber reports whether a text is a number in JSON, too.
func isJSONNumber(text string) bool {
	value, err := strconv.ParseFloat(text, 64)
	return err == nil && !math.IsInf(value, 0) && json.Valid([]byte(text))
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	*l = make(Limits, len(values))
	for name, value := range values {
		switch v := value.(type) {
		case string:
			(*l)[name] = v
		case float64:
			(*l)[name] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			return fmt.Errorf("limit %s is neither a number nor a text", name)
		}
	}
	return nil
}
