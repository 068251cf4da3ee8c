// Code generated from event.h by internal/wire/gen; DO NOT EDIT.

package wire

const (
	Version = 0x3
	magic   = 0x31504d474d45474d

	rings       = 0x100
	ringEvents  = 0x4000
	ringsOffset = 0x1000

	PayloadMax = 0x1000
	StackMax   = 0x20

	FlagOutOfOrder = 0x1
	FlagReads      = 0x2
	FlagWrites     = 0x4
	FlagWouldRace  = 0x8
	FlagOrdered    = 0x10
	FlagPart       = 0x20
	FlagCarried    = 0x40

	SizeofEvent   = 0x40
	SizeofFrame   = 0x10
	sizeofRing    = 0x1000c0
	sizeofRegion  = 0x20
	SizeofHello   = 0x818
	SizeofControl = 0x80
	SizeofConfig  = 0x478

	socketName = "socket"
	configName = "config"
	coreName   = "libgpumemtop-core.so"
	shimName   = "libgpumemtop.so"
	sessionEnv = "GPUMEMTOP_SESSION"
	probeEnv   = "GPUMEMTOP_PROBE"
)

type (
	Event struct {
		Time     uint64
		Duration uint32
		Cost     uint32
		Kind     Kind
		Op       uint8
		Outcome  Outcome
		Reason   uint8
		Flags    uint8
		Scope    uint16
		Status   int16
		Access   uint16
		Tag      uint32
		Object   uint64
		Size     uint64
		Granted  uint64
		Link     uint64
	}

	Frame struct {
		Module uint64
		Offset uint64
	}

	rawRegion struct {
		Magic      uint64
		Version    uint32
		Rings      uint32
		Ringevents uint32
		Pid        uint32
		Started    uint64
	}
	rawRing struct {
		Head     uint64
		Headpad  [7]uint64
		Tail     uint64
		Tailpad  [7]uint64
		Lost     uint64
		Lostuses uint64
		Waits    uint64
		Owner    uint32
		Ownerpad uint32
		Lostpad  [4]uint64
		Events   [16384]Event
	}
	rawHello struct {
		Magic     uint64
		Version   uint32
		Pid       uint32
		Ppid      uint32
		Arguments uint32
		Text      [2048]uint8
	}
	rawControl struct {
		Sequence uint64
		Text     [120]uint8
	}
	rawConfig struct {
		Magic        uint64
		Version      uint32
		Tagmode      uint32
		Stackdepth   uint32
		Waitms       uint32
		Uses         uint32
		Pooling      uint32
		Ungated      uint32
		Scrub        uint32
		Devicememory uint64
		Copymin      uint64
		Policy       [64]uint8
		Limits       [1024]uint8
	}
)
