package calls_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
)

// notReported are functions that the shim hooks and the eBPF program does not report.
var notReported = map[string]string{
	"clSetContextDestructorCallback":   "a callback, which the shim only keeps out of the pool's way",
	"clSetMemObjectDestructorCallback": "a callback, which the shim only keeps out of the pool's way",
	"clBuildProgram":                   "the shim reports that it failed; attach reports that of creates of memory alone",
	"clCompileProgram":                 "the shim reports that it failed; attach reports that of creates of memory alone",
	"clSetEventCallback":               "a callback, from which the pool learns that a command has completed",
	"clGetContextInfo":                 "a query, whose answer the pool must not change",
	"clGetPlatformInfo":                "a query, whose answer --spill changes",
	"clGetDeviceIDs":                   "reported only of programs that end before they have a context",
	"clGetDeviceInfo":                  "a query, whose answer the pool must not change",
	"clGetCommandQueueInfo":            "a query, whose answer the pool must not change",
	"clGetMemObjectInfo":               "a query, whose answer the pool must not change",
	"clGetImageInfo":                   "a query, whose answer the pool must not change",
	"clGetPipeInfo":                    "a query, hooked only because a handle may be virtual",
	"clGetGLObjectInfo":                "a query, hooked only because a handle may be virtual",
	"clGetGLTextureInfo":               "a query, hooked only because a handle may be virtual",
	"clGetEventInfo":                   "a query, from which the pool learns that a command has completed",
	"clGetEventProfilingInfo":          "a query, from which the pool learns that a command has completed",
	"clSetUserEventStatus":             "the pool waits for events, and no record is about their status",
	"clEnqueueBarrier":                 "order within queues: names no memory, and has no event",
	"clCreateCommandBufferKHR":         "command buffers: their uses are unknown, and the shim records only their replays",
	"clRetainCommandBufferKHR":         "command buffers: their uses are unknown, and the shim records only their replays",
	"clReleaseCommandBufferKHR":        "command buffers: their uses are unknown, and the shim records only their replays",
	"clTerminateContextKHR":            "ends pooling, and no record is about it",
	"clGetMemAllocInfoINTEL":           "a query, whose answer the pool must not change",
	"clSetKernelExecInfo":              "the pool must know that a kernel follows pointers, and no record says it",
	"clEnqueueMemsetINTEL":             "replaced by clEnqueueMemFillINTEL",
	"clEnqueueMemAdviseINTEL":          "advice neither reads nor writes",
}

// beyondShim are functions that the shim need not hook.
var beyondShim = map[string]string{
	"clGetPlatformIDs": "the shim knows its process",
}

// TestTableAndShim: both cover the same functions, except for those listed with a reason.
func TestTableAndShim(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "shim", "base", "hooks.def"))
	if err != nil {
		t.Fatal(err)
	}
	hooks := map[string]bool{} // whether it is an extension
	for _, m := range regexp.MustCompile(`(?m)^HOOK(_EXTENSION)?\((\w+)\)`).FindAllStringSubmatch(string(source), -1) {
		hooks[m[2]] = m[1] != ""
	}
	if len(hooks) < 80 {
		t.Fatalf("only %d hooks found", len(hooks))
	}
	for i := range calls.Functions {
		f := &calls.Functions[i]
		extension, hooked := hooks[f.Name]
		if hooked == (beyondShim[f.Name] != "") {
			t.Errorf("%s: in hooks.def %v, but the reason to report it without a hook is %q", f.Name, hooked, beyondShim[f.Name])
		}
		if hooked && extension != f.Extension {
			t.Errorf("%s: extension %v, in hooks.def %v", f.Name, f.Extension, extension)
		}
		delete(hooks, f.Name)
	}
	for name := range hooks {
		if notReported[name] == "" {
			t.Errorf("%s is in hooks.def but not in the table, without a reason", name)
		}
	}
	for name := range notReported {
		if _, hooked := hooks[name]; !hooked {
			t.Errorf("%s is in the table, or not a hook", name)
		}
	}
}

// TestShapes: the shapes are valid.
func TestShapes(t *testing.T) {
	if len(calls.Functions) > wire.Functions {
		t.Fatalf("%d functions, room for %d", len(calls.Functions), wire.Functions)
	}
	seen := map[string]bool{}
	for i := range calls.Functions {
		f := &calls.Functions[i]
		if seen[f.Name] {
			t.Errorf("%s twice", f.Name)
		}
		seen[f.Name] = true
		shape := &f.Shape
		returned := shape.Flags&wire.ShapeReturn != 0
		if !returned && (shape.Error != 0 || shape.Flags&wire.ShapeStack != 0) {
			t.Errorf("%s: an error or a stack at the entry", f.Name)
		}
		ends := strings.Contains(f.Name, "Release") && !strings.Contains(f.Name, "GL") || strings.HasSuffix(strings.TrimSuffix(f.Name, "INTEL"), "Free") || strings.HasPrefix(f.Name, "clRetain")
		if ends && returned {
			t.Errorf("%s: reported at the return, when another thread may have the handle", f.Name)
		}
		if (strings.HasPrefix(f.Name, "clEnqueue") || strings.HasPrefix(f.Name, "clSetKernelArg")) && f.Name != "clEnqueueSVMFree" && shape.Flags&wire.ShapeUse == 0 {
			t.Errorf("%s is not a use", f.Name)
		}
		if shape.Error > wire.CallArguments || shape.Object > wire.CallArguments {
			t.Errorf("%s: an argument on the stack", f.Name)
		}
		if shape.Event != 0 && !returned {
			t.Errorf("%s: an event at the entry", f.Name)
		}
		for _, c := range shape.Copy {
			if c.Argument > wire.CallArguments || c.Count > wire.CallArguments || c.Unit > wire.CallData/wire.CallCopies || c.Argument != 0 && c.Unit == 0 {
				t.Errorf("%s: invalid copy %+v", f.Name, c)
			}
		}
	}
}

func TestExtensionAddress(t *testing.T) {
	name := [2][]byte{[]byte("clMemFreeINTEL\x00clOther")}
	for _, test := range []struct {
		call    call
		name    string
		address uint64
		ok      bool
	}{
		{call{name: "clGetExtensionFunctionAddress", result: 0x7000, copies: name}, "clMemFreeINTEL", 0x7000, true},
		{call{name: "clGetExtensionFunctionAddressForPlatform", result: 0x8000, copies: name}, "clMemFreeINTEL", 0x8000, true},
		{call{name: "clGetExtensionFunctionAddress", copies: name}, "", 0, false},
		{call{name: "clGetExtensionFunctionAddress", result: 0x7000}, "", 0x7000, false},
		{call{name: "clCreateKernel", result: 0x7000, copies: name}, "", 0, false},
	} {
		got, address, ok := calls.ExtensionAddress(test.call.sample(t, 100, 1))
		if got != test.name || address != test.address || ok != test.ok {
			t.Errorf("%+v: %q at %#x, %v", test.call, got, address, ok)
		}
	}
	s := &wire.Sample{Call: wire.Call{Function: 60000, Result: 1}}
	if _, _, ok := calls.ExtensionAddress(s); ok {
		t.Error("an address from no function")
	}
	p := newSampler(t)
	p.do(call{name: "clGetExtensionFunctionAddress", result: 0x7000, copies: name})
	p.want("")
}

func TestIsPlatformQuery(t *testing.T) {
	for name, want := range map[string]bool{"clGetPlatformIDs": true, "clCreateContext": false} {
		c := call{name: name}
		if got := calls.IsPlatformQuery(c.sample(t, 100, 1)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if calls.IsPlatformQuery(&wire.Sample{Call: wire.Call{Function: 60000}}) || calls.IsPlatformQuery(&wire.Sample{Call: wire.Call{Sight: wire.SightFork}}) {
		t.Error("a query by an unknown function")
	}
	p := newSampler(t)
	p.do(call{name: "clGetPlatformIDs"})
	p.want("")
}
