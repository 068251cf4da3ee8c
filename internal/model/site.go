package model

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// DefaultWrappers returns the patterns of functions that only pass a request on: a tag is named after the first
// frame that matches none of them.
func DefaultWrappers() []*regexp.Regexp { return slices.Clone(defaultWrappers) }

var defaultWrappers = []*regexp.Regexp{
	regexp.MustCompile(`^cl::`),    // the Khronos C++ bindings
	regexp.MustCompile(`^cl[A-Z]`), // the API itself, as in a program's own dispatch table
	regexp.MustCompile(`^std::`),   // containers, allocators, make_shared
	regexp.MustCompile(`^__gnu_cxx::`),
	regexp.MustCompile(`operator new`),
}

// TagName returns the name that a TAG or SITE record gives its tag, "" when it gives none.
func TagName(r *wire.Record, wrappers []*regexp.Regexp) string {
	if r.Kind == wire.KindSite {
		if frames := parseSite(r.Payload); len(frames) > 0 {
			site := fold(frames, wrappers)
			return site.name()
		}
		return ""
	}
	switch wire.TagMode(r.Op) {
	case wire.TagsSize:
		return "size " + bytesText(r.Link)
	case wire.TagsThread:
		return fmt.Sprintf("thread %d", r.Link)
	}
	return ""
}

// SiteStack returns the frames of a SITE's payload as texts for people, innermost first.
func SiteStack(payload []byte) []string {
	var stack []string
	for _, f := range parseSite(payload) {
		stack = append(stack, f.text())
	}
	return stack
}

// Frame is one call of a stack, as a SITE tells it; what is unknown is empty.
type Frame struct {
	Function, File string
	Line           int
	Module         string // path
	Offset         uint64 // in Module, of the return address
}

// Name returns what a tag is called whose first call this is.
func (f *Frame) Name() string {
	back := frame{function: f.Function, file: f.File, line: strconv.Itoa(f.Line), place: f.Module}
	if f.Offset != 0 {
		back.place = fmt.Sprintf("%s+0x%x", f.Module, f.Offset)
	}
	return back.name()
}

// SiteFrames returns the calls of a SITE's payload, innermost first, from the one that names the tag: the wrappers
// before it are left out.
func SiteFrames(payload []byte, wrappers []*regexp.Regexp) []Frame {
	parsed := parseSite(payload)
	if i := slices.IndexFunc(parsed, func(f frame) bool { return !f.wrapper(wrappers) }); i > 0 {
		parsed = parsed[i:]
	}
	frames := make([]Frame, len(parsed))
	for i := range parsed {
		frames[i] = parsed[i].export()
	}
	return frames
}

func (f *frame) export() Frame {
	out := Frame{Function: f.function, File: f.file, Module: f.place}
	out.Line, _ = strconv.Atoi(f.line) // 0: unknown
	if at := strings.LastIndex(f.place, "+0x"); at >= 0 {
		if offset, err := strconv.ParseUint(f.place[at+3:], 16, 64); err == nil {
			out.Module, out.Offset = f.place[:at], offset
		}
	}
	return out
}

// framesMax bounds the frames of one site.
const framesMax = 64

// frame is one line of a SITE payload; what is unknown is empty.
type frame struct {
	function, file, line, place string // place: module+offset
}

// parseSite reads "function TAB file TAB line TAB module+offset" per line, innermost first. Missing fields are
// empty and empty lines are skipped.
func parseSite(payload []byte) []frame {
	var frames []frame
	for text := range strings.Lines(strings.TrimRight(string(payload), "\x00")) {
		fields := strings.SplitN(strings.TrimRight(text, "\n"), "\t", 4)
		for len(fields) < 4 {
			fields = append(fields, "")
		}
		for i, field := range fields {
			fields[i] = Clean([]byte(field))
		}
		f := frame{function: fields[0], file: fields[1], line: fields[2], place: fields[3]}
		if f != (frame{}) && len(frames) < framesMax {
			frames = append(frames, f)
		}
	}
	return frames
}

// fold returns the first frame that is not a wrapper, the innermost when all are.
func fold(frames []frame, wrappers []*regexp.Regexp) frame {
	for _, f := range frames {
		if !f.wrapper(wrappers) {
			return f
		}
	}
	return frames[0]
}

func (f *frame) wrapper(wrappers []*regexp.Regexp) bool {
	for _, w := range wrappers {
		if f.function != "" && w.MatchString(f.function) {
			return true
		}
	}
	return false
}

// name is the short form that tables show: "file.c:88 function", "function module+0x12" or "module+0x1234".
func (f *frame) name() string {
	if f.file == "" {
		return join(f.function, base(f.place))
	}
	return join(f.source(base(f.file)), f.function)
}

// text is the long form that a stack shows.
func (f *frame) text() string {
	if f.file == "" {
		return join(f.function, f.place)
	}
	return join(f.function, f.source(f.file))
}

func (f *frame) source(file string) string {
	if f.line == "" || f.line == "0" {
		return file
	}
	return file + ":" + f.line
}

// base is path.Base, but of nothing it is nothing.
func base(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(file)
}

func join(a, b string) string { return strings.TrimSpace(a + " " + b) }

// bytesText writes a size the way that screens do: 1.5K, 64.0M.
func bytesText(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%dB", n)
	}
	value, unit := float64(n)/(1<<10), 0
	for units := "KMGTPE"; value >= 1024 && unit < len(units)-1; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%.1f%c", value, "KMGTPE"[unit])
}
