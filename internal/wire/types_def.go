//go:build ignore

// Input of cgo -godefs: the Go names of what event.h defines. Run go generate after a change.
package wire

// #include "flight.h"
import "C"

const (
	Version = C.GMT_VERSION
	magic   = C.GMT_MAGIC

	rings       = C.GMT_RINGS
	ringEvents  = C.GMT_RING_EVENTS
	ringsOffset = C.GMT_RINGS_OFFSET
	controls    = C.GMT_CONTROLS

	// Page is where CL_MEM_USE_HOST_PTR memory should begin, in bytes.
	Page = C.GMT_PAGE

	PayloadMax = C.GMT_PAYLOAD_MAX
	StackMax   = C.GMT_STACK_MAX

	FlagOutOfOrder = C.GMT_FLAG_OUT_OF_ORDER
	FlagWhole      = C.GMT_FLAG_WHOLE
	FlagReads      = C.GMT_FLAG_READS
	FlagWrites     = C.GMT_FLAG_WRITES
	FlagWouldRace  = C.GMT_FLAG_WOULD_RACE
	FlagOrdered    = C.GMT_FLAG_ORDERED
	FlagSubAlloc   = C.GMT_FLAG_SUBALLOC
	FlagCarried    = C.GMT_FLAG_CARRIED
	FlagScattered  = C.GMT_FLAG_SCATTERED
	FlagOffPage    = C.GMT_FLAG_OFF_PAGE
	FlagArm        = C.GMT_FLAG_ARM
	FlagScript     = C.GMT_FLAG_SCRIPT
	FlagRoute      = C.GMT_FLAG_ROUTE
	FlagUnified    = C.GMT_FLAG_UNIFIED
	FlagPinned     = C.GMT_FLAG_PINNED
	FlagPageable   = C.GMT_FLAG_PAGEABLE
	FlagExposed    = C.GMT_FLAG_EXPOSED

	SizeofEvent   = C.sizeof_struct_gmtevent
	SizeofFrame   = C.sizeof_struct_gmtframe
	sizeofRing    = C.sizeof_struct_gmtring
	sizeofRegion  = C.sizeof_struct_gmtregion
	SizeofHello   = C.sizeof_struct_gmthello
	SizeofControl = C.sizeof_struct_gmtcontrol
	SizeofConfig  = C.sizeof_struct_gmtconfig

	CallArguments = C.GMT_CALL_ARGUMENTS
	commSize      = C.GMT_COMM
	CallData      = C.GMT_CALL_DATA
	CallCopies    = C.GMT_CALL_COPIES
	CallStack     = C.GMT_CALL_STACK
	SizeofCall    = C.sizeof_struct_gmtcall
	SizeofShape   = C.sizeof_struct_gmtshape
	Functions     = C.GMT_FUNCTIONS

	ShapeReturn = C.GMT_SHAPE_RETURN
	ShapeStack  = C.GMT_SHAPE_STACK
	ShapeUse    = C.GMT_SHAPE_USE

	socketName      = C.GMT_SOCKET_NAME
	outsidersName   = C.GMT_OUTSIDERS_NAME
	outsiderMax     = C.GMT_OUTSIDER_MAX
	outsiderForeign = C.GMT_OUTSIDER_FOREIGN
	outsiderAsked   = C.GMT_OUTSIDER_ASKED
	outsiderForked  = C.GMT_OUTSIDER_FORKED
	configName      = C.GMT_CONFIG_NAME
	coreName        = C.GMT_CORE_NAME
	shimName        = C.GMT_SHIM_NAME
	sessionEnv      = C.GMT_SESSION_ENV
	probeEnv        = C.GMT_PROBE_ENV

	// LogEnv names the folder for the flight log of a process without a session; LabelEnv its labels.
	LogEnv   = C.GMT_LOG_ENV
	LabelEnv = C.GMT_LABEL_ENV
	// USDTEnv lets static probes fire in a process without a session; otel: those of OpenTelemetry, too.
	USDTEnv = C.GMT_USDT_ENV
	// FlightSuffix ends the names of records of the flight log.
	FlightSuffix = C.GMT_FLIGHT_SUFFIX
	// SizeofFlight is the length of a record's file.
	SizeofFlight  = C.sizeof_struct_gmtflight
	flightMagic   = C.GMT_FLIGHT_MAGIC
	flightVersion = C.GMT_FLIGHT_VERSION
)

type (
	// Event is one event as it lies in a ring; the field comments are in event.h.
	Event C.struct_gmtevent
	// Frame is one frame of a tag's call stack.
	Frame C.struct_gmtframe

	// Call is what the eBPF program records of a call; the field comments are in event.h.
	Call C.struct_gmtcall
	// Copy is one thing that arguments point to and that is recorded with a call.
	Copy C.struct_gmtcopy
	// Shape says what to record of a function.
	Shape C.struct_gmtshape

	// Flight is a record of the flight log; the field comments are in flight.h.
	Flight C.struct_gmtflight
	// FlightCounts are the counts of a call site or a process.
	FlightCounts C.struct_gmtflightcounts
	// FlightSite is a call site of a Flight.
	FlightSite C.struct_gmtflightsite
	// FlightModule is what frames lie in.
	FlightModule C.struct_gmtflightmodule
	// FlightFailure counts creates that failed with one status.
	FlightFailure C.struct_gmtflightfailure

	rawRegion  C.struct_gmtregion
	rawRing    C.struct_gmtring
	rawHello   C.struct_gmthello
	rawControl C.struct_gmtcontrol
	rawConfig  C.struct_gmtconfig
)
