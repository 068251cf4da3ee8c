package foreign

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

const (
	empty           = "empty"
	packedRecording = "a recording"

	viewsTraces = "https://ui.perfetto.dev shows it"
	// The layer writes name, thread, time and duration of a call (intel/opencl-intercept-layer, chrometracer.cpp).
	withoutSizes = "; it has neither sizes nor handles of buffers, which gpumemtop import finds in the log that CLI_CallLogging=1, " +
		"CLI_CallLoggingElapsedTime=1, CLI_CallLoggingThreadId=1 and CLI_LogToFile=1 write"
	readsTables  = "DuckDB, Spark and pandas read it"
	viewsMemory  = "https://pytorch.org/memory_viz shows it"
	canImport    = "gpumemtop import makes a recording of it"
	recordsCalls = "gpumemtop record PROGRAM records the same calls"
	fromBefore   = "; other commands need the recording from which it was made"
)

// Tables completes "it is" for a folder that export made.
const Tables = "a folder of Parquet tables: " + readsTables + fromBefore

// kinds is the table of files that people have. The first kind that fits counts: what begins alike goes from the narrow to
// the wide.
var kinds = []Kind{
	{name: empty, is: func(h *head) bool { return len(h.raw) == 0 }},
	{name: packedRecording, is: beginsWith("GMTREC\r\n")},
	{name: "a program", advice: "to watch it, put gpumemtop before its command line", is: isELFProgram},
	{name: "a core dump of a program", advice: "debuggers read it", is: beginsWith("\x7fELF")},
	{name: "an Apache Parquet table", advice: readsTables + fromBefore, is: beginsWith("PAR1")},
	{name: "a file of memray", advice: "memray stats and memray flamegraph read it", is: isMemray},
	{name: "a snapshot of PyTorch's memory", advice: viewsMemory, is: isPickledSnapshot},
	{name: "a pickle of Python", advice: "Python reads it", is: isPickle},
	{name: "a Perfetto trace that gpumemtop wrote", advice: viewsTraces + fromBefore, is: isPerfettoTrace},
	{name: "a profile of pprof", advice: "go tool pprof reads it" + fromBefore, is: isPprof},
	{name: "a recording as lines of JSON", advice: canImport, format: "ndjson", is: isNDJSON},
	{name: "a Chrome trace that gpumemtop wrote", advice: viewsTraces + fromBefore, is: isChromeTraceWith(`"name":"gpumemtop"`)},
	{name: "a Chrome trace of the Intercept Layer for OpenCL Applications", advice: viewsTraces + withoutSizes, is: isChromeTraceWith("clintercept")},
	{name: "a Chrome trace", advice: viewsTraces, is: isChromeTraceWith("")},
	{name: "a snapshot of PyTorch's memory as JSON", advice: viewsMemory, is: isJSONWithKeys(`"segments"`, `"device_traces"`)},
	{name: "a summary or report as JSON", advice: "jq and Python read it" + fromBefore, is: isJSONWithKeys(`"policy"`, `"limits"`)},
	{name: "a report that gpumemtop wrote", advice: "browsers show it" + fromBefore, is: isHTMLPageWith("gpumemtop</title>")},
	{name: "a page about PyTorch's memory", advice: "browsers show it", is: isHTMLPageWith("memoryviz")},
	{name: "a page of HTML", advice: "browsers show it", is: isHTMLPageWith("")},
	{name: "a report that gpumemtop wrote", advice: "it is for people" + fromBefore, is: beginsWith("# gpumemtop:")},
	{name: "a flight log", advice: "gpumemtop reduce reads it", is: beginsWith("GGMTLOG1")}, // GMT_FLIGHT_MAGIC
	{name: "a plan of a program's memory", advice: "--plan reads it", is: beginsWith("# Where this program's buffers go: gpumemtop --plan")},
	{name: "a CSV table that gpumemtop wrote", advice: "spreadsheets and pandas read it" + fromBefore, is: beginsWith("host,pid,process,")},
	{name: "a problem of MiniMalloc", advice: canImport + ", gpumemtop plan solves it", format: "minimalloc", is: isMiniMalloc},
	{name: "a file of heaptrack", advice: "heaptrack_print and heaptrack_gui read it", is: matchesPattern(heaptrackStart)},
	{name: "a log of onetrace or unitrace", advice: recordsCalls, is: matchesPattern(onetraceLine)},
	{
		name: "a log of the Intercept Layer for OpenCL Applications", advice: canImport + " if it has calls", format: "clintercept",
		is: matchesPattern(interceptLine),
	},
	{name: "a log of RMM", advice: canImport, format: "rmm", is: isRMM},
	{name: "a script", advice: "to watch it, put gpumemtop before its command line", is: beginsWith("#!")},
}

// head is how a file begins.
type head struct {
	raw  []byte
	text string   // from the first character that is not blank, empty for what is no text
	line []string // the fields of its first line, in lower case
}

func parseHead(raw []byte) *head {
	h := &head{raw: raw}
	if bytes.IndexByte(raw, 0) < 0 {
		h.text = strings.TrimLeft(string(raw), "\ufeff \t\r\n")
	}
	line, _, _ := strings.Cut(h.text, "\n")
	h.line = lowerCaseFields(line)
	return h
}

func lowerCaseFields(line string) []string {
	list := strings.Split(strings.ToLower(line), ",")
	for i := range list {
		list[i] = strings.Trim(list[i], " \t\r\"")
	}
	return list
}

func beginsWith(with string) func(*head) bool {
	return func(h *head) bool { return bytes.HasPrefix(h.raw, []byte(with)) || strings.HasPrefix(h.text, with) }
}

func matchesPattern(pattern *regexp.Regexp) func(*head) bool {
	return func(h *head) bool { return pattern.MatchString(h.text) }
}

var (
	// heaptrackStart is the version of heaptrack and of its format in hexadecimal (KDE/heaptrack, libheaptrack.cpp).
	heaptrackStart = regexp.MustCompile(`\Av [0-9a-f]{5,6}( [0-9a-f]+)?\n[a-zA-Z#] ?`)
	// onetraceLine is a call with its time (intel/pti-gpu, tools/onetrace/README.md).
	onetraceLine = regexp.MustCompile(`(?m)^(>>>>|<<<<) \[[^]\n]*\] (\[[^]\n]*\] )*(cl|ze|zes)[A-Z]`)
	// interceptLine is the message at the start, or a call (intel/opencl-intercept-layer, docs/controls.md).
	interceptLine = regexp.MustCompile(`(?m)^CLIntercept \(\d+-bit\) is loading|^(.* )?(>>>>|<<<<) cl[A-Z]\w+`)
)

// isELFProgram reports whether a file is of ELF, and can be executed or loaded: its type, at 16, is ET_EXEC or ET_DYN.
func isELFProgram(h *head) bool {
	return beginsWith("\x7fELF")(h) && len(h.raw) > 17 && slices.Contains([]byte{2, 3}, h.raw[16]|h.raw[17])
}

// isMemray finds memray's magic, which stands uncompressed at the front of a frame of LZ4, too (bloomberg/memray, records.h).
func isMemray(h *head) bool {
	start := h.raw[:min(len(h.raw), 64)]
	return beginsWith("memray\x00")(h) || beginsWith("\x04\x22\x4d\x18")(h) && bytes.Contains(start, []byte("memray\x00"))
}

// isPickle looks for the opcode PROTO with a version, which protocols from 2 begin with (PEP 3154).
func isPickle(h *head) bool {
	return len(h.raw) > 2 && h.raw[0] == 0x80 && h.raw[1] >= 2 && h.raw[1] <= 5
}

func isPickledSnapshot(h *head) bool {
	return isPickle(h) && (bytes.Contains(h.raw, []byte("segments")) || bytes.Contains(h.raw, []byte("device_traces")))
}

// isPerfettoTrace looks for the first packet of our Perfetto traces: its first fields are sequence_flags and first_packet_on_sequence
// (google/perfetto, trace_packet.proto).
func isPerfettoTrace(h *head) bool {
	return len(h.raw) > 7 && h.raw[0] == 0x0a && bytes.Equal(h.raw[2:7], []byte{0x68, 1, 0xb8, 5, 1})
}

// isPprof looks for the first field of a profile, a type of samples: the numbers of two texts (google/pprof, profile.proto).
func isPprof(h *head) bool {
	b := h.raw
	return len(b) > 6 && b[0] == 0x0a && b[1] == 4 && b[2] == 0x08 && b[4] == 0x10
}

func isJSONWithKeys(keys ...string) func(*head) bool {
	return func(h *head) bool {
		return strings.HasPrefix(h.text, "{") && !slices.ContainsFunc(keys, func(k string) bool { return !strings.Contains(h.text, k) })
	}
}

func isNDJSON(h *head) bool {
	line, _, _ := strings.Cut(h.text, "\n")
	return strings.HasPrefix(line, "{") && strings.Contains(line, `"schema"`) && strings.Contains(line, `"header"`)
}

// isChromeTraceWith looks for events of a trace: an array, or an object that has one.
func isChromeTraceWith(with string) func(*head) bool {
	return func(h *head) bool {
		events := strings.HasPrefix(h.text, "[") && strings.Contains(h.text, `"ph"`) || isJSONWithKeys(`"traceEvents"`)(h)
		return events && strings.Contains(h.text, with)
	}
}

func isHTMLPageWith(with string) func(*head) bool {
	return func(h *head) bool {
		text := strings.ToLower(h.text)
		return (strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")) && strings.Contains(text, with)
	}
}

// isMiniMalloc looks for the columns that gpumemtop plan wants, too.
func isMiniMalloc(h *head) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(h.line, func(field string) bool { return slices.Contains(names, field) })
	}
	return has("id", "buffer", "buffer_id") && has("lower", "begin", "start") && has("upper", "end") && has("size")
}

// isRMM looks for RMM's header, or a line that has its columns: lines of others may be before it.
func isRMM(h *head) bool {
	for line := range strings.Lines(h.text) {
		if isRMMHeader(line) || isRMMLine(line) {
			return true
		}
	}
	return false
}

// isRMMHeader reports whether a line names the columns of RMM's log.
func isRMMHeader(line string) bool {
	list := lowerCaseFields(line)
	return slices.Contains(list, "action") && slices.Contains(list, "pointer")
}

// isRMMLine reports whether a line has the columns of RMM's log in the order in which RMM writes them.
func isRMMLine(line string) bool {
	list := lowerCaseFields(line)
	return len(list) == 6 && slices.Contains([]string{"allocate", "allocate failure", "free", "deallocate"}, list[2])
}
