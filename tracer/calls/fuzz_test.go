package calls_test

import (
	"encoding/binary"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
)

// chunk is the bytes of one call of a fuzzed program: for its function, result, arguments and copies.
const chunk = 16

// hostile makes a call of any function, with large numbers, or handles from a small set so that calls share objects.
func hostile(b []byte, now uint64) *wire.Sample {
	s := &wire.Sample{Call: wire.Call{Time: now, Function: uint16(b[0]) % 100, Tid: uint32(b[1] & 1), Ip: uint64(b[2] & 3)}}
	s.Entered = now - min(uint64(b[1]>>4)*4, now)
	s.Result, s.Error = value(b[3]), int32(int8(b[4]))
	if b[1]&4 != 0 {
		s.Result = uint64(b[4])
	}
	for i := range s.Argument {
		s.Argument[i] = value(b[5+i])
	}
	if b[1]&8 != 0 {
		s.Copies = make([]byte, wire.CallData)
		for i := range wire.CallData / 8 {
			binary.LittleEndian.PutUint64(s.Copies[8*i:], value(b[11+i%5]))
		}
		s.Copied = [2]uint8{b[1] & 1, b[1] >> 1 & 1}
	}
	return s
}

// value is the number for a byte.
func value(b byte) uint64 {
	switch {
	case b < 32:
		return uint64(b)
	case b < 160:
		return 0x1000 + uint64(b&31)
	case b < 192:
		return 0x10F0 + uint64(b-160)
	case b < 224:
		return uint64(b) << 20
	default:
		return ^uint64(0) << (b & 63)
	}
}

// FuzzTracker: no calls make a tracker fail, miscount, or write invalid records.
func FuzzTracker(f *testing.F) {
	p := newSampler(f)
	p.setUp()
	f.Add([]byte("0123456789abcdef0123456789ABCDEF"))
	for i := range calls.Functions {
		f.Add([]byte{byte(i), 0x38, 1, 64, 0, 64, 65, 2, 2, 2, 2, 66, 1, 1, 66, 66, byte(i), 0xf8, 1, 0, 0, 64, 65, 2, 2, 2, 2, 66, 1, 1, 66, 66})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var at tags
		now, numbers := uint64(0), uint64(0)
		tracker := calls.NewTracker(&at, func(r *wire.Record) {
			if r.Time != now || r.Process != 0 || len(r.Payload) != r.PayloadLen() {
				t.Fatalf("%+v at %d", r, now)
			}
			if r.Kind != wire.KindCreate || r.Outcome == wire.OutcomeFailed {
				return
			}
			if r.Object > numbers+1 || r.Object <= numbers && r.Flags&wire.FlagCarried == 0 {
				t.Fatalf("object %d after %d", r.Object, numbers)
			}
			numbers = max(numbers, r.Object)
		})
		made := 0
		for ; len(data) >= chunk; data = data[chunk:] {
			now += 1 + uint64(data[15])
			raw := wire.AppendSample(nil, hostile(data, now))
			var s wire.Sample
			if err := wire.DecodeSample(raw, &s); err != nil {
				t.Fatal(err)
			}
			tracker.HandleCall(&s)
			calls.ExtensionAddress(&s)
			if made++; made%64 == 7 {
				tracker.NoteCallsLost()
			}
			if err := tracker.Check(); err != nil {
				t.Fatalf("%s: %v", name(&s), err)
			}
		}
		a, b, c, d, e := tracker.Sizes()
		if max(a, b, c, d, e) > made*20 {
			t.Errorf("%d calls, and %d %d %d %d %d objects", made, a, b, c, d, e)
		}
		for _, sight := range []wire.Sight{wire.SightFork, wire.SightExit, 77} {
			tracker.HandleCall(&wire.Sample{Call: wire.Call{Sight: sight, Result: 5}})
		}
	})
}

func name(s *wire.Sample) string {
	if int(s.Function) < len(calls.Functions) {
		return calls.Functions[s.Function].Name
	}
	return "none"
}

// TestLeakingProcessDoesNotExhaustUs: a process that leaks as much as it can does not exhaust our memory.
func TestLeakingProcessDoesNotExhaustUs(t *testing.T) {
	var at tags
	creates := 0
	tracker := calls.NewTracker(&at, func(r *wire.Record) {
		if r.Kind == wire.KindCreate {
			creates++
		}
	})
	tell := func(c call) { tracker.HandleCall(c.sample(t, 100, 1)) }
	for i := range uint64(70000) {
		tell(call{name: "clCreateContext", result: 1<<32 + i})
		tell(call{name: "clFinish", args: []uint64{2<<32 + i}})
		tell(call{name: "clSetKernelArgSVMPointer", args: []uint64{3<<32 + i, 1023, 9}})
		tell(call{name: "clCreateSampler", result: 4<<32 + i})
	}
	tell(call{name: "clSetKernelArgSVMPointer", args: []uint64{3 << 32, 1 << 30, 9}})
	const room = 1 << 20
	for i := range uint64(room + 1000) {
		tell(call{name: "clCreateBuffer", result: 5<<32 + i, args: []uint64{1 << 32, 0, 1, 0}})
	}
	for i := range uint64(2000) {
		tell(call{name: "clReleaseMemObject", args: []uint64{5<<32 + room + i}})
	}
	if err := tracker.Check(); err != nil {
		t.Fatal(err)
	}
	contexts, queues, kernels, samplers, memories := tracker.Sizes()
	if contexts != 1<<16 || queues != 1<<16 || kernels != 1<<16 || samplers != 1<<16 || memories != room || creates != room {
		t.Errorf("%d contexts, %d queues, %d kernels, %d samplers, %d memory objects of %d creates", contexts, queues, kernels, samplers, memories, creates)
	}
}
