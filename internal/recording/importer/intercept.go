package importer

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// callNS is the assumed duration of a line in a log without times, ns.
const callNS = 1_000

// A call in the Intercept Layer's log (intel/opencl-intercept-layer: docs/controls.md, CallLogging) is two lines, with the
// arguments and with the result.
var (
	callLine = regexp.MustCompile(`^\s*(?:Time: (\d{1,15}) )?((?:TID = \d+ )?(?:TNum = \d+ )?)(>>>>|<<<<) (cl\w+)(.*)$`)
	callSize = regexp.MustCompile(`, size = (\d+)(?:,|$)`)
	callMem  = regexp.MustCompile(`\bmem = (?:0x)?([0-9a-fA-F]+)\b`)
	callGave = regexp.MustCompile(`: (?:returned|created) (\(nil\)|(?:0x)?[0-9a-fA-F]+)\b`)
	callCode = regexp.MustCompile(`-> (CL_\w+)`)
)

// failures are the codes of creates that fail for lack of memory, or because of their size.
var failures = map[string]int16{
	"CL_MEM_OBJECT_ALLOCATION_FAILURE": allocationFailure, "CL_OUT_OF_RESOURCES": -5, "CL_OUT_OF_HOST_MEMORY": -6, "CL_INVALID_BUFFER_SIZE": -61,
}

// intercept reads the calls that create, retain and release buffers. Memory grows with live buffers and with threads.
type intercept struct {
	table    *table
	facts    Facts
	last     uint64
	timed    bool
	object   uint64
	live     map[uint64]*interceptBuffer // by handle
	threads  map[string]*interceptThread
	queue    []wire.Record
	mixed    tally // calls during another one of the same thread
	sizeless tally // creates of memory without a size
	entered  int   // line of the latest call
}

type interceptBuffer struct {
	object, size uint64
	references   int
}

// interceptThread is a thread with its calls that have not returned: at most one, unless the log does not name threads.
type interceptThread struct {
	number uint32
	within int // calls that have not returned, also those that have nothing to do with memory
	calls  []interceptCall
}

type interceptCall struct {
	name         string
	size, handle uint64
}

// callsMax bounds the calls of a thread that have not returned: with more, the log lacks lines.
const callsMax = 1024

func openIntercept(r io.Reader, facts Facts) (Source, error) {
	return &intercept{
		table: newTable(r, "the Intercept Layer's calls", "want calls, as CallLogging writes them", facts), facts: facts, last: start,
		live: map[uint64]*interceptBuffer{}, threads: map[string]*interceptThread{}, queue: []wire.Record{processRecord(facts)},
	}, nil
}

// Header implements Source.
func (s *intercept) Header() recording.Header { return importedHeader(s.facts) }

// Footer implements Source.
func (s *intercept) Footer() recording.Footer {
	return recording.Footer{EndedNS: s.last, Message: "imported from a log of the Intercept Layer for OpenCL Applications",
		Cut: s.table.cut || s.endsDuringCall()}
}

// endsDuringCall reports whether the program ended, or the log, while a call had not returned.
func (s *intercept) endsDuringCall() bool {
	for _, t := range s.threads {
		if t.within > 0 {
			return true
		}
	}
	return false
}

// Remarks implements Source.
func (s *intercept) Remarks() []string {
	list := s.table.remarks()
	if s.endsDuringCall() {
		list = append(list, fmt.Sprintf("ends within a call: line %d", s.entered))
	}
	if !s.timed && s.table.taken > 0 {
		list = append(list, "no times, a line is taken for 1 µs: CLI_CallLoggingElapsedTime=1 logs them")
	}
	if t := s.mixed; t.count > 0 {
		list = append(list, fmt.Sprintf("%s within others, first in line %d, may have the sizes of others: CLI_CallLoggingThreadId=1 logs threads",
			units.Count(t.count, "call"), t.first))
	}
	if t := s.sizeless; t.count > 0 {
		list = append(list, fmt.Sprintf("%s without a size left out, first in line %d", units.Count(t.count, "create"), t.first))
	}
	return list
}

// Next implements Source.
func (s *intercept) Next(r *wire.Record) error {
	for len(s.queue) == 0 {
		line, err := s.table.nextText()
		if err != nil {
			return err
		}
		s.table.taken++
		if err := s.readLine(line); err != nil {
			s.table.skipAndNoteError(err)
		}
	}
	*r, s.queue = s.queue[0], s.queue[1:]
	return nil
}

func (s *intercept) readLine(line string) error {
	part := callLine.FindStringSubmatch(line)
	switch {
	case part == nil:
		return fmt.Errorf("%.40q: %s", line, s.table.want)
	case s.table.open && part[3] == ">>>>":
		return fmt.Errorf("a call without an end")
	case s.table.open && !callCode.MatchString(part[5]):
		return fmt.Errorf("a call without a result")
	}
	s.setTimeOfLine(part[1])
	t := s.threadNamed(part[2])
	if part[3] == ">>>>" {
		t.within++
		s.entered = s.table.number
		s.beginCall(t, part[4], part[5])
	} else {
		t.within = max(0, t.within-1)
		s.endCall(t, part[4], part[5])
	}
	return nil
}

// setTimeOfLine takes the time of a line, in µs. Lines of several threads may be slightly out of order.
func (s *intercept) setTimeOfLine(us string) {
	at := s.last + callNS
	if n, err := strconv.ParseUint(us, 10, 64); err == nil {
		at, s.timed = start+n*1000, true
	}
	s.last = max(s.last, at)
}

func (s *intercept) threadNamed(words string) *interceptThread {
	if s.threads[words] == nil {
		if !s.table.chargeLineIfRoom(liveBytes + len(words)) {
			return &interceptThread{}
		}
		s.threads[strings.Clone(words)] = &interceptThread{number: uint32(len(s.threads) + 1)}
	}
	return s.threads[words]
}

// beginCall notes the arguments of a call that concerns memory.
func (s *intercept) beginCall(t *interceptThread, call, rest string) {
	size, handle := numberMatching(callSize, rest, 10), numberMatching(callMem, rest, 16)
	if !strings.HasPrefix(call, "clCreateBuffer") && !strings.HasSuffix(call, "MemObject") {
		return
	}
	if len(t.calls) > 0 {
		s.mixed.noteLine(s.table.number)
	}
	t.calls = append(t.calls[max(0, len(t.calls)-callsMax):], interceptCall{call, size, handle})
}

func (s *intercept) endCall(t *interceptThread, name, rest string) {
	gave := numberMatching(callGave, rest, 16)
	if gave != 0 && (strings.HasPrefix(name, "clCreateImage") || name == "clCreateSubBuffer" || name == "clCreatePipe") {
		s.sizeless.noteLine(s.table.number)
		s.emitRelease(gave, t.number) // the log lacks the release of an earlier buffer with this handle
		return
	}
	at := slices.IndexFunc(t.calls, func(c interceptCall) bool { return c.name == name })
	if at < 0 {
		return
	}
	call := t.calls[at]
	t.calls = slices.Delete(t.calls, at, at+1)
	switch b := s.live[call.handle]; {
	case strings.HasPrefix(name, "clCreateBuffer"):
		s.emitCreate(t, call.size, gave, callCode.FindStringSubmatch(rest))
	case b == nil: // of an image or a sub-buffer
	case name == "clRetainMemObject":
		b.references++
	case name == "clReleaseMemObject":
		if b.references--; b.references == 0 {
			s.emitRelease(call.handle, t.number)
		}
	}
}

func (s *intercept) emitCreate(t *interceptThread, size, handle uint64, code []string) {
	switch {
	case handle != 0 && s.table.chargeLineIfRoom(liveBytes):
		s.emitRelease(handle, t.number)
		s.object++
		s.live[handle] = &interceptBuffer{object: s.object, size: size, references: 1}
		s.queue = append(s.queue, createRecord(s.last, s.object, size, 0, t.number))
	case code != nil && failures[code[1]] != 0:
		s.queue = append(s.queue, failedCreateRecord(s.last, size, 0, t.number, failures[code[1]]))
	}
}

func (s *intercept) emitRelease(handle uint64, thread uint32) {
	if b := s.live[handle]; b != nil {
		delete(s.live, handle)
		s.table.facts.keep.Release(liveBytes)
		s.queue = append(s.queue, releaseRecord(s.last, b.object, b.size, 0, thread))
	}
}

// numberMatching reads the number that a pattern finds, 0 if none.
func numberMatching(pattern *regexp.Regexp, text string, base int) uint64 {
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(found[1], "0x"), base, 64)
	if err != nil {
		return 0
	}
	return n
}
