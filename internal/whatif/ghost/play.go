package ghost

import (
	"fmt"
	"slices"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
)

const (
	markEvery = time.Second // for figures of the last while
	marksMax  = 10
	patience  = 8 // parts that are played before another ghost is stopped for being behind

	buffersMax = 1 << 18 // that all ghosts together have: each takes a third of a kilobyte
)

// mark is how much there was at a time.
type mark struct {
	at      time.Time
	busy    time.Duration
	records uint64
}

// ghost is one configuration.
type ghost struct {
	configuration replay.Configuration
	name          string
	voice         int
	row           stats.Ghost   // as it was shown last; when it has stopped, for good
	work          cost.Work     // the same
	spent         time.Duration // on playing, lately
	marks         []count       // at the marks of all
}

// count is how many requests there were, and hits of these.
type count struct{ hits, requests uint64 }

func newGhost(c replay.Configuration, since uint64) *ghost {
	name := nameOf(c)
	return &ghost{configuration: c, name: name, row: stats.Ghost{Name: name, Policy: c.Policy, Since: since}, marks: make([]count, 1, marksMax)}
}

// join lets a ghost take part from here on.
func (g *Ghosts) join(one *ghost) error {
	var err error
	o := replay.Configuration{Policy: one.configuration.Policy, Settings: whole(one.configuration)}.Held()
	o.Capacity, o.Device = g.options.Capacity, g.options.Device
	one.voice, err = g.chorus.Add(o)
	return err
}

// Begin implements live.Listener. When records are missing all ghosts stop: what follows would be wrong. After a rest
// those that go on have nothing, and count from there on.
func (g *Ghosts) Begin(c *replay.Batch, missed uint64) {
	if missed > 0 {
		g.stopAll(g.outpaced())
		return
	}
	g.fresh = g.options.Late || g.chorus != nil
	g.chorus = c
	for _, one := range g.list {
		if one.row.Stopped != "" {
			continue
		}
		if g.fresh {
			*one = *newGhost(one.configuration, max(g.time, 1))
		}
		if err := g.join(one); err != nil {
			one.row.Stopped = "stopped: " + err.Error()
		}
	}
	g.Publish(&live.Load{})
}

// Play implements live.Listener.
func (g *Ghosts) Play(part *live.Part) bool {
	if g.stopped != "" {
		return false
	}
	start := live.Spent()
	g.perform(start)
	g.events += uint64(g.chorus.Events())
	g.records += uint64(part.Records)
	g.time = max(g.time, part.Time)
	g.start()
	if part.Change != nil {
		g.goOver(changed(g.present, part.Change))
	}
	g.keepUp(part.Behind)
	g.keepSmall()
	g.busy += part.Looked + live.Spent() - start
	return g.stopped == ""
}

// Sated implements live.Listener: ghosts are compared over all of the run.
func (g *Ghosts) Sated() bool { return false }

// start notes when the ghosts began that did so in the middle of the run.
func (g *Ghosts) start() {
	if !g.fresh || g.time == 0 {
		return
	}
	g.fresh = false
	for _, one := range g.list {
		if one.row.Stopped == "" {
			one.row.Since = g.time
		}
	}
}

// perform plays what was read through all ghosts.
func (g *Ghosts) perform(now time.Duration) {
	for _, one := range g.list {
		if one.row.Stopped != "" {
			continue
		}
		err := g.chorus.Play(one.voice)
		then := now
		now = live.Spent()
		one.spent = one.spent*7/8 + now - then
		if err != nil {
			g.stop(one, "stopped: "+err.Error())
		}
	}
}

// goOver follows the program to another configuration. One that no ghost has gets one, which begins with nothing.
func (g *Ghosts) goOver(to replay.Configuration) {
	name := nameOf(to)
	if name == nameOf(g.present) {
		return
	}
	g.present = to
	if g.late != nil {
		g.drop(g.late)
		g.late = nil
	}
	if slices.ContainsFunc(g.list, func(one *ghost) bool { return one.name == name }) {
		return
	}
	one := newGhost(to, g.time)
	if g.join(one) == nil { // else normal would have said so
		g.list, g.late = append(g.list, one), one
	}
}

// drop forgets a ghost.
func (g *Ghosts) drop(gone *ghost) {
	if gone.row.Stopped == "" {
		g.chorus.Remove(gone.voice)
	}
	g.list = slices.DeleteFunc(g.list, func(one *ghost) bool { return one == gone })
}

// keepUp stops the ghost that takes most when too much waits, and gives the others a while before the next must go.
func (g *Ghosts) keepUp(behind bool) {
	g.since++
	if behind && g.since >= patience {
		g.stopDearest(g.outpaced())
		g.since = 0
	}
}

// keepSmall stops ghosts until what they know of buffers takes little memory.
func (g *Ghosts) keepSmall() {
	going := 0
	for _, one := range g.list {
		if one.row.Stopped == "" {
			going++
		}
	}
	buffers := g.chorus.Buffers()
	for ; going > 0 && going*buffers > buffersMax; going-- {
		g.stopDearest(fmt.Sprintf("stopped: the program has %d buffers at a time", buffers))
	}
}

func (g *Ghosts) stopDearest(why string) {
	if one := g.dearest(); one != nil {
		g.stop(one, why)
	}
	if g.dearest() == nil {
		g.stopped = why
	}
}

// outpaced says why a ghost stops that could not keep up.
func (g *Ghosts) outpaced() string {
	first := g.marks[0]
	seconds := max(time.Since(first.at).Seconds(), 1e-3)
	return fmt.Sprintf("stopped: could not keep up at %.2g million events/s", float64(g.records-first.records)/seconds/1e6)
}

// dearest returns the ghost that lately took most time, nil where none goes on. The present one is the last to go:
// without it there is nothing to compare with.
func (g *Ghosts) dearest() *ghost {
	var most, present *ghost
	name := nameOf(g.present)
	for _, one := range g.list {
		switch {
		case one.row.Stopped != "":
		case one.name == name:
			present = one
		case most == nil || one.spent > most.spent:
			most = one
		}
	}
	if most == nil {
		return present
	}
	return most
}

// stop ends a ghost, whose figures stay.
func (g *Ghosts) stop(one *ghost, why string) {
	g.count(one, g.device())
	one.row.Stopped = why
	g.chorus.Remove(one.voice)
}

func (g *Ghosts) stopAll(why string) {
	if g.stopped != "" {
		return
	}
	g.stopped = why
	for _, one := range g.list {
		if one.row.Stopped == "" {
			g.stop(one, why)
		}
	}
}

// enough is how many calls must have been timed before their costs count.
const enough = 16

// assumed is what the driver takes as long as too little was timed, in round figures: 10 µs for a create, 5 µs for a
// release.
var assumed = cost.Device{Create: cost.Line{A: 10_000}, Release: cost.Line{A: 5_000}}

// device returns what the driver takes, as far as the run has shown.
func (g *Ghosts) device() cost.Device {
	if g.options.Device != (cost.Device{}) {
		return g.options.Device
	}
	d, creates, releases := g.chorus.Device()
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
func (g *Ghosts) assumes() bool {
	_, creates, releases := g.chorus.Device()
	return g.options.Device == (cost.Device{}) && (creates < enough || releases < enough)
}

// count brings a ghost's row up to date.
func (g *Ghosts) count(one *ghost, device cost.Device) {
	r := g.chorus.Result(one.voice, device)
	row := &one.row
	row.Hits, row.Requests, row.Failures = r.Hits, r.Hits+r.Misses, r.Failures
	row.RecentHits, row.RecentRequests = row.Hits-one.marks[0].hits, row.Requests-one.marks[0].requests
	row.PeakReserved, row.Reserved, row.DriverNS = r.PeakReserved, g.chorus.Reserved(one.voice), r.DriverNS
	one.work = g.chorus.Work(one.voice)
}

// Publish implements live.Listener: it renews the board.
func (g *Ghosts) Publish(load *live.Load) {
	g.published = time.Now()
	device := g.device()
	board := &stats.Ghosts{
		Events: g.events, Stopped: g.stopped, Waiting: load.Waiting, Busy: g.share(), Bytes: load.Bytes,
		CreateA: device.Create.A, CreateB: device.Create.B, ReleaseA: device.Release.A, ReleaseB: device.Release.B,
		Assumed: g.assumes(),
	}
	books := &Books{Device: device, Assumed: board.Assumed}
	name := nameOf(g.present)
	for _, one := range g.list {
		if one.row.Stopped == "" {
			g.count(one, device)
		}
		one.row.Present = one.name == name
		board.Rows = append(board.Rows, one.row)
		books.Rows = append(books.Rows, Book{Ghost: one.row, Configuration: one.configuration, Work: one.work})
	}
	g.books.Store(books)
	rank(board.Rows)
	g.board.Store(board)
	g.mark()
}

// share returns what part of a core the player has taken since the oldest mark.
func (g *Ghosts) share() float64 {
	first := g.marks[0]
	all := g.published.Sub(first.at)
	if all <= 0 {
		return 0
	}
	return min(1, float64(g.busy-first.busy)/float64(all))
}

// mark notes how much there is, once a second.
func (g *Ghosts) mark() {
	if g.published.Sub(g.marked) < markEvery {
		return
	}
	g.marked = g.published
	g.marks = push(g.marks, mark{g.published, g.busy, g.records})
	for _, one := range g.list {
		one.marks = push(one.marks, count{one.row.Hits, one.row.Requests})
	}
}

// push appends to a list of which only the latest are kept.
func push[T any](list []T, latest T) []T {
	if len(list) == marksMax {
		list = append(list[:0], list[1:]...)
	}
	return append(list, latest)
}
