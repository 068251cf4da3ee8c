package model

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options are what a model knows before the first event.
type Options struct {
	Program   string   // of the session; empty: that of the first process
	Arguments []string // of Program
	Policy    string   // name of the allocator policy
	Auto      bool     // the session went over to others by itself; see SetAuto
	Limits    []Limit  // with their values at the start; others are not followed
	// LimitsOf returns the limits of a policy that the program goes over to, with their defaults; nil: none is followed.
	LimitsOf func(policy string) []Limit
	Started  uint64           // ns, CLOCK_MONOTONIC; 0: the time of the first event
	Wrappers []*regexp.Regexp // functions that name no tag; nil: DefaultWrappers
	// Removed is called when the memory of a process that ended leaves the common gauges; nil: nobody is told.
	Removed func(process uint32)
}

// Model folds events into state. One goroutine at a time may call its methods, but for Published, which anybody may.
//
// Apply costs O(1) per event but for O(log n) in the number of distinct cached block sizes, and allocates nothing
// once the model has seen as many objects, blocks, sizes and tags at a time as it ever will. Memory is bounded by the
// largest number of live objects and cached blocks so far, the tags, and the processes.
type Model struct {
	options   Options
	published atomic.Pointer[Snapshot]

	begun   bool
	now     uint64 // never goes back
	turning uint64 // when the present slot ends
	second  uint64 // since the start

	ledger  ledger // of all processes
	window  window
	history history
	since   since

	seed      uint64
	numbers   map[uint32]*process
	processes []*process // in the order of their first event
	latest    *process   // of the last event
	leaving   int        // processes that ended and are not removed

	objects arena[object]
	blocks  arena[block]
	classes arena[class]

	shares   shares
	carrying carrying

	rows     []*row
	named    map[string]*row
	untagged *row

	marks       marks
	findings    findings
	limits      limits
	policies    policies
	recording   Recording
	ghosts      func() *Ghosts // nil: there are none
	auto        func() *Auto   // nil: see Options.Auto
	chosen      choice
	awaited     awaited
	shownDevice Device

	events, lost, lostUses, unknown uint64
}

// New returns a model that has seen nothing yet.
func New(o Options) *Model {
	if o.Wrappers == nil {
		o.Wrappers = DefaultWrappers()
	}
	o.Arguments = slices.Clone(o.Arguments)
	m := &Model{
		options:  o,
		seed:     rand.Uint64(),
		numbers:  map[uint32]*process{},
		named:    map[string]*row{},
		limits:   newLimits(o.Limits),
		policies: policies{first: o.Policy},
	}
	m.shares.index.seed = m.seed
	m.untagged = m.newWhole(0)
	m.untagged.name = UntaggedName
	m.named[m.untagged.name] = m.untagged
	if o.Started != 0 {
		m.begin(o.Started)
	}
	return m
}

// Apply folds one event. It takes anything: what makes no sense is counted in Snapshot.Unknown or ignored. The
// record and its payload may be reused afterwards.
func (m *Model) Apply(r *wire.Record) {
	was := carried(&r.Event)
	if !was {
		m.carriedAll()
	}
	if !r.Kind.Late() {
		m.advance(r.Time)
	}
	m.events++
	if !was {
		m.window.current().Events++
	}
	if r.Kind == wire.KindLost {
		m.lose(r)
		return
	}
	p := m.process(r.Process)
	if p == nil {
		m.unknown++
		return
	}
	p.changed = true
	if was {
		m.carry(p)
	} else {
		p.window.current().Events++
	}
	switch r.Kind {
	case wire.KindCreate:
		if r.Outcome == wire.OutcomeFailed {
			m.fail(p, &r.Event)
			break
		}
		m.create(p, &r.Event)
	case wire.KindRelease:
		m.release(p, &r.Event)
	case wire.KindUse:
		m.use(p, &r.Event)
	case wire.KindSync:
		for _, l := range m.ledgers(p) {
			l.counters.Syncs++
		}
	case wire.KindRetain:
		if p.objects.get(r.Object) < 0 {
			m.unknown++
		}
	case wire.KindCooled:
		m.cool(p, &r.Event)
	case wire.KindEvict:
		m.evict(p, &r.Event)
	case wire.KindGauge:
		p.told = toldOf(&r.Event)
	default:
		m.rare(p, r)
	}
}

// rare handles the kinds that come a few times per run.
func (m *Model) rare(p *process, r *wire.Record) {
	switch r.Kind {
	case wire.KindProcess:
		m.introduce(p, r)
	case wire.KindTag:
		m.tag(p, r)
	case wire.KindSite:
		m.site(p, r)
	case wire.KindDevice:
		m.device(p, r)
	case wire.KindContext:
		m.context(p, &r.Event)
	case wire.KindSlab:
		m.slab(p, &r.Event)
	case wire.KindLimit:
		m.answer(p, r)
		m.marks.add(m.now, r.Kind, Clean(r.Payload))
	case wire.KindKernel:
		p.kernels.Add(r.Object, r.Payload)
	case wire.KindDiag:
		if wire.Diag(r.Op).Finding() {
			m.find(p, r)
			return
		}
		m.marks.add(m.now, r.Kind, diagText(r))
	case wire.KindExit:
		m.exit(p, r)
	default: // threads, modules and queues show nowhere
	}
}

// lose handles LOST.
func (m *Model) lose(r *wire.Record) {
	m.lost += r.Size
	m.lostUses += r.Granted
	m.marks.lose(m.now, r.Size)
	if p := m.numbers[r.Process]; p != nil {
		p.lost += r.Size
	}
}

// tag handles TAG: sizes and threads have their name at once, call sites when SITE comes.
func (m *Model) tag(p *process, r *wire.Record) {
	if name := TagName(r, m.options.Wrappers); name != "" {
		m.label(p, r.Tag, name, nil)
		return
	}
	m.row(p, r.Tag)
}

// site handles SITE.
func (m *Model) site(p *process, r *wire.Record) {
	name := TagName(r, m.options.Wrappers)
	if name == "" {
		return
	}
	m.label(p, r.Tag, name, SiteStack(r.Payload))
}

// Tick moves time on without an event, so that windows and history go on while the program is silent. now is
// CLOCK_MONOTONIC ns; an earlier time than the latest seen changes nothing.
func (m *Model) Tick(now uint64) {
	m.carriedAll()
	m.advance(now)
}

// ProcessEnded says that the session saw a process end at a time in ns: with an exit status, or by a signal if
// that is not 0. A process that made no OpenCL call is ignored.
func (m *Model) ProcessEnded(number uint32, status, signal int, time uint64) {
	m.advance(time)
	p := m.numbers[number]
	if p == nil {
		return
	}
	known := p.ended
	if signal != 0 {
		m.finish(p, Signaled, signal, m.now)
	} else {
		m.finish(p, Exited, status, m.now)
	}
	p.gone = true
	if !known {
		m.marks.add(m.now, wire.KindExit, exitText(&p.shown))
	}
	m.settle()
}

// LimitWanted says that a change of a limit was sent to the target under a sequence number, with the value as the
// target takes it. It stays pending until a LIMIT event answers that number or a later one.
func (m *Model) LimitWanted(name, value string, sequence uint64) {
	m.limits.want(name, value, sequence)
}

// PolicyWanted says that a change of the policy was sent to the target under a sequence number. It stays pending until a
// LIMIT event answers that number or a later one.
func (m *Model) PolicyWanted(name string, sequence uint64) {
	m.policies.want(name, sequence)
}

// SetRecording says what is being written, and how many bytes so far.
func (m *Model) SetRecording(path string, bytes uint64) {
	m.recording = Recording{Path: path, Bytes: bytes}
}

// ledgers are the books that an event of a process goes into.
func (m *Model) ledgers(p *process) [2]*ledger { return [2]*ledger{&p.ledger, &m.ledger} }

func (m *Model) begin(time uint64) {
	m.begun = true
	m.options.Started, m.now, m.turning = time, time, time+slotNS
}

// advance moves time on. Gauges had their present values until now.
func (m *Model) advance(time uint64) {
	if !m.begun {
		m.begin(time)
	}
	if time <= m.now {
		return
	}
	m.now = time
	if time >= m.turning {
		m.turn()
	}
}

// turn closes the slots that have ended.
func (m *Model) turn() {
	started := m.options.Started
	slot := (m.now - started) / slotNS
	m.history.advance(started, slot, m.sample())
	m.window.advance(slot)
	m.turnProcesses(slot)
	m.turning = started + (slot+1)*slotNS
	m.second = slot / windowSlots
	m.settle()
}

// sample reads the gauges.
func (m *Model) sample() Sample { return m.ledger.sample(m.spread()) }

func diagText(r *wire.Record) string {
	word := wire.Diag(r.Op).String()
	if len(r.Payload) == 0 {
		return word
	}
	return word + ": " + Clean(r.Payload)
}

func exitText(p *Process) string {
	name := fmt.Sprintf("process %d", p.Number)
	if p.PID != 0 {
		name = fmt.Sprintf("%s (pid %d)", base(p.Program), p.PID)
	}
	switch {
	case p.State == Signaled:
		return fmt.Sprintf("%s ended by signal %d", name, p.Status)
	case p.Status < 0:
		return name + " exits"
	}
	return fmt.Sprintf("%s exited with status %d", name, p.Status)
}
