package stats

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func bytesText(n uint64) string { return map[uint64]string{0: "nothing", 4096: "a page"}[n] }

// Failures are one by call site and status, with the first and the last size; those that were one call site all along are joined.
func TestFailedCallsAreCounted(t *testing.T) {
	s := newStream(Options{})
	s.card()
	s.refuse(0, -61, wire.MemoryBuffer)
	s.refuse(4096, -37, wire.MemoryBuffer)
	s.refuse(0, -61, wire.MemoryBuffer)
	s.refuse(0, -39, wire.MemoryImage)
	s.feed(wire.CreateFields{Outcome: wire.OutcomeFailed, Status: -37, Tag: 8, Requested: 0}.Event())
	s.refuse(4096, -61, wire.MemoryBuffer) // larger than nothing: memory is short
	s.miss(1, 1, 100, 100, 9)              // which is no failure
	before := s.Snapshot()
	for _, tag := range []uint32{8, 9} {
		s.site(tag, "select\ta.c\t7\tapp+0x10\n")
	}
	s.process = 2
	s.site(5, "select\ta.c\t7\tapp+0x10\n")
	s.feed(wire.CreateFields{Outcome: wire.OutcomeFailed, Status: -61, Tag: 5, Requested: 0}.Event())
	after := s.Snapshot()
	text := func(list []FailedCall) string {
		var lines []string
		for i := range list {
			lines = append(lines, list[i].Text(bytesText))
		}
		return strings.Join(lines, "\n")
	}
	if got, want := text(before.FailedCalls), `create of a buffer of nothing at tag 9 failed with CL_INVALID_BUFFER_SIZE (-61) (2 times)
create of a buffer of a page at tag 9 failed with CL_INVALID_HOST_PTR (-37)
create of an image at tag 9 failed with CL_INVALID_IMAGE_FORMAT_DESCRIPTOR (-39)
create of a buffer of nothing at tag 8 failed with CL_INVALID_HOST_PTR (-37)
create of a buffer of a page at tag 9 failed with CL_INVALID_BUFFER_SIZE (-61)`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := text(after.Refused()), `create of a buffer of nothing at a.c:7 select failed with CL_INVALID_BUFFER_SIZE (-61) (3 times)
create of a buffer of a page, then nothing at a.c:7 select failed with CL_INVALID_HOST_PTR (-37) (2 times)
create of an image at a.c:7 select failed with CL_INVALID_IMAGE_FORMAT_DESCRIPTOR (-39)`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := before.FailedCalls[0].Sentence(bytesText); !strings.HasSuffix(got, ": by the standard, the size is 0, or larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE of every device") {
		t.Error(got)
	}
}

func TestFailedCallsAreBounded(t *testing.T) {
	s := newStream(Options{})
	for tag := range uint32(3 * FailedCallsMax) {
		s.feed(wire.CreateFields{Outcome: wire.OutcomeFailed, Status: -61, Tag: tag + 1}.Event())
	}
	if got := s.Snapshot(); len(got.FailedCalls) != FailedCallsMax || got.OtherFailed != 2*FailedCallsMax {
		t.Errorf("%d calls and %d others", len(got.FailedCalls), got.OtherFailed)
	}
}
