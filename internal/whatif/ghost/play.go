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
	checkpointInterval = time.Second // the recent figures reach back ten intervals
	checkpointsMax     = 10
	partsBetweenStops  = 8 // after a ghost was stopped, the others get this many parts to catch up before the next is stopped

	buffersMax = 1 << 18 // of all ghosts together; each buffer takes a third of a kilobyte
)

// checkpoint is the work done up to a time.
type checkpoint struct {
	at      time.Time
	busy    time.Duration
	records uint64
}

// ghost is one simulated configuration.
type ghost struct {
	configuration replay.Configuration
	name          string
	member        int
	row           stats.Ghost   // the latest published figures; final after a stop
	work          cost.Work     // the same
	recentTime    time.Duration // time spent on playing; older parts count less
	counts        []hitCount    // at the checkpoints of Ghosts
}

// hitCount is the number of requests, and of hits among them.
type hitCount struct{ hits, requests uint64 }

func newGhost(c replay.Configuration, since uint64) *ghost {
	name := nameOfConfiguration(c)
	return &ghost{configuration: c, name: name, row: stats.Ghost{Name: name, Policy: c.Policy, Since: since}, counts: make([]hitCount, 1, checkpointsMax)}
}

// addToBatch adds a ghost to the batch. The ghost plays the records that follow.
func (g *Ghosts) addToBatch(ghost *ghost) error {
	var err error
	o := replay.Configuration{Policy: ghost.configuration.Policy, Settings: settingsOfAllLimits(ghost.configuration)}.OptionsKeepingLimits()
	o.Capacity, o.Device = g.options.Capacity, g.options.Device
	ghost.member, err = g.batch.AddSimulation(o)
	return err
}

// Begin implements live.Listener. When records are missing all ghosts stop, because their figures would be wrong from
// there on. After a pause the ghosts start again with empty pools and new figures.
func (g *Ghosts) Begin(batch *replay.Batch, missed uint64) {
	if missed > 0 {
		g.stopAll(g.whyStoppedForLag())
		return
	}
	g.startPending = g.options.MidRun || g.batch != nil
	g.batch = batch
	for _, ghost := range g.ghosts {
		if ghost.row.Stopped != "" {
			continue
		}
		if g.startPending {
			*ghost = *newGhost(ghost.configuration, max(g.time, 1))
		}
		if err := g.addToBatch(ghost); err != nil {
			ghost.row.Stopped = "stopped: " + err.Error()
		}
	}
	g.Publish(&live.Load{})
}

// Play implements live.Listener.
func (g *Ghosts) Play(part *live.Part) bool {
	if g.stopReason != "" {
		return false
	}
	start := live.ThreadTime()
	g.playActiveGhosts(start)
	g.events += uint64(g.batch.EventCount())
	g.records += uint64(part.Records)
	g.time = max(g.time, part.Time)
	g.noteGhostStart()
	if part.Change != nil {
		g.followToConfiguration(configurationAfterChange(g.current, part.Change))
	}
	g.stopSlowestIfBehind(part.Behind)
	g.stopGhostsForMemory()
	g.busy += part.ReadTime + live.ThreadTime() - start
	return g.stopReason == ""
}

// CanSkip implements live.Listener. Ghosts are compared over the whole run, so they skip nothing.
func (g *Ghosts) CanSkip() bool { return false }

// noteGhostStart notes the start time of ghosts that start in the middle of the run.
func (g *Ghosts) noteGhostStart() {
	if !g.startPending || g.time == 0 {
		return
	}
	g.startPending = false
	for _, ghost := range g.ghosts {
		if ghost.row.Stopped == "" {
			ghost.row.Since = g.time
		}
	}
}

// playActiveGhosts lets every active ghost play the part.
func (g *Ghosts) playActiveGhosts(now time.Duration) {
	for _, ghost := range g.ghosts {
		if ghost.row.Stopped != "" {
			continue
		}
		err := g.batch.PlayMember(ghost.member)
		before := now
		now = live.ThreadTime()
		ghost.recentTime = ghost.recentTime*7/8 + now - before
		if err != nil {
			g.stopGhost(ghost, "stopped: "+err.Error())
		}
	}
}

// followToConfiguration follows the program to another configuration. If no ghost simulates that configuration, it starts one with
// an empty pool.
func (g *Ghosts) followToConfiguration(to replay.Configuration) {
	name := nameOfConfiguration(to)
	if name == nameOfConfiguration(g.current) {
		return
	}
	g.current = to
	if g.added != nil {
		g.removeGhost(g.added)
		g.added = nil
	}
	if slices.ContainsFunc(g.ghosts, func(ghost *ghost) bool { return ghost.name == name }) {
		return
	}
	ghost := newGhost(to, g.time)
	if g.addToBatch(ghost) == nil { // a normalized configuration is always accepted
		g.ghosts, g.added = append(g.ghosts, ghost), ghost
	}
}

// removeGhost removes a ghost and its row.
func (g *Ghosts) removeGhost(removed *ghost) {
	if removed.row.Stopped == "" {
		g.batch.RemoveMember(removed.member)
	}
	g.ghosts = slices.DeleteFunc(g.ghosts, func(ghost *ghost) bool { return ghost == removed })
}

// stopSlowestIfBehind stops the slowest ghost when too many records wait, and gives the others time to catch up before it stops
// the next.
func (g *Ghosts) stopSlowestIfBehind(behind bool) {
	g.partsSinceStop++
	if behind && g.partsSinceStop >= partsBetweenStops {
		g.stopSlowest(g.whyStoppedForLag())
		g.partsSinceStop = 0
	}
}

// stopGhostsForMemory stops ghosts until the tables of buffers are small enough.
func (g *Ghosts) stopGhostsForMemory() {
	active := 0
	for _, ghost := range g.ghosts {
		if ghost.row.Stopped == "" {
			active++
		}
	}
	buffers := g.batch.LiveBufferCount()
	for ; active > 0 && active*buffers > buffersMax; active-- {
		g.stopSlowest(fmt.Sprintf("stopped: the program has %d buffers at a time", buffers))
	}
}

// stopSlowest stops the slowest ghost. If no ghost is left, all have stopped for this reason.
func (g *Ghosts) stopSlowest(reason string) {
	if ghost := g.slowestGhost(); ghost != nil {
		g.stopGhost(ghost, reason)
	}
	if g.slowestGhost() == nil {
		g.stopReason = reason
	}
}

// whyStoppedForLag returns the text for a ghost that could not keep up.
func (g *Ghosts) whyStoppedForLag() string {
	first := g.checkpoints[0]
	seconds := max(time.Since(first.at).Seconds(), 1e-3)
	return fmt.Sprintf("stopped: could not keep up at %.2g million events/s", float64(g.records-first.records)/seconds/1e6)
}

// slowestGhost returns the active ghost that recently took the most time, nil if none is active. The ghost of the current
// configuration is the last to be chosen: without it the others cannot be compared.
func (g *Ghosts) slowestGhost() *ghost {
	var slowest, current *ghost
	name := nameOfConfiguration(g.current)
	for _, ghost := range g.ghosts {
		switch {
		case ghost.row.Stopped != "":
		case ghost.name == name:
			current = ghost
		case slowest == nil || ghost.recentTime > slowest.recentTime:
			slowest = ghost
		}
	}
	if slowest == nil {
		return current
	}
	return slowest
}

// stopGhost stops a ghost. Its figures stay in the leaderboard.
func (g *Ghosts) stopGhost(ghost *ghost, reason string) {
	device, assumed := g.driverCostsAndAssumptions()
	g.updateRow(ghost, device, assumed)
	ghost.row.Stopped = reason
	g.batch.RemoveMember(ghost.member)
}

func (g *Ghosts) stopAll(reason string) {
	if g.stopReason != "" {
		return
	}
	g.stopReason = reason
	for _, ghost := range g.ghosts {
		if ghost.row.Stopped == "" {
			g.stopGhost(ghost, reason)
		}
	}
}

// timedCallsMin is how many calls must have been timed before their measured costs are used.
const timedCallsMin = 16

// assumedDevice is what driver calls are assumed to cost before enough were timed, in round figures: 10 µs for a
// create, 5 µs for a release.
var assumedDevice = cost.Device{Create: cost.Line{A: 10_000}, Release: cost.Line{A: 5_000}}

// driverCostsAndAssumptions returns what driver calls cost, as far as the run has shown, and which costs are assumed.
func (g *Ghosts) driverCostsAndAssumptions() (cost.Device, assumption) {
	if d := g.options.Device; d != (cost.Device{}) {
		return d, assumption{parts: d.PartAssumed}
	}
	d, creates, releases := g.batch.LearnedCosts()
	assumed := assumption{creates: creates < timedCallsMin, releases: releases < timedCallsMin}
	if assumed.creates {
		d.Create = assumedDevice.Create
	}
	if assumed.releases {
		d.Release = assumedDevice.Release
	}
	d.AssumePartCost()
	assumed.parts = d.PartAssumed
	return d, assumed
}

// assumption is which costs of a device are assumed.
type assumption struct{ creates, releases, parts bool }

// assumedShare is the least share of a driver time for which assumed costs count.
const assumedShare = 0.01

// matterToResult reports whether assumed costs matter to a driver time.
func (a assumption) matterToResult(r *replay.Result) bool {
	var ns float64
	if a.creates {
		ns += r.CreateNS
	}
	if a.releases {
		ns += r.ReleaseNS
	}
	if a.parts {
		ns += r.PartNS
	}
	return ns > assumedShare*r.DriverNS
}

// updateRow brings a ghost's row up to date.
func (g *Ghosts) updateRow(ghost *ghost, device cost.Device, assumed assumption) {
	r := g.batch.ResultOfMember(ghost.member, device)
	row := &ghost.row
	row.Hits, row.Requests, row.Failures = r.Hits, r.Hits+r.Misses, r.Failures
	row.RecentHits, row.RecentRequests = row.Hits-ghost.counts[0].hits, row.Requests-ghost.counts[0].requests
	row.PeakReserved, row.Reserved, row.DriverNS = r.PeakReserved, g.batch.ReservedBytesOfMember(ghost.member), r.DriverNS
	row.Assumed = assumed.matterToResult(&r)
	ghost.work = g.batch.DriverCallsOfMember(ghost.member)
}

// Publish implements live.Listener: it renews the leaderboard.
func (g *Ghosts) Publish(load *live.Load) {
	g.published = time.Now()
	device, assumed := g.driverCostsAndAssumptions()
	leaderboard := &stats.Ghosts{
		Events: g.events, Stopped: g.stopReason, Waiting: load.Waiting, Busy: g.processorShare(), Bytes: load.Bytes,
		CreateA: device.Create.A, CreateB: device.Create.B, ReleaseA: device.Release.A, ReleaseB: device.Release.B,
		Assumed: assumed.creates || assumed.releases,
	}
	results := &Results{Device: device, Assumed: leaderboard.Assumed}
	name := nameOfConfiguration(g.current)
	for _, ghost := range g.ghosts {
		if ghost.row.Stopped == "" {
			g.updateRow(ghost, device, assumed)
		}
		ghost.row.Present = ghost.name == name
		leaderboard.Rows = append(leaderboard.Rows, ghost.row)
		results.Rows = append(results.Rows, Result{Ghost: ghost.row, Configuration: ghost.configuration, Work: ghost.work})
	}
	g.results.Store(results)
	sortBestFirst(leaderboard.Rows)
	g.leaderboard.Store(leaderboard)
	g.addDueCheckpoint()
}

// processorShare returns the share of one processor core that the ghosts have used since the oldest checkpoint.
func (g *Ghosts) processorShare() float64 {
	first := g.checkpoints[0]
	all := g.published.Sub(first.at)
	if all <= 0 {
		return 0
	}
	return min(1, float64(g.busy-first.busy)/float64(all))
}

// addDueCheckpoint adds a checkpoint once per interval.
func (g *Ghosts) addDueCheckpoint() {
	if g.published.Sub(g.lastCheckpoint) < checkpointInterval {
		return
	}
	g.lastCheckpoint = g.published
	g.checkpoints = appendLatest(g.checkpoints, checkpoint{g.published, g.busy, g.records})
	for _, ghost := range g.ghosts {
		ghost.counts = appendLatest(ghost.counts, hitCount{ghost.row.Hits, ghost.row.Requests})
	}
}

// appendLatest appends to a list that keeps the latest checkpointsMax elements.
func appendLatest[T any](list []T, latest T) []T {
	if len(list) == checkpointsMax {
		list = append(list[:0], list[1:]...)
	}
	return append(list, latest)
}
