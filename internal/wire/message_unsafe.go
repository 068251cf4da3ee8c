package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"
)

// Names in a session's runtime folder, and of the variable that leads to it.
const (
	SocketName    = socketName
	OutsidersName = outsidersName
	OutsiderMax   = outsiderMax // bytes of a message there
	// OutsiderForeign begins a message about a program for another machine or C library.
	OutsiderForeign = string(rune(outsiderForeign))
	// OutsiderAsked begins a message about a call of clGetDeviceIDs before the first context.
	OutsiderAsked = string(rune(outsiderAsked))
	// OutsiderForked begins the message of a forked child.
	OutsiderForked = string(rune(outsiderForked))
	ConfigName     = configName
	CoreName       = coreName
	ShimName       = shimName
	SessionEnv     = sessionEnv
	ProbeEnv       = probeEnv
)

// Config is what the session tells every process of the target before it starts.
type Config struct {
	Tags       TagMode
	StackDepth int           // frames, 1 to StackMax
	Wait       time.Duration // how long a producer may wait for room before events are dropped; 0: never
	Uses       Uses          // when USE and SYNC events are written
	Transfers  Transfers     // what is written of commands that move memory
	Pooling    bool          // load the Go core
	NoRelief   bool          // neither give memory that other programs lack, nor ask them for what creates lack
	AnswerFree bool          // answer the query for free memory where the driver does not know it
	Ungated    bool          // hand blocks out while commands still use them: corrupts data, for demonstration
	Spill      bool          // memory objects are virtual: idle ones go to host memory when the device has no room
	Eager      bool          // memory gets its room on the devices when it is created, not when it is used first
	Scrub      Scrub         // what is done to recycled blocks before the program gets them
	CopyMin    uint64        // bytes from which buffers with CL_MEM_COPY_HOST_PTR come from the pool
	// DeviceMemory is how many bytes of device memory each process is made to have; 0: what the device has.
	DeviceMemory uint64
	Policy       string
	Limits       string // "name=value,..."
}

// Encode returns the bytes of the config file.
func (c Config) Encode() ([]byte, error) {
	raw := rawConfig{
		Magic: magic, Version: Version, Tagmode: uint32(c.Tags), Stackdepth: uint32(min(max(c.StackDepth, 1), StackMax)),
		Waitms: uint32(c.Wait.Milliseconds()), Uses: uint32(c.Uses), Transfers: uint32(c.Transfers), Pooling: boolToWord(c.Pooling),
		Ungated: boolToWord(c.Ungated), Scrub: uint32(c.Scrub), Spill: boolToWord(c.Spill), Eager: uint64(boolToWord(c.Eager)), Devicememory: c.DeviceMemory, Answerfree: uint64(boolToWord(c.AnswerFree)), Copymin: c.CopyMin,
		Neighbours: uint64(boolToWord(c.Pooling && !c.NoRelief)),
	}
	if err := copyTextInto(raw.Policy[:], c.Policy); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if err := copyTextInto(raw.Limits[:], c.Limits); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	return bytes.Clone((*[SizeofConfig]byte)(unsafe.Pointer(&raw))[:]), nil
}

// Hello is what a process says when it makes its first OpenCL call.
type Hello struct {
	PID, Parent int
	Arguments   []string
}

// DecodeHello reads a hello message. Nothing in it is trusted.
func DecodeHello(b []byte) (Hello, error) {
	var raw rawHello
	if len(b) != SizeofHello {
		return Hello{}, fmt.Errorf("hello has %d bytes, want %d", len(b), SizeofHello)
	}
	copy((*[SizeofHello]byte)(unsafe.Pointer(&raw))[:], b)
	if raw.Magic != magic {
		return Hello{}, errors.New("hello has no magic number")
	}
	if raw.Version != Version {
		return Hello{}, fmt.Errorf("%w: %d, want %d", ErrVersion, raw.Version, Version)
	}
	text := raw.Text[:min(int(raw.Arguments), len(raw.Text))]
	hello := Hello{PID: int(raw.Pid), Parent: int(raw.Ppid)}
	if s := strings.TrimSuffix(string(text), "\x00"); s != "" {
		hello.Arguments = strings.Split(s, "\x00")
	}
	return hello, nil
}

// Control is a message from the session to a target: "limit NAME=VALUE", "trim BYTES", Relief.MessageText or
// "policy NAME [LIMIT=VALUE,...]".
type Control struct {
	Sequence uint64
	Text     string
}

// ControlMax is how many bytes the text of a Control may have.
const ControlMax = len(rawControl{}.Text) - 1

// Encode returns the message's bytes.
func (c Control) Encode() ([]byte, error) {
	raw := rawControl{Sequence: c.Sequence}
	if err := copyTextInto(raw.Text[:], c.Text); err != nil {
		return nil, err
	}
	return bytes.Clone((*[SizeofControl]byte)(unsafe.Pointer(&raw))[:]), nil
}

// DecodeControl reads a control message.
func DecodeControl(b []byte) (Control, error) {
	var raw rawControl
	if len(b) != SizeofControl {
		return Control{}, fmt.Errorf("control message has %d bytes, want %d", len(b), SizeofControl)
	}
	copy((*[SizeofControl]byte)(unsafe.Pointer(&raw))[:], b)
	text, _, _ := bytes.Cut(raw.Text[:], []byte{0})
	return Control{Sequence: raw.Sequence, Text: string(text)}, nil
}

func copyTextInto(dst []uint8, text string) error {
	if len(text) >= len(dst) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("%q does not fit into %d bytes", text, len(dst)-1)
	}
	copy(dst, text)
	return nil
}

func boolToWord(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
