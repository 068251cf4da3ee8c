// Package callsite names call sites, kernels, processes and devices from the records that describe them. All names come
// from the target, so they are cleaned and bounded here.
package callsite

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The names of rows that have no call site of their own.
const (
	Slabs    = "(slabs)"    // free memory in slabs
	Untagged = "(untagged)" // requests without a tag
)

// wrappers matches functions that only pass a request on. A tag is named after the program's first frame whose function
// matches none of them; if there is none, after the first such frame of a library.
var wrappers = sync.OnceValue(func() *regexp.Regexp {
	// The Khronos C++ bindings; the API itself, as in a program's own dispatch table; containers, allocators, make_shared.
	return regexp.MustCompile(`^cl::|^cl[A-Z]|^std::|^__gnu_cxx::|operator new`)
})

// ownWrappers matches the wrappers that the user names; nil: none.
var ownWrappers *regexp.Regexp

// SetWrapperPattern adds wrappers to the usual ones, by their function or by their name in tables ("pool.c:88 my_alloc"); nil: none. It
// holds for the whole process, because a call site must not have two names. Call it before any name is made, and from one
// goroutine only.
func SetWrapperPattern(pattern *regexp.Regexp) { ownWrappers = pattern }

// TagNameOf returns the name that a TAG or SITE record gives its tag, "" if none.
func TagNameOf(r *wire.Record) string {
	if r.Kind == wire.KindSite {
		return siteName(FramesAfterWrappers(r.Payload))
	}
	switch e := r.AsTag(); e.Mode() {
	case wire.TagsSize:
		return "size " + narrowSizeText(e.Value())
	case wire.TagsThread:
		return fmt.Sprintf("thread %d", e.Value())
	}
	return ""
}

// siteName names a call site after the program's own frame that is nearest to the call, and after the library function that it
// calls, because otherwise all calls through a library would have one name.
func siteName(frames []Frame) string {
	if len(frames) == 0 {
		return ""
	}
	at, first := namingFrame(frames), &frames[0]
	if at == 0 || first.Function == "" && first.Module == frames[at].Module {
		return frames[at].ShortText()
	}
	return frames[at].ShortText() + " via " + first.functionOrModule()
}

// namingFrame returns the index of the frame after which a call site is named: the program's own frame that is nearest to the
// call, or else the first one. If that frame has only an offset in a library, the next frame in the library with a name
// replaces it; if no frame is the program's own, the next frame with a name does.
func namingFrame(frames []Frame) int {
	nearest := nearestOwnFrame(frames)
	at := max(0, nearest)
	if f := &frames[at]; f.Function != "" || f.File != "" || !strings.Contains(BaseName(f.Module), ".so") {
		return at
	}
	for i := at + 1; i < len(frames); i++ {
		if frames[i].Function != "" && (nearest < 0 || frames[i].Module == frames[at].Module) {
			return i
		}
	}
	return at
}

// libraries matches files that belong to no single program, and the code of Python and node themselves.
var libraries = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(/usr(/local)?)?/(lib|lib32|lib64|include)/|/(site|dist)-packages/|/node_modules/|^node:|^<frozen `)
})

// isLibrary reports whether a frame is in a library, or in a header of one.
func (f *Frame) isLibrary() bool {
	if f.isGeneratedCode() && f.File == "" {
		return runtimes().MatchString(f.Function)
	}
	return libraries().MatchString(f.File) || libraries().MatchString(f.Module)
}

// functionOrModule returns the function, or the module up to its first dot.
func (f *Frame) functionOrModule() string {
	if f.Function != "" {
		return f.Function
	}
	module, _, _ := strings.Cut(BaseName(f.Module), ".")
	return cmp.Or(module, f.ShortText())
}

// StackTexts returns the frames of a SITE payload as text, innermost first.
func StackTexts(payload []byte) []string {
	var stack []string
	for _, f := range parseFrames(payload) {
		stack = append(stack, f.LongText())
	}
	return stack
}

// StackFrames returns the frames of a SITE payload, innermost first.
func StackFrames(payload []byte) []Frame { return parseFrames(payload) }

// NamingModule returns the module of the frame after which a SITE payload is named, or its file if it has no module.
func NamingModule(payload []byte) string {
	frames := FramesAfterWrappers(payload)
	if len(frames) == 0 {
		return ""
	}
	f := frames[namingFrame(frames)]
	return BaseName(cmp.Or(f.Module, f.File))
}

// nearestOwnFrame returns the index of the program's own frame that is nearest to the call, -1 if all are of libraries. Wrappers
// count only if there is no other. A stripped library outside of the usual folders may be the program's own: it counts if no
// frame farther out has a line.
func nearestOwnFrame(frames []Frame) int {
	passes := func(f *Frame) bool { return f.isLibrary() || f.isWrapper() }
	at := nearestFrameExcept(frames, passes)
	if at < 0 {
		return nearestFrameExcept(frames, (*Frame).isLibrary)
	}
	if !isStripped(frames, &frames[at]) {
		return at
	}
	if lined := slices.IndexFunc(frames, func(f Frame) bool { return f.File != "" && !passes(&f) }); lined >= 0 {
		return lined
	}
	return at
}

// isStripped reports whether a frame is in a shared library without names: none of its frames has function or line.
func isStripped(frames []Frame, f *Frame) bool {
	return f.File == "" && strings.Contains(BaseName(f.Module), ".so") && slices.ContainsFunc(frames, func(o Frame) bool {
		return o.Module == f.Module && o.Function == "" && o.File == ""
	})
}

// nearestFrameExcept returns the index of the nearest frame for which passes is false, -1 if there is none. Generated code is
// preferred: native code between it and OpenCL, such as a native method of Java, only binds the two.
func nearestFrameExcept(frames []Frame, passes func(*Frame) bool) int {
	binding := -1
	for i := range frames {
		switch f := &frames[i]; {
		case !f.isGeneratedCode() || passes(f):
		case binding < 0 && f.File == "" && !frames[max(0, i-1)].isGeneratedCode():
			binding = i
		default:
			return i
		}
	}
	if binding >= 0 {
		return binding
	}
	return slices.IndexFunc(frames, func(f Frame) bool { return !passes(&f) })
}

// isGeneratedCode reports whether a frame is in code that is in no file.
func (f *Frame) isGeneratedCode() bool { return f.Module == "" && f.Offset != 0 }

// HasUnnamedCode reports whether the stack of a SITE payload has generated code without a name. The language's runtime may name such
// code when the program ends.
func HasUnnamedCode(payload []byte) bool {
	return slices.ContainsFunc(FramesAfterWrappers(payload), func(f Frame) bool { return f.isGeneratedCode() && f.Function == "" && f.File == "" })
}

// runtimes matches functions of the runtimes of node (first group) and Java (second group, empty for code without a name).
var runtimes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(Builtin|BytecodeHandler|Stub|RegExp):|^(Interpreter|call_stub|StubRoutines.*|~.*|[a-z]+ (java|jdk|sun)\..*)?$`)
})

// Frame is one frame of a call stack. Unknown fields are empty.
type Frame struct {
	Function, File string
	Line           int
	Module         string // path
	Offset         uint64 // of the return address in Module
}

// ShortText returns the name of a tag whose first frame this is, the short form for tables: "file.c:88 function",
// "function module+0x12" or "module+0x1234".
func (f *Frame) ShortText() string {
	if f.isGeneratedCode() && f.Function != "" && f.File == "" {
		return f.Function
	}
	if f.File == "" {
		return joinWords(f.Function, BaseName(f.moduleAndOffset()))
	}
	return joinWords(f.sourceText(BaseName(f.File)), f.Function)
}

// FramesAfterWrappers returns the frames of a SITE payload, innermost first, without the wrappers before the first other frame.
func FramesAfterWrappers(payload []byte) []Frame {
	frames := parseFrames(payload)
	if len(frames) > 0 {
		frames = frames[firstNonWrapper(frames):]
	}
	return frames
}

// framesMax is the most frames of one call site.
const framesMax = 64

// parseFrames reads a SITE payload, innermost frame first, and skips empty lines.
func parseFrames(payload []byte) []Frame {
	var frames []Frame
	for raw := range wire.ParseSite(payload) {
		f := Frame{
			Function: CleanText([]byte(raw.Function)), File: CleanText([]byte(raw.File)), Line: int(min(raw.Line, math.MaxInt32)),
			Module: CleanText([]byte(raw.Module)), Offset: raw.Offset,
		}
		if f != (Frame{}) && len(frames) < framesMax {
			frames = append(frames, f)
		}
	}
	return frames
}

// firstNonWrapper returns the index of the first frame that is not a wrapper, 0 if all are.
func firstNonWrapper(frames []Frame) int {
	return max(0, slices.IndexFunc(frames, func(f Frame) bool { return !f.isWrapper() }))
}

func (f *Frame) isWrapper() bool {
	if ownWrappers != nil && (ownWrappers.MatchString(f.Function) || ownWrappers.MatchString(f.ShortText())) {
		return true
	}
	return f.Function != "" && wrappers().MatchString(f.Function)
}

// moduleAndOffset returns "module+0xoffset", or the module alone if the offset is unknown.
func (f *Frame) moduleAndOffset() string {
	if f.Offset == 0 {
		return f.Module
	}
	return fmt.Sprintf("%s+0x%x", f.Module, f.Offset)
}

// LongText returns the long form for stacks.
func (f *Frame) LongText() string {
	if f.File == "" {
		return joinWords(f.Function, f.moduleAndOffset())
	}
	return joinWords(f.Function, f.sourceText(f.File))
}

func (f *Frame) sourceText(file string) string {
	if f.Line == 0 {
		return file
	}
	return file + ":" + strconv.Itoa(f.Line)
}

// BaseName returns the last element of a path, "" for an empty one.
func BaseName(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(file)
}

func joinWords(a, b string) string { return strings.TrimSpace(a + " " + b) }

// narrowSizeText formats a size in few columns: 1.5K, 64.0M.
func narrowSizeText(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%dB", n)
	}
	value, unit := float64(n)/(1<<10), 0
	for units := "KMGTPE"; value >= 1024 && unit < len(units)-1; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%.1f%c", value, "KMGTPE"[unit])
}
