// Package calls says which OpenCL functions the eBPF program tells of, and what their calls mean. A Book follows the
// objects of one process from call to call and writes the events that the shim writes under the policy none, so that
// everything behind it need not know where events come from. It reads no clock and does no I/O.
//
// A create, a command, a kernel argument or a wait is told at its return: only then is it known whether it succeeded, and
// what it made. A retain, a release, a free or a flush is told at its entry. That needs no second probe, which costs more
// than the first, and it is the right moment: a handle that a driver frees in a release may be given to another thread's
// create before the release returns, and a retain that is on its way must not come behind a release that relies on it.
// What is told at the entry is taken for a success, which it is for every object that is alive.
//
// What a process had before it was watched shows itself when it is used. It becomes an object with a CREATE that carries
// wire.FlagCarried, the tag "unknown before attach", and as its size what its uses have shown: a lower bound. The first
// release of such an object is taken for its last; when the program goes on using it, it is carried over once more, and
// no mistake is made of that. Shared virtual memory from before shows itself only when it is freed, for a pointer says
// neither that it is such memory nor where that begins. A context, queue, kernel or sampler from before stays known until
// another object gets its handle.
//
// The eBPF program sees six arguments, and 128 bytes of what an argument points to. So of a list of objects the first 16
// count, and where the error comes as a later argument, a failure is a result of zero without a status. The size of
// memory that belongs to OpenGL is not in any argument: it is 0, and as somebody else's counts nowhere.
package calls

import (
	"bytes"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Function is an OpenCL function that the eBPF program tells of.
type Function struct {
	Name      string
	Extension bool // handed out by clGetExtensionFunctionAddress*, not exported by an ICD loader
	Shape     wire.Shape

	call func(*Book, *wire.Sample) // what it means to a book; nil: nothing
}

// Tagger names call sites. Its methods may put the records that define what they return, before they do.
type Tagger interface {
	// Tag returns the call site of a create or a copy of so many bytes.
	Tag(s *wire.Sample, size uint64) uint32
	// Unknown returns the tag of what was there before.
	Unknown() uint32
}

// ExtensionAddress returns what a call of clGetExtensionFunctionAddress or clGetExtensionFunctionAddressForPlatform gave
// out: the name that was asked for and the address of its function in the process. Any goroutine may call it.
func ExtensionAddress(s *wire.Sample) (name string, address uint64, ok bool) {
	if s.Sight != wire.SightCall || int(s.Function) >= len(Functions) || s.Result == 0 {
		return "", 0, false
	}
	if !strings.HasPrefix(Functions[s.Function].Name, "clGetExtensionFunctionAddress") {
		return "", 0, false
	}
	text := textOf(s)
	return string(text), s.Result, len(text) > 0
}

// greeting is what every program calls first, long before it creates anything: the loader loads the drivers then.
const greeting = "clGetPlatformIDs"

// Greeting reports whether a call means nothing but that the process is about to use OpenCL. Any goroutine may call it.
func Greeting(s *wire.Sample) bool {
	return s.Sight == wire.SightCall && int(s.Function) < len(Functions) && Functions[s.Function].Name == greeting
}

// textOf returns the text that the first copy is.
func textOf(s *wire.Sample) []byte {
	text, _, _ := bytes.Cut(s.Copy(0), []byte{0})
	return text
}
