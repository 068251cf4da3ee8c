package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// When something is worth a diagnosis.
const (
	growthIterations  = 4         // fewer may be a warm-up, which fills caches
	requestsLeast     = 20        // of poolable requests, for a rate to mean something
	hitRateLow        = 0.8       // of the later half: a program that repeats itself gets more than nine of ten
	wasteHigh         = 0.25      // of what is in use at the peak; rounding to powers of two wastes that on average
	wasteRatio        = 1.25      // the ratio that allows no more waste than a fifth
	fragmentationHigh = 0.5       // at the peak: no free block has half of what is free
	idleShare         = 0.2       // of what is reserved at the peak, free: less is not worth a change
	bytesLeast        = 64 << 10  // waste and free memory below that hurt nobody
	lagShare          = 0.1       // of all byte seconds in use: so much was held for nothing
	lagLeast          = 1_000_000 // ns: what is shorter is the way from one line of the program to the next
	driverShare       = 0.01      // of the run, spent on what could be saved
	deviceShare       = 0.9       // of the device's memory: the next larger input may not fit
)

// rules look for one thing each, in the order of importance within a severity.
var rules = []func(*run, *Analysis) (Diagnosis, bool){
	mistakesFound, memoryGrows, neverReleased, lostEvents, deviceFull, hitRateIsLow, policyNone, couldBeHoisted, heldTooLong,
	wasteIsHigh, poolIsFragmented,
}

// diagnose draws conclusions, the most important first.
func (x *run) diagnose(a *Analysis) []Diagnosis {
	var list []Diagnosis
	for _, rule := range rules {
		if d, found := rule(x, a); found && (d.Tag == "" || x.options.wanted(d.Tag)) {
			list = append(list, d)
		}
	}
	rank := map[Severity]int{Problem: 0, Advice: 1, Note: 2}
	slices.SortStableFunc(list, func(a, b Diagnosis) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return list
}

func mistakesFound(x *run, _ *Analysis) (Diagnosis, bool) {
	findings := x.snapshot.Findings
	if len(findings) == 0 {
		return Diagnosis{}, false
	}
	at := max(0, slices.IndexFunc(findings, func(f model.Finding) bool { return f.Certain() }))
	f := &findings[at]
	severity, sure := Problem, ""
	if !f.Certain() {
		severity, sure = Advice, " (not certain)"
	}
	total := x.snapshot.OtherFindings
	for i := range findings {
		total += findings[i].Count
	}
	return Diagnosis{
		Severity: severity, Title: fmt.Sprintf("%s of the program%s", plain.Count(total, "mistake"), sure), Tag: f.Tag,
		Text: f.Text(size.FormatLong),
	}, true
}

// growing returns the place of the phase that grows the most in all, -1 when none does.
func growing(a *Analysis) int {
	grown, at := uint64(0), -1
	for i := range a.Phases {
		if p := &a.Phases[i]; p.Growth > 0 && p.Iterations >= growthIterations && uint64(p.Growth)*p.Iterations > grown {
			grown, at = uint64(p.Growth)*p.Iterations, i
		}
	}
	return at
}

// memoryGrows finds iterations that leave more in use than there was.
func memoryGrows(x *run, a *Analysis) (Diagnosis, bool) {
	at := growing(a)
	if at < 0 {
		return Diagnosis{}, false
	}
	p := &a.Phases[at]
	text := fmt.Sprintf("each of %s leaves %s more in use", plain.Count(p.Iterations, "iteration"), size.FormatLong(uint64(p.Growth)))
	if device := x.deviceMemory(); device > a.Peak.InUse {
		left := (device - a.Peak.InUse) / uint64(p.Growth)
		text += fmt.Sprintf("; after %s more the device is full", plain.Count(left, "iteration"))
	}
	d := Diagnosis{Severity: Problem, Title: "memory grows with every iteration", Text: text}
	if len(a.Leaks) > 0 {
		d.Tag = a.Leaks[0].Name
		d.Text += fmt.Sprintf("; most of what is never released comes from %s", d.Tag)
	}
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
	if !x.options.Whole && !x.anyEnded() { // they might have been
		severity, how = Note, "in use where the recording breaks off"
	}
	return Diagnosis{
		Severity: severity, Tag: top.Name,
		Title: fmt.Sprintf("%s %s", plain.Count(buffers, "buffer"), how),
		Text: fmt.Sprintf("%s in all; %s of it from %s, the oldest made %s after the start", size.FormatLong(bytes),
			size.FormatLong(top.Bytes), top.Name, plain.Duration(top.Oldest)),
	}, true
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
	return Diagnosis{
		Severity: Note, Title: fmt.Sprintf("%s lost", plain.Count(s.Lost, "event")),
		Text: fmt.Sprintf("%d of them uses: figures are too low, and what is listed as never released may have been", s.LostUses),
	}, true
}

// deviceMemory is what each process has, 0 when unknown.
func (x *run) deviceMemory() uint64 {
	if x.options.Header.DeviceMemory > 0 {
		return x.options.Header.DeviceMemory
	}
	return x.snapshot.Device.Global
}

func deviceFull(x *run, _ *Analysis) (Diagnosis, bool) {
	device, most, inUse := x.deviceMemory(), uint64(0), uint64(0)
	for i := range x.snapshot.Processes {
		if t := &x.snapshot.Processes[i].Totals; t.PeakReserved > most {
			most, inUse = t.PeakReserved, t.PeakInUse
		}
	}
	if device == 0 || float64(most) < deviceShare*float64(device) {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "the device's memory is nearly used up",
		Text: fmt.Sprintf("%s of %s were reserved at a time, %s in use at most", size.FormatLong(most), size.FormatLong(device),
			size.FormatLong(inUse)),
	}
	room := uint64(deviceShare*float64(device)) - min(inUse, uint64(deviceShare*float64(device)))
	if l := limit(x.snapshot, "max_cached_bytes"); l != nil && room > 0 && float64(room) < l.Value {
		d.Knob = Knob{Limit: l.Name, Value: strconv.FormatUint(room, 10), Why: "so much is left beside what is in use"}
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
	if main.Reason == wire.MissCold.String() && growing(a) >= 0 {
		return Diagnosis{}, false // what is never released cannot serve again: the growth says it all
	}
	return Diagnosis{
		Severity: Advice, Title: "the pool serves few requests",
		Text: fmt.Sprintf("hit rate %s in the later half; %d of %s are %s: %s", plain.Percent(t.SteadyHitRate(), t.SteadyRequests),
			main.Count, plain.Misses(t.Misses), main.Reason, main.Knob.Why),
		Knob: main.Knob,
	}, true
}

// policyNone finds a loop that goes to the driver each time, in a run that was only watched.
func policyNone(x *run, a *Analysis) (Diagnosis, bool) {
	t := &x.snapshot.Totals
	iterations := uint64(0)
	for i := range a.Phases {
		iterations = max(iterations, a.Phases[i].Iterations)
	}
	if x.snapshot.Policy != "none" || iterations == 0 || t.MissReasons[wire.MissPolicy] < requestsLeast {
		return Diagnosis{}, false
	}
	var lost uint64
	for i := range a.Misses {
		lost += a.Misses[i].LostNS
	}
	probes := ""
	if x.options.Header.Attached {
		probes = ", the probes' own time in it"
	}
	return Diagnosis{
		Severity: Advice, Title: "every iteration goes to the driver",
		Text: fmt.Sprintf("%s of poolable buffers took it %s%s; a pool (--policy futhark) would serve most: gpumemtop replay tells",
			plain.Count(t.MissReasons[wire.MissPolicy], "create"), plain.Duration(lost), probes),
	}, true
}

// couldBeHoisted finds the buffers of every iteration that cost the most.
func couldBeHoisted(x *run, a *Analysis) (Diagnosis, bool) {
	repeats := slices.ContainsFunc(a.Phases, func(p Phase) bool { return p.Iterations > 0 })
	length := x.survey.last - x.survey.first
	if len(a.Temporaries) == 0 || !repeats {
		return Diagnosis{}, false
	}
	top := slices.MaxFunc(a.Temporaries, func(a, b Temporary) int { return cmp.Compare(a.DriverNS, b.DriverNS) })
	if float64(top.DriverNS) < driverShare*float64(length) || top.Buffers < growthIterations {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: "buffers could be created once, before the loop", Tag: top.Name,
		Text: fmt.Sprintf("%s of %s live within one iteration and took the driver %s, %s of the run", plain.Count(top.Buffers, "buffer"),
			top.Name, plain.Duration(top.DriverNS), plain.Percent(float64(top.DriverNS)/float64(length), length)),
	}, true
}

func heldTooLong(x *run, a *Analysis) (Diagnosis, bool) {
	if len(a.Lag.Tags) == 0 || a.Lag.ByteSeconds < lagShare*x.byteSeconds {
		return Diagnosis{}, false
	}
	top := &a.Lag.Tags[0]
	if top.P50 < lagLeast {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: "memory is released long after its last use", Tag: top.Name,
		Text: fmt.Sprintf("half of the buffers of %s were held %s or longer for nothing: %s × s, of %s × s in use in all", top.Name,
			plain.Duration(top.P50), size.FormatLong(uint64(top.ByteSeconds)), size.FormatLong(uint64(x.byteSeconds))),
	}, true
}

func wasteIsHigh(x *run, a *Analysis) (Diagnosis, bool) {
	wasted := a.Peak.InUse - min(a.Peak.Requested, a.Peak.InUse)
	rate := wasteOf(int64(a.Peak.InUse), int64(a.Peak.Requested))
	if rate < wasteHigh || wasted < bytesLeast {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "blocks are much larger than what was asked for",
		Text: fmt.Sprintf("%s of the %s in use at the peak are waste, %s", size.FormatLong(wasted), size.FormatLong(a.Peak.InUse),
			plain.Percent(rate, 1)),
	}
	if l := limit(x.snapshot, "mantissa_bits"); l != nil && l.Value < l.Max {
		d.Knob = Knob{Limit: l.Name, Value: strconv.Itoa(int(l.Value) + 1), Why: "more bits waste less"}
	} else if l := limit(x.snapshot, "max_waste_ratio"); l != nil && l.Value > wasteRatio && x.snapshot.Policy == "futhark-2018" {
		// With futhark it is for blocks of other call sites alone: those of the same one serve whatever their size.
		d.Knob = Knob{Limit: l.Name, Value: strconv.FormatFloat(wasteRatio, 'f', -1, 64), Why: "larger blocks then do not serve"}
	}
	return d, true
}

func poolIsFragmented(x *run, a *Analysis) (Diagnosis, bool) {
	free := a.Peak.Reserved - min(a.Peak.InUse, a.Peak.Reserved)
	l := &a.Timeline
	if a.Peak.InUse == 0 || len(l.Fragmentation) == 0 {
		return Diagnosis{}, false
	}
	at := min(int((a.Peak.Time-min(l.Start, a.Peak.Time))/l.Step), len(l.Fragmentation)-1)
	if l.Fragmentation[at] < fragmentationHigh || free < bytesLeast || float64(free) < idleShare*float64(a.Peak.Reserved) {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: "free memory is in small pieces when it is needed",
		Text: fmt.Sprintf("at the peak %s lay free beside %s in use, no piece with more than %s of it: gpumemtop replay --policy slab "+
			"tells whether parts of slabs fit better", size.FormatLong(free), size.FormatLong(a.Peak.InUse),
			plain.Percent(1-l.Fragmentation[at], free)),
	}, true
}
