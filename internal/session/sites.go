package session

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	sitesMax = 1 << 16 // requests waiting: beyond, tags keep their numbers
	// sitesPatience bounds how long the end of a session waits for names: debug information of large programs takes
	// seconds to read.
	sitesPatience = 10 * time.Second
	// unnamedMax bounds the tags of a process that are named again at its end: Java and node write names when they end.
	unnamedMax = 4096
	// leftMax is of how many ended processes the model may still have names.
	leftMax = 1024
)

// resolver names a return address in a module: the innermost function first, then those it was inlined into.
// (*symbol.Resolver).Frames is one.
type resolver func(module string, offset uint64) []symbol.Frame

// sites turns TAG records into SITE records on a goroutine of its own, which starts with the first request. The intake calls
// request, takeReadyRecords and finish.
//
// It also finds the build ids of modules: each MODULE record comes back as a second one. An EXIT record comes back when all
// earlier requests have been answered.
type sites struct {
	resolve resolver
	names   symbol.Options           // of generated code; its budget also has what waits for names, and the names that programs get
	buildID func(path string) string // symbol.BuildID
	// open returns the path by which we can open a file that a process knows by another path.
	open func(process uint32, path string) string
	done chan struct{}

	// State of the processes, used by run alone.
	full      sync.Once // the budget is, which was said
	modules   map[moduleKey]module
	generated map[uint32]*symbol.PerfMap // code outside of all modules
	unnamed   map[uint32][]wire.Record   // tags with such code that has no name yet
	texts     map[uint32]int64           // bytes of names that the model has
	left      []int64                    // the same of ended processes

	mu      sync.Mutex
	more    *sync.Cond
	started bool
	closed  bool
	queue   []wire.Record
	ready   []wire.Record
}

func newSiteNamer(resolve resolver) *sites {
	s := &sites{
		resolve: resolve, buildID: symbol.BuildID, done: make(chan struct{}),
		modules: map[moduleKey]module{}, generated: map[uint32]*symbol.PerfMap{}, unnamed: map[uint32][]wire.Record{},
		texts: map[uint32]int64{},
	}
	s.open = func(_ uint32, path string) string { return path }
	s.more = sync.NewCond(&s.mu)
	return s
}

// queueRequest asks for the name of a TAG or the build id of a MODULE, or for an EXIT to come back; a PROCESS gets no answer.
// It copies the record and never waits. It returns false when there will be no answer.
func (s *sites) queueRequest(r *wire.Record) bool {
	if s.resolve == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= sitesMax || !s.chargeBudget(budgetBytesOfRequest(r)) {
		return false
	}
	copied := *r
	copied.Payload = slices.Clone(r.Payload)
	s.queue = append(s.queue, copied)
	if !s.started {
		s.started = true
		go s.runNaming()
	}
	s.more.Signal()
	return true
}

// budgetBytesWithText is what a record or a module takes with some text.
func budgetBytesWithText(text int) int64 { return 128 + int64(text) }

// budgetBytesOfRequest is what a request takes until it is answered. Those that begin and end a process are always taken.
func budgetBytesOfRequest(r *wire.Record) int64 {
	if r.Kind == wire.KindTag || r.Kind == wire.KindModule {
		return budgetBytesWithText(len(r.Payload))
	}
	return 0
}

func (m *module) budgetBytes() int64 {
	return budgetBytesWithText(len(m.path) + len(m.opened) + len(m.function))
}

// chargeBudget charges bytes to the budget.
func (s *sites) chargeBudget(bytes int64) bool {
	if s.names.Budget.Charge(bytes) {
		return true
	}
	s.full.Do(func() {
		if s.names.Say != nil {
			s.names.Say("the programs have more call sites and modules than there is memory for names of, so some are shown without (--memory-budget)")
		}
	})
	return false
}

// keepModule keeps a module, if there is room.
func (s *sites) keepModule(key moduleKey, m *module) bool {
	old := s.modules[key]
	if old != (module{}) {
		s.names.Budget.Release(old.budgetBytes())
		delete(s.modules, key)
	}
	if len(s.modules) == sitesMax || !s.chargeBudget(m.budgetBytes()) {
		return false
	}
	s.modules[key] = *m
	return true
}

// takeReadyRecords returns the records that are ready, without a time.
func (s *sites) takeReadyRecords() []wire.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := s.ready
	s.ready = nil
	return ready
}

// waitForAnswers waits, within reason, until all requests are answered. Nothing may be added afterwards.
func (s *sites) waitForAnswers() {
	s.mu.Lock()
	s.closed = true
	started := s.started
	s.more.Signal()
	s.mu.Unlock()
	if !started {
		return
	}
	select {
	case <-s.done:
	case <-time.After(sitesPatience):
	}
}

type moduleKey struct {
	process uint32
	module  uint64
}

// module is a file that a process runs code of.
type module struct {
	path     string // as the process sees it: what is shown and recorded
	opened   string // as we do
	function string // of a script: offsets are lines
}

func (s *sites) runNaming() {
	defer close(s.done)
	for {
		batch := s.nextRequests()
		if batch == nil {
			for process := range s.unnamed { // the process outlives the session
				s.makeReady(s.nameLateCode(process))
			}
			return
		}
		for i := range batch {
			if batch[i].Kind == wire.KindExit {
				s.makeReady(s.nameLateCode(batch[i].Process))
			}
			if answer, ok := s.answerRequest(&batch[i]); ok {
				s.makeReady([]wire.Record{answer})
			}
			s.names.Budget.Release(budgetBytesOfRequest(&batch[i]))
		}
	}
}

// makeReady makes records ready.
func (s *sites) makeReady(answers []wire.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, answers...)
}

// nameLateCode names tags whose code had no name when they were made.
func (s *sites) nameLateCode(process uint32) (named []wire.Record) {
	for _, tag := range s.takeUnnamed(process) {
		if r, ok := s.nameFrames(&tag); ok {
			named = append(named, r)
		}
	}
	s.takeUnnamed(process) // tags that still have no name
	return named
}

// takeUnnamed returns the tags of a process whose code has no name, and forgets them.
func (s *sites) takeUnnamed(process uint32) []wire.Record {
	tags := s.unnamed[process]
	delete(s.unnamed, process)
	for i := range tags {
		s.names.Budget.Release(budgetBytesWithText(len(tags[i].Payload)))
	}
	return tags
}

// answerRequest returns what comes back for a record.
func (s *sites) answerRequest(r *wire.Record) (wire.Record, bool) {
	switch r.Kind {
	case wire.KindProcess:
		s.generated[r.Process].Close()
		s.generated[r.Process] = symbol.NewMapOfProcess(int(r.AsProcess().PID()), s.names)
		return wire.Record{}, false
	case wire.KindModule:
		payload, name := wire.ParseModule(r.Payload)
		path, key := string(payload), moduleKey{r.Process, r.AsModule().Module()}
		m := module{path: path}
		if r.AsModule().Script() {
			m.function = string(name)
		} else {
			m.opened = s.open(r.Process, path)
		}
		if !s.keepModule(key, &m) || r.AsModule().Script() {
			return wire.Record{}, false
		}
		return s.buildIDRecord(r, m)
	case wire.KindExit:
		maps.DeleteFunc(s.modules, func(k moduleKey, m module) bool {
			if k.process == r.Process {
				s.names.Budget.Release(m.budgetBytes())
			}
			return k.process == r.Process
		})
		s.generated[r.Process].Close()
		delete(s.generated, r.Process)
		if s.left = append(s.left, s.texts[r.Process]); len(s.left) > leftMax {
			s.names.Budget.Release(s.left[0])
			s.left = s.left[1:]
		}
		delete(s.texts, r.Process)
		return *r, true
	default:
		return s.nameFrames(r)
	}
}

// buildIDRecord returns a MODULE with the build id of a module, if it has one.
func (s *sites) buildIDRecord(r *wire.Record, m module) (wire.Record, bool) {
	id := s.buildID(m.opened)
	payload, fits := wire.AppendModuleWithBuild(nil, m.path, id)
	if id == "" || !fits {
		return wire.Record{}, false
	}
	named := wire.ModuleFields{Module: r.AsModule().Module()}.Record(payload)
	named.Process = r.Process
	return named, true
}

// nextRequests returns the next requests, nil when there will be none.
func (s *sites) nextRequests() []wire.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed {
		s.more.Wait()
	}
	batch := s.queue
	s.queue = nil
	return batch
}

// nameFrames names the frames of a tag. Tags of other kinds than call sites name themselves.
func (s *sites) nameFrames(r *wire.Record) (wire.Record, bool) {
	mode := r.AsTag().Mode()
	if mode != wire.TagsCaller && mode != wire.TagsStack {
		return wire.Record{}, false
	}
	var payload []byte
	unnamed := false
	for _, frame := range wire.FramesOfTag(r.Payload) {
		m := s.modules[moduleKey{r.Process, frame.Module}]
		if len(payload) > 0 && isCLibrary(m.path) {
			break // it called main, or started the thread
		}
		lines := s.linesOfFrame(m, frame.Offset)
		if frame.Module == 0 {
			var known bool
			lines, known = s.lineOfGeneratedCode(r.Process, frame.Offset)
			unnamed = unnamed || !known
		}
		for _, line := range lines {
			if len(payload)+len(line) <= wire.PayloadMax {
				payload = append(payload, line...)
			}
		}
	}
	if unnamed && len(s.unnamed[r.Process]) < unnamedMax && s.chargeBudget(budgetBytesWithText(len(r.Payload))) {
		s.unnamed[r.Process] = append(s.unnamed[r.Process], *r)
	}
	if len(payload) == 0 || !s.chargeBudget(int64(len(payload))) { // which the model keeps
		return wire.Record{}, false
	}
	s.texts[r.Process] += int64(len(payload))
	site := wire.SiteFields{Tag: r.AsTag().Tag()}.Record(payload)
	site.Process = r.Process
	return site, true
}

// linesOfFrame returns the lines of a SITE for a frame.
func (s *sites) linesOfFrame(m module, offset uint64) (linesOfFrame [][]byte) {
	if m.opened == "" && m.function != "" {
		return [][]byte{wire.AppendSiteFrame(nil, wire.SiteFrame{Function: m.function, File: m.path, Line: offset, Module: m.path})}
	}
	for _, named := range s.resolve(m.opened, offset) {
		linesOfFrame = append(linesOfFrame, wire.AppendSiteFrame(nil, wire.SiteFrame{
			Function: named.Function, File: named.File, Line: uint64(max(0, named.Line)),
			Module: m.path, Offset: named.Offset, HasOffset: true,
		}))
	}
	return linesOfFrame
}

// lineOfGeneratedCode names code outside of all modules, which a language's runtime generated, if the name is known.
func (s *sites) lineOfGeneratedCode(process uint32, address uint64) (lines [][]byte, known bool) {
	f := wire.SiteFrame{Offset: address, HasOffset: true}
	if m := s.generated[process]; m != nil {
		named := m.FrameAt(address)
		f.Function, f.File, f.Line = named.Function, named.File, uint64(max(0, named.Line))
	}
	return [][]byte{wire.AppendSiteFrame(nil, f)}, f.Function != "" || f.File != ""
}

// isCLibrary reports whether a module is the C library. Its debug information takes long to read, and its frames around
// a program's say nothing.
func isCLibrary(module string) bool {
	name := filepath.Base(module)
	return strings.HasPrefix(name, "libc.so") || strings.HasPrefix(name, "libc-") || strings.HasPrefix(name, "libpthread")
}
