package export

import "google.golang.org/protobuf/encoding/protowire"

// The numbers of the fields of Perfetto's messages, from the .proto files below protos/perfetto/trace in its repository
// (github.com/google/perfetto): trace.proto, trace_packet.proto, trace_packet_defaults.proto, clock_snapshot.proto,
// interned_data/interned_data.proto, profiling/profile_common.proto, and track_event/track_event.proto, track_descriptor.proto,
// process_descriptor.proto, thread_descriptor.proto, counter_descriptor.proto, debug_annotation.proto.
const (
	tracePacket protowire.Number = 1

	packetClocks      protowire.Number = 6
	packetTimestamp   protowire.Number = 8
	packetSequence    protowire.Number = 10
	packetEvent       protowire.Number = 11
	packetInterned    protowire.Number = 12
	packetFlags       protowire.Number = 13
	packetClock       protowire.Number = 58
	packetDefaults    protowire.Number = 59
	packetTrack       protowire.Number = 60
	packetFirst       protowire.Number = 87
	defaultsEvent     protowire.Number = 11
	defaultsClock     protowire.Number = 58
	eventDefaultTrack protowire.Number = 11

	snapshotClock    protowire.Number = 1
	clockID          protowire.Number = 1
	clockTimestamp   protowire.Number = 2
	clockIncremental protowire.Number = 3

	internedCategories protowire.Number = 1
	internedNames      protowire.Number = 2
	internedKeys       protowire.Number = 3
	internedFunctions  protowire.Number = 5
	internedFrames     protowire.Number = 6
	internedStacks     protowire.Number = 7
	internedModules    protowire.Number = 17
	internedFiles      protowire.Number = 18
	internedMappings   protowire.Number = 19
	internedID         protowire.Number = 1
	internedText       protowire.Number = 2 // of all interned messages but mappings, frames and stacks
	mappingPath        protowire.Number = 7
	frameFunction      protowire.Number = 2
	frameMapping       protowire.Number = 3
	frameOffset        protowire.Number = 4
	frameFile          protowire.Number = 5
	frameLine          protowire.Number = 6
	stackFrames        protowire.Number = 2

	eventCategories  protowire.Number = 3
	eventAnnotations protowire.Number = 4
	eventType        protowire.Number = 9
	eventName        protowire.Number = 10
	eventTrack       protowire.Number = 11
	eventCounter     protowire.Number = 30
	eventDoubleCount protowire.Number = 44
	eventFlows       protowire.Number = 47
	eventLastFlows   protowire.Number = 48
	eventStack       protowire.Number = 56
	annotationKey    protowire.Number = 1
	annotationTruth  protowire.Number = 2
	annotationNumber protowire.Number = 3
	annotationSigned protowire.Number = 4
	annotationDouble protowire.Number = 5
	annotationText   protowire.Number = 6
	trackID          protowire.Number = 1
	trackName        protowire.Number = 2
	trackProcess     protowire.Number = 3
	trackThread      protowire.Number = 4
	trackParent      protowire.Number = 5
	trackCounter     protowire.Number = 8
	processPID       protowire.Number = 1
	processName      protowire.Number = 6
	threadPID        protowire.Number = 1
	threadTID        protowire.Number = 2
	threadName       protowire.Number = 5
	counterUnit      protowire.Number = 3
)

// Values of enumerations, and ids of clocks.
const (
	typeBegin   = 1
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	unitCount = 2
	unitBytes = 3

	sequenceCleared = 1

	clockBoot     = 6  // of the trace's times
	clockSteps    = 64 // times are differences from the one before
	clockAbsolute = 65
)

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendBytes[T []byte | string](b []byte, field protowire.Number, content T) []byte {
	b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(len(content)))
	return append(b, content...)
}

func appendFixed(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), n)
}
