package analysis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Thresholds of diagnoses.
const (
	growthIterations  = 4         // fewer may be a warm-up that fills caches
	requestsLeast     = 20        // poolable requests, for a rate to mean something
	hitRateLow        = 0.8       // of the later half: programs that repeat themselves reach more than 0.9
	wasteHigh         = 0.25      // of what is in use at the peak; rounding to powers of two wastes that on average
	wasteRatio        = 1.25      // max_waste_ratio that bounds waste by a fifth
	fragmentationHigh = 0.5       // at the peak: no free block has half of the free memory
	idleShare         = 0.2       // free part of what is reserved at the peak: less is not worth a change
	bytesLeast        = 64 << 10  // less waste or free memory does no harm
	lagShare          = 0.1       // of all byte seconds in use, held after the last use
	lagLeast          = 1_000_000 // ns: less passes between one line of the program and the next
	lagBytes          = 256 << 10 // on average, held so: less is not worth a change
	driverShare       = 0.01      // of the run, spent on calls that could be saved
	copyShare         = 0.9       // of the time in driver calls
	deviceShare       = 0.9       // of device memory: a larger input may not fit
	hiddenShare       = 0.2       // of all creates or of the peak, through one function
	alignMost         = 4096      // bytes: sub-buffers at its multiples are right on all devices that we know
)

// rules look for one problem each, in the order of importance within a severity where their shares are equal.
var rules = []func(*run, *Analysis) (Diagnosis, bool){
	mistakesFound, memoryGrows, machineGrows, memoryIsKept, neverReleased, objectsGrow, lostEvents, deviceFull, hitRateIsLow, policyNone, createsCopy, couldBeHoisted, heldTooLong,
	transferRule(Rewritten), transferRule(ReadBack), transferRule(Unchanged), transferRule(Copied), transferRule(SecondOne), transferRule(ColdRead),
	transferRule(Small), transferRule(Blocking), wasteIsHigh, hosted, poolIsFragmented, nothingCarved, hasOwnPool, callersHidden, originsAreFine,
}

// diagnose applies the rules. The most important diagnosis comes first.
func (x *run) diagnose(a *Analysis) []Diagnosis {
	var list []Diagnosis
	for _, rule := range rules {
		if d, found := rule(x, a); found && (d.Tag == "" || x.options.wanted(d.Tag)) {
			list = append(list, d)
		}
	}
	rank := map[Severity]int{Problem: 0, Advice: 1, Note: 2}
	slices.SortStableFunc(list, func(a, b Diagnosis) int {
		return cmp.Or(cmp.Compare(rank[a.Severity], rank[b.Severity]), cmp.Compare(b.Share, a.Share))
	})
	return list
}

// share returns a part of a whole, at most 1.
func share(part, whole uint64) float64 { return min(float64(part)/float64(max(whole, 1)), 1) }

// length is the time of the part that was analysed, ns.
func (x *run) length() uint64 { return x.survey.last - x.survey.first }

// lostTime is what the driver took for misses.
func lostTime(a *Analysis) (lost uint64) {
	for i := range a.Misses {
		lost += a.Misses[i].LostNS
	}
	return lost
}

func mistakesFound(x *run, _ *Analysis) (Diagnosis, bool) {
	findings := x.snapshot.Findings
	if len(findings) == 0 {
		return Diagnosis{}, false
	}
	at := max(0, slices.IndexFunc(findings, func(f stats.Finding) bool { return f.Certain() }))
	f := &findings[at]
	severity, sure := Problem, ""
	if !f.Certain() {
		severity, sure = Advice, " (not certain)"
	}
	total := x.snapshot.OtherFindings
	for i := range findings {
		total += findings[i].Count
	}
	d := Diagnosis{
		Severity: severity, Title: fmt.Sprintf("%s of the program%s", units.Count(total, "mistake"), sure), Tag: f.Tag,
		Text: f.Text(units.FormatLong), Share: 1, // results may be wrong
	}
	if x.options.Header.Attached { // the library sees mistakes itself; here calls that are lost make others look wrong
		x.doubt(&d, "calls that make it correct", fmt.Sprintf("%s of the program (not certain)", units.Count(total, "mistake")))
	}
	return d, true
}

// growing returns the index of the phase that grows the most in all, -1 if none grows. A phase whose memory is released
// later does not grow: it fills something.
func (x *run) growing(a *Analysis) int {
	grown, at := uint64(0), -1
	for i := range a.Phases {
		p := &a.Phases[i]
		if p.Growth <= 0 || p.Iterations < growthIterations || x.fills(p) {
			continue
		}
		if all := uint64(p.Growth) * p.Iterations; all > grown && x.snapshot.Totals.InUse >= all/2 {
			grown, at = all, i
		}
	}
	return at
}

// fills reports whether a phase is more likely the start of a program than a loop that forgets: it creates and releases nothing,
// and is followed by uses of memory, or by the failure of the program.
func (x *run) fills(p *Phase) bool {
	if p.Releases {
		return false
	}
	for i := range x.snapshot.Processes {
		q := &x.snapshot.Processes[i]
		if q.Number == p.Process && (q.State == stats.Signaled || q.State == stats.Exited && q.Status > 0) {
			return true
		}
	}
	lastUse := x.survey.lastUse - min(x.started, x.survey.lastUse)
	return lastUse > p.End+keptPatience*p.Period
}

// memoryGrows finds iterations that leave more in use than before.
func memoryGrows(x *run, a *Analysis) (Diagnosis, bool) {
	at := x.growing(a)
	if at < 0 {
		return Diagnosis{}, false
	}
	p := &a.Phases[at]
	text := fmt.Sprintf("each of %s leaves %s more in use", units.Count(p.Iterations, "iteration"), units.FormatLong(uint64(p.Growth)))
	at = slices.IndexFunc(x.snapshot.Processes, func(q stats.Process) bool { return q.Number == p.Process })
	if q := &x.snapshot.Processes[max(at, 0)]; at >= 0 && q.DeviceMemory > q.Totals.PeakInUse {
		left := (q.DeviceMemory - q.Totals.PeakInUse) / uint64(p.Growth)
		text += fmt.Sprintf("; after %s the device is full", units.Count(left, "more iteration"))
	}
	d := Diagnosis{
		Severity: Problem, Title: "memory grows with every iteration", Text: text,
		Share: share(uint64(p.Growth)*p.Iterations, a.Peak.InUse),
	}
	if len(a.Leaks) > 0 {
		d.Tag = a.Leaks[0].Name
		d.Text += fmt.Sprintf("; most of what is left comes from %s", d.Tag)
	}
	x.doubt(&d, "releases", "memory may grow with every iteration")
	return d, true
}

func neverReleased(x *run, a *Analysis) (Diagnosis, bool) {
	var buffers, bytes uint64
	for i := range a.Leaks {
		buffers += a.Leaks[i].Buffers
		bytes += a.Leaks[i].Bytes
	}
	if buffers == 0 {
		return Diagnosis{}, false
	}
	top := &a.Leaks[0]
	severity, how := Problem, "never released"
	if !x.options.Whole && !x.anyEnded() { // they may be released later
		severity, how = Note, "in use where the recording ends"
	}
	if x.snapshot.HeldAtExit() {
		severity, how = Note, "held when "+x.snapshot.AbortedBy()+" ended the program"
	}
	d := Diagnosis{
		Severity: severity, Tag: top.Name,
		Title: fmt.Sprintf("%s %s", units.Count(buffers, "buffer"), how),
		Text: fmt.Sprintf("%s in all; %s of it from %s, the oldest created %s after the start", units.FormatLong(bytes),
			units.FormatLong(top.Bytes), top.Name, units.Duration(top.Oldest)),
		Share: share(bytes, a.Peak.InUse),
	}
	x.doubt(&d, "releases", fmt.Sprintf("%s perhaps %s", units.Count(buffers, "buffer"), how))
	return d, true
}

// doubt makes a problem a note with another title if events are lost: what would refute it may be among them.
func (x *run) doubt(d *Diagnosis, what, title string) {
	if x.snapshot.Lost > 0 {
		d.Severity, d.Title = Note, title
		d.Text += "; some of the lost events may be " + what
	}
}

func (x *run) anyEnded() bool {
	for _, p := range x.processes {
		if p.ended {
			return true
		}
	}
	return false
}

func lostEvents(x *run, _ *Analysis) (Diagnosis, bool) {
	s := x.snapshot
	if s.Lost == 0 {
		return Diagnosis{}, false
	}
	title := units.Count(s.Lost, "event") + " lost"
	if s.LostUses > 0 {
		title += fmt.Sprintf(" (%d of them uses)", s.LostUses)
	}
	return Diagnosis{
		Severity: Note, Title: title,
		Text: "figures may be too high or too low, and memory listed as leaked may have been released",
	}, true
}

func deviceFull(x *run, _ *Analysis) (Diagnosis, bool) {
	if p := x.snapshot.Spill; p != nil { // the device is meant to be full
		return thrashes(p, x.length())
	}
	p := fullest(x.snapshot, func(t *stats.Totals) uint64 { return t.PeakReserved })
	if p == nil || float64(p.Totals.PeakReserved) < deviceShare*float64(p.DeviceMemory) {
		return Diagnosis{}, false
	}
	device, most, inUse := p.DeviceMemory, p.Totals.PeakReserved, p.Totals.PeakInUse
	d := Diagnosis{
		Severity: Advice, Title: "device memory is nearly full",
		Text: fmt.Sprintf("at most %s of %s were reserved, and %s in use", units.FormatLong(most), units.FormatLong(device),
			units.FormatLong(inUse)),
		Share: share(most, device),
	}
	room := uint64(deviceShare*float64(device)) - min(inUse, uint64(deviceShare*float64(device)))
	if l := limit(x.snapshot, "max_cached_bytes"); l != nil && room > 0 && float64(room) < l.Value {
		d.Knob = Knob{Limit: l.Name, Value: strconv.FormatUint(room, 10), Why: "this is what remains beside the memory in use"}
	}
	return d, true
}

// fullest returns the process that has reserved the largest part of its device memory, nil where none is known to have any.
func fullest(s *stats.Snapshot, reserved func(*stats.Totals) uint64) (fullest *stats.Process) {
	most := 0.0
	for i := range s.Processes {
		p := &s.Processes[i]
		if part := float64(reserved(&p.Totals)) / float64(p.DeviceMemory); p.DeviceMemory > 0 && part > most {
			fullest, most = p, part
		}
	}
	return fullest
}

// thrashes judges what --spill moved while a run, or as much of it, took ns.
func thrashes(p *stats.Spill, ns uint64) (Diagnosis, bool) {
	if !p.Thrashing {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "the device holds less than the program needs at once", Share: share(p.Stalls.NS, ns),
		Text: fmt.Sprintf("it needs %s, and the device held %s: calls waited %s for buffers to move", units.FormatLong(p.WorkingSet),
			units.FormatLong(p.PeakResident), units.Duration(p.Stalls.NS)),
	}
	if len(p.Sites) > 0 {
		d.Tag = p.Sites[0].Tag
		d.Text += ", most of them from " + d.Tag
	}
	return d, true
}

func hitRateIsLow(x *run, a *Analysis) (Diagnosis, bool) {
	t := &x.snapshot.Totals
	if x.snapshot.Policy == "none" || t.Hits+t.Misses < requestsLeast || t.SteadyHitRate() >= hitRateLow || len(a.Misses) == 0 {
		return Diagnosis{}, false
	}
	main := &a.Misses[0]
	for i := range a.Misses {
		if a.Misses[i].Count > main.Count {
			main = &a.Misses[i]
		}
	}
	if main.Reason == Reason(wire.MissCold.String()) && max(x.growing(a), x.keeping(a)) >= 0 {
		return Diagnosis{}, false // a buffer that is never released cannot serve again: memoryGrows reports it
	}
	lost := lostTime(a)
	if float64(lost) < driverShare*float64(x.length()) {
		return Diagnosis{}, false // nothing to gain
	}
	return Diagnosis{
		Severity: Advice, Title: "the pool serves few requests", Share: share(lost, x.length()),
		Text: fmt.Sprintf("hit rate %s in the later half; %d of %s are %s: %s", units.Percent(t.SteadyHitRate(), t.SteadyRequests),
			main.Count, units.Plural(t.Misses, "miss", "misses"), main.Reason, main.Knob.Why),
		Knob: main.Knob,
	}, true
}

// policyNone finds a loop that calls the driver each time, in a run without a pool.
func policyNone(x *run, a *Analysis) (Diagnosis, bool) {
	t := &x.snapshot.Totals
	iterations := uint64(0)
	for i := range a.Phases {
		iterations = max(iterations, a.Phases[i].Iterations)
	}
	if x.snapshot.Policy != "none" || iterations == 0 || t.MissReasons[wire.MissPolicy] < requestsLeast {
		return Diagnosis{}, false
	}
	lost := lostTime(a)
	if float64(lost) < driverShare*float64(x.length()) {
		return Diagnosis{}, false
	}
	probes := ""
	if x.options.Header.Attached {
		probes = ", including the time of the probes"
	}
	return Diagnosis{
		Severity: Advice, Title: "every iteration goes to the driver", Share: share(lost, x.length()),
		Text: fmt.Sprintf("%s of poolable buffers took %s%s; a pool (--policy futhark) would serve most: check with gpumemtop replay",
			units.Count(t.MissReasons[wire.MissPolicy], "create"), units.Duration(lost), probes),
	}, true
}

// createsCopy finds runs that spend their time in creates that no pool serves.
func createsCopy(x *run, a *Analysis) (Diagnosis, bool) {
	copies, all := x.copyNS, x.snapshot.Totals.DriverNS
	if copies == 0 || x.options.Header.Attached || float64(copies) < copyShare*float64(all) || float64(copies) < driverShare*float64(x.length()) {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: "creates that copy take the time, and no pool serves them", Share: share(copies, x.length()),
		Text: fmt.Sprintf("%s with CL_MEM_COPY_HOST_PTR took %s of the %s in driver calls: create once and write instead",
			units.Count(a.CopyCost.Calls, "create"), units.Duration(copies), units.Duration(all)),
	}, true
}

// couldBeHoisted finds the temporary buffers whose driver calls take the most time.
func couldBeHoisted(x *run, a *Analysis) (Diagnosis, bool) {
	repeats := slices.ContainsFunc(a.Phases, func(p Phase) bool { return p.Iterations > 0 })
	length := x.length()
	if len(a.Temporaries) == 0 || !repeats {
		return Diagnosis{}, false
	}
	top := slices.MaxFunc(a.Temporaries, func(a, b Temporary) int { return cmp.Compare(a.DriverNS, b.DriverNS) })
	if float64(top.DriverNS) < driverShare*float64(length) || top.Buffers < growthIterations {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: "buffers could be created once, before the loop", Tag: top.Name, Share: share(top.DriverNS, length),
		Text: fmt.Sprintf("%s of %s live within one iteration and took the driver %s, %s of the run", units.Count(top.Buffers, "buffer"),
			top.Name, units.Duration(top.DriverNS), units.Percent(float64(top.DriverNS)/float64(length), length)),
	}, true
}

// heldTooLong finds memory that others could have had. At the end of a run no one wants it.
func heldTooLong(x *run, _ *Analysis) (Diagnosis, bool) {
	var top *row
	for _, w := range x.sortedRows() {
		if w.lagTaken > 0 && (top == nil || w.lagTaken > top.lagTaken) {
			top = w
		}
	}
	seconds := units.Seconds(0, max(x.length(), 1))
	idle, inUse := x.lag.taken/seconds, x.byteSeconds/seconds
	if top == nil || idle < max(lagShare*inUse, lagBytes) || top.lag.Percentile(0.5) < lagLeast {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: "memory is released long after its last use", Tag: top.name,
		Share: min(x.lag.taken/max(x.byteSeconds, 1), 1),
		Text: fmt.Sprintf("half of the buffers of %s were held %s or longer after their last use; in all, %s of the %s in use were idle so, on average",
			top.name, units.Duration(top.lag.Percentile(0.5)), units.FormatLong(uint64(idle)), units.FormatLong(uint64(inUse))),
	}, true
}

// callersHidden finds the function that creates the most for several callers: of all creates, or of the peak.
func callersHidden(x *run, a *Analysis) (Diagnosis, bool) {
	var d Diagnosis
	for _, w := range x.survey.names.Wrappers() {
		var part float64
		if row := x.rows[w.Name]; row != nil {
			part = share(row.creates, x.snapshot.Totals.Creates)
		}
		if at := slices.IndexFunc(a.Peak.Tags, func(t PeakTag) bool { return t.Name == w.Name }); at >= 0 {
			part = max(part, share(a.Peak.Tags[at].InUse, a.Peak.InUse))
		}
		if part >= hiddenShare && part > d.Share {
			d = Diagnosis{
				Severity: Note, Title: "one function creates memory for several callers", Tag: w.Name, Share: part,
				Text: fmt.Sprintf("%s call %s: --wrapper '^%s$' names call sites after them", units.Count(uint64(w.Callers), "place"),
					w.Name, regexp.QuoteMeta(w.Function)),
			}
		}
	}
	return d, d.Tag != ""
}

// originsAreFine finds sub-buffers that are right here and refused by devices with a coarser alignment.
func originsAreFine(x *run, _ *Analysis) (Diagnosis, bool) {
	o := &x.survey.parts
	if o.count == 0 {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Note, Title: "sub-buffers may be refused on other devices", Tag: x.survey.names.Process(o.process).Site(o.tag).Name,
		Text: fmt.Sprintf("%s at multiples of only %s; devices want multiples of 128 B to 4.00 KiB: round up to CL_DEVICE_MEM_BASE_ADDR_ALIGN "+
			"/ 8; gpumemtop fit --on checks one device", units.Plural(o.count, "begins", "begin"), units.FormatLong(o.coarsest)),
	}, true
}
