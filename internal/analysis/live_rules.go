package analysis

import (
	"fmt"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// moment is what rules for a run that goes on judge.
type moment struct {
	*Live
	s     *stats.Snapshot
	run   uint64 // ns
	ended bool
}

func (x *moment) judge() (points []Point) {
	points = x.events()
	add := func(d Diagnosis, found bool) {
		if found {
			points = append(points, Point{Diagnosis: d})
		}
	}
	whole := &run{snapshot: x.s, options: &Options{}}
	add(lostEvents(whole, nil))
	add(nothingCarved(whole, nil))
	if x.grows = false; x.ended {
		add(x.leaked())
		sortPoints(points)
		return points
	}
	add(x.growing())
	add(x.nearlyFull())
	missing, found := x.missing()
	add(missing, found)
	if d, found := x.limitBites(); d.Knob.Limit != missing.Knob.Limit {
		add(d, found)
	}
	add(x.wasteful())
	add(x.fragmented())
	if d, found := x.ghostLeads(); found {
		points = append(points, Point{d, AboutGhost})
	}
	sortPoints(points)
	return points
}

// now is when a rule for a moment judges a run that goes on.
const now = "now"

// events are failures and mistakes, each a point.
func (x *moment) events() (points []Point) {
	for i := range x.s.PostMortems {
		p := &x.s.PostMortems[i]
		points = append(points, Point{Diagnosis{Severity: Problem, Title: failureTitle(p), Text: p.Verdict.String() + ", " +
			units.FormatLong(p.InUse) + " in use", Tag: p.Tag, Share: 2}, AboutFailure}) // before mistakes: it may end the program
	}
	for i := range x.s.Findings {
		f := &x.s.Findings[i]
		d := Diagnosis{Severity: Problem, Title: f.Kind.String(), Text: f.Sentence(units.FormatLong), Tag: f.Tag, Share: 1}
		if !f.Certain() {
			d.Severity, d.Title = Advice, d.Title+" (not certain)"
		}
		points = append(points, Point{Diagnosis: d})
	}
	if n := x.s.OtherFindings; n > 0 {
		points = append(points, Point{Diagnosis: Diagnosis{Severity: Problem, Title: "more mistakes", Text: fmt.Sprintf(
			"%s beyond the %d that are listed", units.Plural(n, "mistake", "mistakes"), len(x.s.Findings))}})
	}
	return points
}

// failureTitle says what failed.
func failureTitle(p *stats.PostMortem) string {
	if p.Verdict == stats.VerdictKilled {
		return fmt.Sprintf("SIGKILL ended process %d", p.PID)
	}
	text := p.Call
	if p.Kernel != "" {
		text += " of " + p.Kernel
	} else if !p.Command {
		text += " of " + units.FormatLong(p.Size)
	}
	if p.Tag != "" {
		text += " at " + p.Tag
	}
	return text + " failed (" + strconv.Itoa(int(p.Status)) + ")"
}

// leaked is what the program never released.
func (x *moment) leaked() (Diagnosis, bool) {
	var buffers, bytes uint64
	for i := range x.s.Processes {
		buffers += x.s.Processes[i].Totals.LiveBuffers
		bytes += x.s.Processes[i].Totals.InUse
	}
	var top *stats.Tag
	for i := range x.s.Tags {
		if t := &x.s.Tags[i]; t.Live > 0 && (top == nil || t.InUse > top.InUse) {
			top = t
		}
	}
	if buffers == 0 {
		return Diagnosis{}, false
	}
	d := Diagnosis{Severity: Problem, Title: units.Count(buffers, "buffer") + " never released", Text: units.FormatLong(bytes) + " in all", Share: 1}
	if top != nil {
		d.Tag = top.Name
		d.Text += fmt.Sprintf("; %s of it from %s", units.FormatLong(top.InUse), top.Name)
	}
	if x.s.HeldAtExit() {
		d.Severity, d.Title = Note, units.Count(buffers, "buffer")+" held when "+x.s.AbortedBy()+" ended the program"
	}
	if x.s.Lost > 0 {
		d.Severity, d.Title = Note, "perhaps "+d.Title
	}
	return d, true
}

func (x *moment) growing() (Diagnosis, bool) {
	g, found := grown(x.s)
	if x.grows = found; !found {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Problem, Title: "memory grows " + units.FormatLong(uint64(g.perSecond)) + "/s", Text: g.text(x.s), Tag: g.tag, Share: 1,
	}
	if x.s.Lost > 0 {
		d.Severity, d.Title = Note, "memory may grow"
	}
	return d, true
}

func (x *moment) nearlyFull() (Diagnosis, bool) {
	if x.s.Spill != nil {
		return thrashes(x.s.Spill, x.s.Time-min(x.s.Time, x.s.Started))
	}
	p := fullest(x.s, (*stats.Totals).Reserved)
	if p == nil || float64(p.Totals.Reserved()) < deviceShare*float64(p.DeviceMemory) {
		return Diagnosis{}, false
	}
	t, device := &p.Totals, p.DeviceMemory
	return Diagnosis{
		Severity: Advice, Title: "device memory is nearly full", Share: share(t.Reserved(), device), Text: fmt.Sprintf(
			"%s of %s are reserved, and %s in use", units.FormatLong(t.Reserved()), units.FormatLong(device), units.FormatLong(t.InUse)),
	}, true
}

// fragmented judges free memory, if it was too small of late. While a pool fills, some of it always is.
func (x *moment) fragmented() (Diagnosis, bool) {
	t := &x.s.Totals
	late := after(t.Hits, t.Misses, &t.MissReasons, x.all[0])
	d, found := fragmented(t.InUse, t.Reserved(), t.ExternalFragmentation(), x.s, now)
	return x.lasting(&x.pieces, d, found && late.reasons[wire.MissTooSmall] > 0 && (x.Still || x.since[0] > x.s.Started))
}

func (x *moment) wasteful() (Diagnosis, bool) {
	d, found := wasted(x.s, x.s.Totals.InUse, x.s.Totals.Requested, now)
	return x.lasting(&x.waste, d, found)
}

// lasting holds back what has not lasted yet.
func (x *moment) lasting(y *steady, d Diagnosis, found bool) (Diagnosis, bool) {
	if x.Still {
		return d, found
	}
	return y.judge(d, found, x.s.Time)
}

// missing finds the row that missed most of late, if its hit rate is low and the driver took time.
func (x *moment) missing() (Diagnosis, bool) {
	var worst *stats.Tag
	var most asked
	for i := range x.s.Tags {
		t := &x.s.Tags[i]
		if r := x.of(t); r.low() && r.misses > most.misses {
			worst, most = t, r
		}
	}
	length := relative(x.since[0], x.s.Time)
	spent := relative(x.driver[0], x.s.Totals.DriverNS)
	if worst == nil || float64(spent) < driverShare*float64(length) || x.s.Policy == "none" {
		return Diagnosis{}, false
	}
	if x.follows(&most) {
		return Diagnosis{}, false
	}
	reason := most.reason()
	knob := knobNow(reason, x.s)
	return Diagnosis{
		Severity: Advice, Title: worst.Name + " hits " + units.Percent(most.rate(), 1), Tag: worst.Name, Knob: knob,
		Text:  fmt.Sprintf("%s of late, mostly %s: %s", units.Plural(most.misses, "miss", "misses"), reason, knob.Why),
		Share: share(spent, length),
	}, true
}

// limitBites finds a limit that evicted what was needed soon after.
func (x *moment) limitBites() (Diagnosis, bool) {
	t := &x.s.Totals
	late := after(t.Hits, t.Misses, &t.MissReasons, x.all[0])
	for _, reason := range []wire.Miss{wire.MissLimit, wire.MissTagCap} {
		knob := knobNow(reason, x.s)
		if n := late.reasons[reason]; n >= requestsLeast && knob.Limit != "" {
			return Diagnosis{
				Severity: Advice, Title: knob.Limit + " bites", Knob: knob, Share: share(n, late.hits+late.misses),
				Text: fmt.Sprintf("of late %s for blocks that it had evicted", units.Plural(n, "miss", "misses")),
			}, true
		}
	}
	return Diagnosis{}, false
}

func (x *moment) ghostLeads() (Diagnosis, bool) {
	g := x.s.Ghosts
	if !g.Worth(x.run) {
		return Diagnosis{}, false
	}
	_, part, _ := g.Saving()
	return Diagnosis{
		Severity: Advice, Title: g.Leader().Name + " would do better", Share: part, Text: units.Percent(part, 1) +
			" less time in the driver, simulated beside the run",
	}, true
}

// knobNow returns the limit of the present policy that may help against a reason for misses, or why none does.
func knobNow(reason wire.Miss, s *stats.Snapshot) Knob {
	now := misses{}
	if l := limit(s, "max_waste_ratio"); l != nil {
		now.ratios = []float64{l.Value + 0.4}
	}
	for _, name := range []string{"max_per_tag", "max_per_bucket"} {
		if l := limit(s, name); l != nil && now.capMost == 0 {
			now.capMost = uint64(l.Value) // twice as many
		}
	}
	if l := limit(s, stats.MaxCachedBytes); l != nil {
		now.cachedMost = uint64(min(2*l.Value, 1<<62))
	}
	knob := now.knob(reason, s)
	if l := limit(s, knob.Limit); l != nil {
		value := knob.Value
		if bytes, ok := l.Number(value); ok && l.Kind == stats.LimitBytes {
			value = units.FormatLong(uint64(bytes))
		}
		knob.Why = knob.Limit + "=" + value + " may help"
	}
	return knob
}
