// Code generated from event.h by internal/wire/gen; DO NOT EDIT.

package wire

const (
	Version = 0xa
	magic   = 0x31504d474d45474d

	rings       = 0x100
	ringEvents  = 0x4000
	ringsOffset = 0x2000
	controls    = 0x20

	Page = 0x1000

	PayloadMax = 0x1000
	StackMax   = 0x20

	FlagOutOfOrder = 0x1
	FlagWhole      = 0x1
	FlagReads      = 0x2
	FlagWrites     = 0x4
	FlagWouldRace  = 0x8
	FlagOrdered    = 0x10
	FlagSubAlloc   = 0x20
	FlagCarried    = 0x40
	FlagScattered  = 0x80
	FlagOffPage    = 0x80
	FlagArm        = 0x80
	FlagScript     = 0x1
	FlagRoute      = 0x1e
	FlagUnified    = 0x1
	FlagPinned     = 0x1
	FlagPageable   = 0x2
	FlagExposed    = 0x7

	SizeofEvent   = 0x40
	SizeofFrame   = 0x10
	sizeofRing    = 0x1000c0
	sizeofRegion  = 0x1050
	SizeofHello   = 0x818
	SizeofControl = 0x80
	SizeofConfig  = 0x498

	CallArguments = 0x6
	commSize      = 0x10
	CallData      = 0x100
	CallCopies    = 0x2
	CallStack     = 0x4000
	SizeofCall    = 0xa8
	SizeofShape   = 0x10
	Functions     = 0x80

	ShapeReturn = 0x1
	ShapeStack  = 0x2
	ShapeUse    = 0x4

	socketName      = "socket"
	outsidersName   = "outsiders"
	outsiderMax     = 0x100
	outsiderForeign = 0x1
	outsiderAsked   = 0x2
	outsiderForked  = 0x3
	configName      = "config"
	coreName        = "libgpumemtop-core.so"
	shimName        = "libgpumemtop.so"
	sessionEnv      = "GPUMEMTOP_SESSION"
	probeEnv        = "GPUMEMTOP_PROBE"

	LogEnv   = "GPUMEMTOP_LOG"
	LabelEnv = "GPUMEMTOP_LABEL"

	USDTEnv = "GPUMEMTOP_USDT"

	FlightSuffix = ".flight"

	SizeofFlight  = 0x95c8
	flightMagic   = 0x31474f4c544d4747
	flightVersion = 0x1
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

	Call struct {
		Time      uint64
		Entered   uint64
		Pid       uint32
		Tid       uint32
		Function  uint16
		Sight     Sight
		Data      uint16
		Stack     uint16
		Error     int32
		Copied    [2]uint8
		Shortened uint8
		Pad       uint8
		Result    uint64
		Event     uint64
		Argument  [6]uint64
		Ip        uint64
		Sp        uint64
		Bp        uint64
		Bx        uint64
		R12       uint64
		R13       uint64
		R14       uint64
		R15       uint64
	}

	Copy struct {
		Argument uint8
		Unit     uint8
		Count    uint8
		Text     uint8
	}

	Shape struct {
		Flags  uint8
		Error  uint8
		Object uint8
		Like   uint8
		Event  uint8
		Pad    [3]uint8
		Copy   [2]Copy
	}

	Flight struct {
		Magic     uint64
		Version   uint32
		Size      uint32
		Pid       uint32
		Uid       uint32
		Status    int32
		Signal    uint32
		Started   uint64
		Ended     uint64
		Peaktime  uint64
		Distinct  uint64
		Total     FlightCounts
		Others    FlightCounts
		Findings  [32]uint64
		Sizes     [64]uint64
		Failures  [16]FlightFailure
		Host      [64]uint8
		Program   [256]uint8
		Arguments [1024]uint8
		Device    [128]uint8
		Driver    [128]uint8
		Policy    [64]uint8
		Limits    [256]uint8
		Job       [64]uint8
		Step      [64]uint8
		Rank      [32]uint8
		Labels    [512]uint8
		Sites     [32]FlightSite
		Modules   [64]FlightModule
		Sum       uint64
	}

	FlightCounts struct {
		Creates  uint64
		Failed   uint64
		Releases uint64
		Bytes    uint64
		Inuse    uint64
		Peak     uint64
	}

	FlightSite struct {
		Counts FlightCounts
		Depth  uint32
		Pad    uint32
		Frames [32]Frame
	}

	FlightModule struct {
		Script uint8
		Path   [255]uint8
	}

	FlightFailure struct {
		Status int32
		Pad    uint32
		Count  uint64
	}

	rawRegion struct {
		Magic      uint64
		Version    uint32
		Rings      uint32
		Ringevents uint32
		Pid        uint32
		Started    uint64
		Realtime   uint64
		Posted     uint32
		Taken      uint32
		Control    [32]rawControl
		Used       uint32
		Uses       uint32
		Lacks      uint64
		Asks       uint32
		Answered   uint32
		Relieved   uint32
		Pad        uint32
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
		Transfers    uint32
		Pooling      uint32
		Ungated      uint32
		Scrub        uint32
		Spill        uint32
		Devicememory uint64
		Answerfree   uint64
		Copymin      uint64
		Eager        uint64
		Policy       [64]uint8
		Limits       [1024]uint8
		Neighbours   uint64
	}
)
