package calls_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
)

// answers are those of testdata/eligible.c, which asks the shim.
type answers struct {
	t    *testing.T
	list []byte
	next int
}

func shimAnswers(t *testing.T) *answers {
	t.Helper()
	program := filepath.Join(t.TempDir(), "eligible")
	gcc := exec.Command("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-Wl,--gc-sections", "-o", program,
		"testdata/eligible.c", "../../shim/pool/plan.c")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	list, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	return &answers{t: t, list: list}
}

// compare checks that Go's reason is that of the header, and that the shim follows it.
func (a *answers) compare(r *wire.PoolRequest) {
	if a.next == len(a.list) {
		a.t.Fatalf("the shim has no answer number %d", a.next)
	}
	got, want := r.Ineligible(), wire.Ineligible(a.list[a.next]&^128)
	if got != want {
		a.t.Fatalf("%+v: %s, in C %s", *r, got, want)
	}
	if eligible := a.list[a.next]&128 != 0; eligible != (want == wire.IneligibleNone) {
		a.t.Fatalf("%+v: the shim serves it: %t, although the rules say %s", *r, eligible, want)
	}
	a.next++
}

const (
	smallest = wire.CopyMin
	largest  = 2 * wire.CopyMin
)

// eachRequest visits requests in the order of testdata/eligible.c.
func eachRequest(visit func(*wire.PoolRequest)) {
	for memory := range wire.MemoryExternal + 1 {
		for _, unknown := range []uint64{0, 1 << 13, 1 << 31, 1 << 32, 1 << 63} {
			for flags := range uint64(1 << 13) {
				for _, size := range []uint64{0, 1, smallest - 1, smallest, largest, largest + 1} {
					for _, contents := range []bool{false, true} {
						visit(&wire.PoolRequest{
							Memory: memory, Flags: flags | unknown, Size: size, Largest: largest, Smallest: smallest, Contents: contents,
						})
					}
				}
			}
		}
	}
}

func TestEligibleAsInTheShim(t *testing.T) {
	a, asked := shimAnswers(t), newBufferTracker()
	eachRequest(func(r *wire.PoolRequest) {
		switch r.Memory {
		case wire.MemoryBuffer:
			for list := range uint64(3) {
				r.Properties = list > 0
				a.compare(r)
				if got, want := asked.serves(r, list), a.withoutLimit(); got != want {
					t.Fatalf("%+v: a pool could have served it: %t to attach, %t to the shim", *r, got, want)
				}
			}
		case wire.MemoryImage:
			for image := range 4 {
				r.Largest, r.Array = 0, image > 1
				a.compare(r)
			}
		case wire.MemorySVM, wire.MemoryUSMHost, wire.MemoryUSMDevice, wire.MemoryUSMShared:
			if r.Contents { // no call gives it any
				return
			}
			for list := range 3 {
				for _, alignment := range []uint64{0, 64, 48} {
					r.Properties, r.Alignment = list > 1, alignment
					a.compare(r)
				}
			}
		default:
			a.compare(r)
		}
	})
	if a.next != len(a.list) {
		t.Errorf("the shim has %d answers more", len(a.list)-a.next)
	}
}

// withoutLimit reports whether the shim would have served the buffer compared last if the device had no limit. A buffer of
// the size before, which is the limit, differs in nothing else; each size has six answers.
func (a *answers) withoutLimit() bool {
	last := a.list[a.next-1]
	if wire.Ineligible(last) == wire.IneligibleTooLarge {
		last = a.list[a.next-7]
	}
	return last&128 != 0
}

// bufferTracker follows a program that creates buffers.
type bufferTracker struct {
	tracker *calls.Tracker
	outcome wire.Outcome // of the latest
	now     uint64
}

func newBufferTracker() *bufferTracker {
	b := &bufferTracker{}
	b.tracker = calls.NewTracker(&tags{}, func(r *wire.Record) {
		if r.Kind == wire.KindCreate {
			b.outcome = r.AsCreate().Outcome()
		}
	})
	return b
}

// serves reports whether the tracker says that a pool could have served a buffer. Without a list, it is one of clCreateBuffer.
func (b *bufferTracker) serves(r *wire.PoolRequest, list uint64) bool {
	b.now += 20
	s := &wire.Sample{Call: wire.Call{Time: b.now, Entered: b.now - 10, Tid: 7, Result: buf, Function: numbers["clCreateBuffer"]}}
	arguments := []uint64{ctx, r.Flags, r.Size, 0}
	if r.Contents {
		arguments[3] = 0x5000
	}
	if list > 0 {
		s.Function = numbers["clCreateBufferWithProperties"]
		arguments = slices.Insert(arguments, 1, list)
	}
	copy(s.Argument[:], arguments)
	b.outcome = 0
	b.tracker.HandleCall(s)
	return b.outcome == wire.OutcomeMiss
}
