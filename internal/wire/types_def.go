//go:build ignore

// Input of cgo -godefs: the Go names of what event.h defines. Run go generate after a change.
package wire

// #include "event.h"
import "C"

const (
	Version = C.GMT_VERSION
	magic   = C.GMT_MAGIC

	rings       = C.GMT_RINGS
	ringEvents  = C.GMT_RING_EVENTS
	ringsOffset = C.GMT_RINGS_OFFSET

	PayloadMax = C.GMT_PAYLOAD_MAX
	StackMax   = C.GMT_STACK_MAX

	FlagOutOfOrder = C.GMT_FLAG_OUT_OF_ORDER
	FlagReads      = C.GMT_FLAG_READS
	FlagWrites     = C.GMT_FLAG_WRITES
	FlagWouldRace  = C.GMT_FLAG_WOULD_RACE
	FlagOrdered    = C.GMT_FLAG_ORDERED
	FlagPart       = C.GMT_FLAG_PART
	FlagCarried    = C.GMT_FLAG_CARRIED

	SizeofEvent   = C.sizeof_struct_gmtevent
	SizeofFrame   = C.sizeof_struct_gmtframe
	sizeofRing    = C.sizeof_struct_gmtring
	sizeofRegion  = C.sizeof_struct_gmtregion
	SizeofHello   = C.sizeof_struct_gmthello
	SizeofControl = C.sizeof_struct_gmtcontrol
	SizeofConfig  = C.sizeof_struct_gmtconfig

	socketName = C.GMT_SOCKET_NAME
	configName = C.GMT_CONFIG_NAME
	coreName   = C.GMT_CORE_NAME
	shimName   = C.GMT_SHIM_NAME
	sessionEnv = C.GMT_SESSION_ENV
	probeEnv   = C.GMT_PROBE_ENV
)

type (
	// Event is one event as it lies in a ring; the field comments are in event.h.
	Event C.struct_gmtevent
	// Frame is one frame of a tag's call stack.
	Frame C.struct_gmtframe

	rawRegion  C.struct_gmtregion
	rawRing    C.struct_gmtring
	rawHello   C.struct_gmthello
	rawControl C.struct_gmtcontrol
	rawConfig  C.struct_gmtconfig
)
