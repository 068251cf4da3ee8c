// Package calls says which OpenCL functions the eBPF program reports and what their calls mean. A Tracker follows the
// objects of one process from call to call and writes the events that the shim writes under the policy none, so that the
// rest of gpumemtop need not know where events come from. It reads no clock and does no I/O.
//
// Creates, commands, kernel arguments and waits are reported when they return: only then is it known whether they
// succeeded, and what they made. Retains, releases, frees and flushes are reported at their entry. That needs no second
// probe, which costs more than the first, and it gives the right order: a driver may hand a handle that it frees to
// another thread's create before the release returns, and a retain must not come after a release that relies on it. A
// call that is reported at its entry counts as a success, which it is for every object that is alive.
//
// Objects from before we attached show when they are used. They are carried over: their CREATE is CarriedOver, the
// tag "unknown before attach" and as its size what their uses imply, a lower bound. The first release of such an object
// counts as its last; if the program uses it afterwards it is carried over again, without a finding. Shared virtual
// memory from before shows only when it is freed, since a pointer says neither that it is such memory nor where that
// begins. A context, queue, kernel or sampler from before stays known until another object gets its handle.
//
// The eBPF program sees six arguments, and 128 bytes of what an argument points to. So only the first 16 objects of a
// list count, and where the error is a later argument, a failure is a result of zero without a status. No argument has
// the size of memory that belongs to OpenGL: it is 0, and counts nowhere.
//
// Tools such as opencl-intercept-layer are a libOpenCL.so.1 before the real one; both are probed. Calls recorded at
// their return count once, the inner one; those recorded at entry are dropped if they come from a loader. Releases of a
// wrapper that tail-calls the real function count twice.
package calls

import (
	"bytes"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Function is an OpenCL function that the eBPF program reports.
type Function struct {
	Name      string
	Extension bool // handed out by clGetExtensionFunctionAddress*, not exported by an ICD loader
	Shape     wire.Shape

	call handler // updates the tracker; nil: nothing to do
}

// handler is what a tracker does with a call.
type handler func(*Tracker, *wire.Sample)

// Tagger names call sites. Its methods may first write the records that define the tag that they return.
type Tagger interface {
	// Tag returns the call site of a create or copy of size bytes.
	Tag(s *wire.Sample, size uint64) uint32
	// SiteTag returns the call site of a call without a size, 0 where sizes make tags.
	SiteTag(s *wire.Sample) uint32
	// UnknownTag returns the tag of objects from before we attached.
	UnknownTag() uint32
}

// ExtensionAddress returns the name and the address that a call of clGetExtensionFunctionAddress or
// clGetExtensionFunctionAddressForPlatform asked for and returned. Any goroutine may call it.
func ExtensionAddress(s *wire.Sample) (name string, address uint64, ok bool) {
	if s.Sight != wire.SightCall || int(s.Function) >= len(Functions) || s.Result == 0 {
		return "", 0, false
	}
	if !strings.HasPrefix(Functions[s.Function].Name, "clGetExtensionFunctionAddress") {
		return "", 0, false
	}
	text := copiedText(s)
	return string(text), s.Result, len(text) > 0
}

// platformQuery is the first OpenCL function that every program calls. The loader then loads the drivers.
const platformQuery = "clGetPlatformIDs"

// IsPlatformQuery reports whether a call means only that the process is about to use OpenCL. Any goroutine may call it.
func IsPlatformQuery(s *wire.Sample) bool {
	return s.Sight == wire.SightCall && int(s.Function) < len(Functions) && Functions[s.Function].Name == platformQuery
}

// copiedText returns the first copy as text.
func copiedText(s *wire.Sample) []byte {
	text, _, _ := bytes.Cut(s.CopiedArgument(0), []byte{0})
	return text
}
