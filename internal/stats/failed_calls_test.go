package stats

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
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
	if got, want := text(after.RefusedCalls()),
		`create of a buffer of nothing at a.c:7 select failed with CL_INVALID_BUFFER_SIZE (-61) (3 times)
create of a buffer of a page, then nothing at a.c:7 select failed with CL_INVALID_HOST_PTR (-37) (2 times)
create of an image at a.c:7 select failed with CL_INVALID_IMAGE_FORMAT_DESCRIPTOR (-39)`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := before.FailedCalls[0].SentenceWithMeaning(bytesText); !strings.HasSuffix(got, ": the standard has this code where the size is 0, or larger than CL_DEVICE_MAX_MEM_ALLOC_SIZE of every device") {
		t.Error(got)
	}
}

// A status of an image comes with what the run knows that speaks against its cause in the standard.
func TestImagesThatAreRefusedOtherwise(t *testing.T) {
	const images, unlisted = "the standard has this code where no device of the context has images", "the standard does not have this code for this call"
	for name, c := range map[string]struct {
		status   int16
		made     bool // an image
		parents  []uint64
		released bool
		want     string
	}{
		"no images":        {-59, false, []uint64{1}, false, images},
		"other images":     {-59, true, []uint64{1}, false, images + ", but the process made other images"},
		"of a buffer":      {-38, true, []uint64{1, 1}, false, unlisted},
		"of two":           {-38, true, []uint64{1, 99}, false, unlisted},
		"of a released":    {-38, true, []uint64{1}, true, unlisted},
		"of another cause": {-65, true, []uint64{1}, false, "the standard has this code where the description is not valid"},
	} {
		s := newStream(Options{})
		s.miss(1, 1, 100, 100, 9)
		if c.released {
			s.release(1, wire.OutcomeCached)
		}
		for _, parent := range c.parents {
			s.feed(wire.CreateFields{Outcome: wire.OutcomeFailed, Memory: wire.MemoryImage, Status: c.status, Tag: 9, Parent: parent}.Event())
		}
		s.Snapshot()
		if c.made {
			s.feed(wire.CreateFields{Outcome: wire.OutcomeDriver, Memory: wire.MemoryImage, Object: 2, Requested: 64, Granted: 64, Tag: 9}.Event())
		}
		if got := s.Snapshot().FailedCalls; len(got) != 1 || got[0].StatusMeaning() != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
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

func (s *stream) callFails(function string, status int16) {
	r := wire.DiagFields{Diag: wire.DiagCallFailed, Status: status, Tag: 4}.Record([]byte(function))
	s.feed(r.Event, r.Payload...)
}

// What fails for the first time after a create had failed for lack of memory is not refused, but follows.
func TestCallsThatFollowAFailure(t *testing.T) {
	s := newStream(Options{})
	s.card()
	s.callFails("clCreateKernel", -46)
	if got := s.Snapshot(); len(got.RefusedCalls()) != 1 || len(got.Marks) != 0 {
		t.Errorf("before: %+v, marks %v", got.RefusedCalls(), got.Marks)
	}
	s.refuse(4096, -4, wire.MemoryBuffer)
	for range 3 {
		s.callFails("clCreateKernel", -46)
		s.callFails("clEnqueueFillBuffer", -38)
	}
	s.callFails("clWaitForEvents", -58)
	s.callFails("clFinish", -36)           // a queue needs none of that memory
	s.callFails("clEnqueueCopyBuffer", -8) // no missing memory makes regions overlap
	s.callFails("clFinish", -5)            // for lack of memory: another post-mortem, if it is one
	s.refuse(0, -61, wire.MemoryBuffer)
	got := s.Snapshot()
	const want = "2µs later clEnqueueFillBuffer at tag 4 failed with CL_INVALID_MEM_OBJECT (-38) (3 times), and after it 1 more call"
	if text := got.FailedSoonAfterText(&got.PostMortems[0]); text != want {
		t.Errorf("%q, want %q", text, want)
	}
	if refused := got.RefusedCalls(); len(refused) != 4 || refused[0].Count != 4 ||
		refused[0].Why != "the program has no kernel of this name" {
		t.Errorf("refused: %+v", refused)
	}
}

// The library makes up the status of clSVMAlloc, which the standard does not have.
func TestTheMeaningOfNoStatus(t *testing.T) {
	e := wire.CreateFields{Outcome: wire.OutcomeFailed, Memory: wire.MemorySVM, Status: -30}.Event()
	f := FailedCreateOf(e.AsCreate())
	if got := f.SentenceWithMeaning(units.Format); !strings.HasPrefix(got, "create of svm memory failed with NULL: clSVMAlloc has no codes; the size is 0") {
		t.Error(got)
	}
}

func TestAFailureWithoutAStatus(t *testing.T) {
	f := FailedCall{Call: "create of an image", Count: 1}
	if got := f.Text(nil); got != "create of an image failed" {
		t.Error(got)
	}
}

func TestBadEnds(t *testing.T) {
	for want, p := range map[string]Process{
		"signal 11 ended the process":        {State: Signaled, Status: 11},
		"signal 9 ended the process":         {State: Exited, Status: 137},
		"the process exited with status 137": {State: Exited, Status: 137, Orderly: true},
		"":                                   {State: Exited, Status: 0},
	} {
		if got := p.BadEndText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
