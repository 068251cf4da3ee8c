package ghost

import (
	"fmt"
	"reflect"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	publishEvery = 100 * time.Millisecond
	markEvery    = time.Second // for figures of the last while
	marksMax     = 10
	patience     = 8 // batches that are played before another ghost is stopped for being behind
)

// player plays batches. Its goroutine alone touches it.
type player struct {
	ghosts  *Ghosts
	options Options
	chorus  *lab.Chorus
	list    []*ghost
	present lab.Configuration
	late    *ghost // of the present configuration, if the program went over to one that nobody had asked for

	events, records uint64
	time            uint64 // of the latest record
	since           int    // batches since a ghost was stopped
	stopped         string // why all were

	published, marked time.Time
	busy              time.Duration // of the processor
	marks             []mark        // oldest first, at most marksMax
}

// mark is how much there was at a time.
type mark struct {
	at      time.Time
	busy    time.Duration
	records uint64
}

// ghost is one configuration.
type ghost struct {
	name  string
	voice int
	row   model.Ghost   // as it was shown last; when it has stopped, for good
	book  Book          // the same
	spent time.Duration // on playing, lately
	marks []count       // at the player's marks
}

// count is how many requests there were, and hits of these.
type count struct{ hits, requests uint64 }

func newPlayer(g *Ghosts, o Options) (*player, error) {
	present, err := normal(o.Present)
	if err != nil {
		return nil, fmt.Errorf("ghost %s: %w", o.Present, err)
	}
	now := time.Now()
	return &player{ghosts: g, options: o, chorus: lab.NewChorus(), present: present, marked: now, marks: []mark{{at: now}}}, nil
}

// add starts a ghost, which has seen nothing before a time; 0: there was nothing to see.
func (p *player) add(c lab.Configuration, since uint64) error {
	voice, err := p.chorus.Add(lab.ReplayOptions{
		Policy: c.Policy, Settings: whole(c), HoldSettings: true, Capacity: p.options.Capacity, Device: p.options.Device,
	})
	if err != nil {
		return err
	}
	name := nameOf(c)
	p.list = append(p.list, &ghost{
		name: name, voice: voice, row: model.Ghost{Name: name, Policy: c.Policy, Since: since}, marks: make([]count, 1, marksMax),
		book: Book{Configuration: c, Name: name},
	})
	return nil
}

// run is the player's goroutine.
func (p *player) run() {
	defer close(p.ghosts.done)
	runtime.LockOSThread() // whose time is what the ghosts cost; with the goroutine the thread ends
	for batch := range p.ghosts.queue {
		p.take(batch)
		p.keepUp(len(p.ghosts.queue))
		if time.Since(p.published) >= publishEvery {
			p.publish()
		}
	}
	p.chorus.Finish()
	p.perform()
	p.publish()
}

// take plays a batch, and gives it back to be filled again.
func (p *player) take(batch []wire.Record) {
	if len(batch) == 0 {
		return
	}
	start := spent()
	present := p.present
	for i := range batch {
		r := &batch[i]
		p.chorus.Read(r)
		if r.Kind == wire.KindLimit && r.Status == 0 {
			present, _ = changed(present, r.Payload)
		}
	}
	p.records += uint64(len(batch))
	p.time = batch[len(batch)-1].Time
	p.perform()
	p.goOver(present)
	p.busy += spent() - start
	select {
	case p.ghosts.spare <- batch:
	default: // a full queue leaves more than are needed
		p.ghosts.made.Add(-1)
	}
}

// perform plays what was read through all ghosts.
func (p *player) perform() {
	now := spent()
	for _, g := range p.list {
		if g.row.Stopped != "" {
			continue
		}
		err := p.chorus.Play(g.voice)
		then := now
		now = spent()
		g.spent = g.spent*7/8 + now - then
		if err != nil {
			p.stop(g, "stopped: "+err.Error())
		}
	}
	p.events += uint64(p.chorus.Clear())
}

// spent returns the processor time of this thread.
func spent() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0 // every Linux has this clock
	}
	return time.Duration(t.Nano())
}

// goOver follows the program to another configuration. One that no ghost has gets one, which begins with nothing.
func (p *player) goOver(to lab.Configuration) {
	name := nameOf(to)
	if name == nameOf(p.present) {
		return
	}
	p.present = to
	if p.late != nil {
		p.drop(p.late)
		p.late = nil
	}
	for _, g := range p.list {
		if g.name == name {
			return
		}
	}
	if p.stopped != "" || p.add(to, p.time) != nil { // else normal would have said so
		return
	}
	p.late = p.list[len(p.list)-1]
}

// drop forgets a ghost.
func (p *player) drop(gone *ghost) {
	if gone.row.Stopped == "" {
		p.chorus.Remove(gone.voice)
	}
	for i, g := range p.list {
		if g == gone {
			p.list = append(p.list[:i], p.list[i+1:]...)
			return
		}
	}
}

// keepUp stops the ghost that takes most when more than half of the queue waits, and gives the others a while before the
// next must go. When records are missing because the queue was full, all stop: what follows would be wrong.
func (p *player) keepUp(waiting int) {
	p.since++
	switch {
	case waiting == 0 && p.ghosts.deaf.Load():
		p.stopAll(p.outpaced())
	case 2*waiting > cap(p.ghosts.queue) && p.since >= patience:
		why := p.outpaced()
		if g := p.dearest(); g != nil {
			p.stop(g, why)
			p.since = 0
		}
		if p.dearest() == nil {
			p.stopped = why
			p.ghosts.deaf.Store(true)
		}
	}
}

// outpaced says why a ghost stops that could not keep up.
func (p *player) outpaced() string {
	first := p.marks[0]
	seconds := max(time.Since(first.at).Seconds(), 1e-3)
	return fmt.Sprintf("stopped: could not keep up at %.2g million events/s", float64(p.records-first.records)/seconds/1e6)
}

// dearest returns the ghost that lately took most time, nil where none goes on. The present one is the last to go:
// without it there is nothing to compare with.
func (p *player) dearest() *ghost {
	var most, present *ghost
	name := nameOf(p.present)
	for _, g := range p.list {
		switch {
		case g.row.Stopped != "":
		case g.name == name:
			present = g
		case most == nil || g.spent > most.spent:
			most = g
		}
	}
	if most == nil {
		return present
	}
	return most
}

// stop ends a ghost, whose figures stay.
func (p *player) stop(g *ghost, why string) {
	p.count(g, p.device())
	g.row.Stopped = why
	p.chorus.Remove(g.voice)
}

func (p *player) stopAll(why string) {
	if p.stopped != "" {
		return
	}
	p.stopped = why
	for _, g := range p.list {
		if g.row.Stopped == "" {
			p.stop(g, why)
		}
	}
}

// enough is how many calls must have been timed before their costs count.
const enough = 16

// assumed is what the driver takes as long as too little was timed, in round figures: 10 µs for a create, 5 µs for a
// release.
var assumed = cost.Device{Create: cost.Line{A: 10_000}, Release: cost.Line{A: 5_000}}

// device returns what the driver takes, as far as the run has told.
func (p *player) device() cost.Device {
	if p.options.Device != (cost.Device{}) {
		return p.options.Device
	}
	d, creates, releases := p.chorus.Device()
	if creates < enough {
		d.Create = assumed.Create
	}
	if releases < enough {
		d.Release = assumed.Release
	}
	d.AssumePart()
	return d
}

// assumes reports whether costs are round figures still.
func (p *player) assumes() bool {
	_, creates, releases := p.chorus.Device()
	return p.options.Device == (cost.Device{}) && (creates < enough || releases < enough)
}

// count brings a ghost's row up to date.
func (p *player) count(g *ghost, device cost.Device) {
	r := p.chorus.Result(g.voice, device)
	row := &g.row
	row.Hits, row.Requests, row.Failures = r.Hits, r.Hits+r.Misses, r.Failures
	row.RecentHits, row.RecentRequests = row.Hits-g.marks[0].hits, row.Requests-g.marks[0].requests
	row.PeakReserved, row.Reserved, row.DriverNS = r.PeakReserved, p.chorus.Reserved(g.voice), r.DriverNS
	g.book.Requests, g.book.PeakReserved, g.book.Work = row.Requests, row.PeakReserved, p.chorus.Work(g.voice)
}

// publish renews the board.
func (p *player) publish() {
	p.published = time.Now()
	device := p.device()
	board := &model.Ghosts{
		Events: p.events, Stopped: p.stopped, Waiting: len(p.ghosts.queue) * batchSize,
		Busy: p.share(), Bytes: uint64(p.ghosts.made.Load())*batchSize*uint64(reflect.TypeFor[wire.Record]().Size()) + uint64(p.chorus.Bytes()),
		CreateA: device.Create.A, CreateB: device.Create.B, ReleaseA: device.Release.A, ReleaseB: device.Release.B,
		Assumed: p.assumes(),
	}
	books := &Books{Device: device, Assumed: board.Assumed}
	name := nameOf(p.present)
	for _, g := range p.list {
		if g.row.Stopped == "" {
			p.count(g, device)
		}
		g.row.Present = g.name == name
		board.Rows = append(board.Rows, g.row)
		books.Rows = append(books.Rows, g.book)
		last := &books.Rows[len(books.Rows)-1]
		last.Present, last.Whole = g.row.Present, g.row.Whole()
	}
	p.ghosts.books.Store(books)
	rank(board.Rows)
	p.ghosts.board.Store(board)
	p.mark()
}

// share returns what part of a core the player has taken since the oldest mark.
func (p *player) share() float64 {
	first := p.marks[0]
	all := p.published.Sub(first.at)
	if all <= 0 {
		return 0
	}
	return min(1, float64(p.busy-first.busy)/float64(all))
}

// mark notes how much there is, once a second.
func (p *player) mark() {
	if p.published.Sub(p.marked) < markEvery {
		return
	}
	p.marked = p.published
	p.marks = push(p.marks, mark{p.published, p.busy, p.records})
	for _, g := range p.list {
		g.marks = push(g.marks, count{g.row.Hits, g.row.Requests})
	}
}

// push appends to a list of which only the latest are kept.
func push[T any](list []T, latest T) []T {
	if len(list) == marksMax {
		list = append(list[:0], list[1:]...)
	}
	return append(list, latest)
}
