package lake

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// samplesMax bounds the samples of a process.
const samplesMax = 100

// CollectRows makes the rows of a recording's processes, by their numbers. Memory grows with live objects and call sites.
func CollectRows(src recording.Source, header recording.Header) ([]*Rows, error) {
	run, err := tables.SurveySource(src, tables.Options{Header: header, Samples: samplesMax})
	if err != nil {
		return nil, err
	}
	c := &collector{
		header: header, events: map[string]uint64{}, facts: map[uint32]*tables.Facts{}, rows: map[uint32]*process{},
		model: stats.New(stats.Options{Started: header.ClockNS, NoTrends: true}),
	}
	for _, f := range run.Processes() {
		c.facts[f.Number] = f
		c.events[f.Recording] += f.Records
	}
	err = run.MakeRows(&watched{src, c.model}, nil, tables.Sink{
		Buffer: c.addBuffer, Sample: c.addSample, Transfer: c.addTransfer, Process: c.addProcess,
	})
	if err != nil {
		return nil, err
	}
	return c.finishRows(run.Names()), nil
}

// watched is a source that passes each record to a model, too.
type watched struct {
	recording.Source
	model *stats.Model
}

// Next implements recording.Source.
func (w *watched) Next(r *wire.Record) error {
	err := w.Source.Next(r)
	if err == nil {
		w.model.Apply(r)
	}
	return err
}

// IsCut reports whether the run goes on after the source's end.
func (w *watched) IsCut() bool { return recording.RunGoesOn(w.Source) }

type collector struct {
	header recording.Header
	events map[string]uint64 // by recording
	facts  map[uint32]*tables.Facts
	rows   map[uint32]*process
	model  *stats.Model
}

// process is a process whose rows are being made.
type process struct {
	Rows
	sites     map[string]*Site
	misses    map[[2]string]*Miss // by call site and reason
	transfers map[[2]string]*Transfer
	leaked    uint64 // bytes
}

func (c *collector) processOf(number uint32) *process {
	p := c.rows[number]
	if p == nil {
		p = &process{sites: map[string]*Site{}, misses: map[[2]string]*Miss{}, transfers: map[[2]string]*Transfer{}}
		p.Run.Run = fmt.Sprintf("%s-%d", c.facts[number].Recording, c.facts[number].Original)
		c.rows[number] = p
	}
	return p
}

func (c *collector) addBuffer(number uint32, b *tables.Buffer) error {
	if !b.Owns {
		return nil
	}
	p := c.processOf(number)
	s := p.siteOf(b.Site)
	if len(s.Stack) == 0 {
		s.Stack = b.Stack
	}
	if b.Leaked {
		s.Leaks++
		s.Leaked += b.Granted
		p.leaked += uint64(b.Granted)
	}
	p.addHeldTime(s, b)
	if b.Carried {
		return nil
	}
	s.Creates++
	s.Requested += b.Size
	s.Granted += b.Granted
	s.DriverNS += b.Cost + b.ReleaseCost
	switch b.Outcome {
	case wire.OutcomeHit.String():
		s.Hits++
	case wire.OutcomeMiss.String():
		s.Misses++
		key := [2]string{b.Site, b.Reason}
		m := p.misses[key]
		if m == nil {
			m = &Miss{Run: p.Run.Run, Site: b.Site, Reason: b.Reason}
			p.misses[key] = m
		}
		m.Count++
		m.Bytes += b.Size
		m.DriverNS += b.Cost
	default: // not eligible
	}
	return nil
}

func (p *process) siteOf(name string) *Site {
	s := p.sites[name]
	if s == nil {
		s = &Site{Run: p.Run.Run, Site: name}
		p.sites[name] = s
	}
	return s
}

// addHeldTime adds how long a buffer was held: without a known end, until its process ended.
func (p *process) addHeldTime(s *Site, b *tables.Buffer) {
	end := max(b.CreatedNS, b.EndedNS)
	s.Held += float64(b.Granted) * float64(end-b.CreatedNS) / 1e9
	if b.IdleSince == nil {
		return
	}
	idle := max(0, end-*b.IdleSince)
	if b.FirstUse != nil {
		idle += *b.FirstUse - b.CreatedNS
	}
	s.Idle += float64(b.Granted) * float64(idle) / 1e9
}

func (c *collector) addSample(number uint32, s *tables.Sample) error {
	p := c.processOf(number)
	p.Samples = append(p.Samples, Sample{
		Run: p.Run.Run, TimeNS: s.TimeNS, StepNS: s.Step, InUse: s.InUse, PeakInUse: s.PeakInUse, Cached: s.Cached, Cooling: s.Cooling,
	})
	return nil
}

func (c *collector) addTransfer(number uint32, r *tables.Transfer) error {
	p, key := c.processOf(number), [2]string{cmp.Or(r.Site, r.MemorySite), r.Direction}
	t := p.transfers[key]
	if t == nil {
		t = &Transfer{Run: p.Run.Run, Site: key[0], Direction: key[1]}
		p.transfers[key] = t
	}
	if r.Profiled != nil { // an earlier row has its bytes already
		t.ProfiledNS += *r.Profiled
		return nil
	}
	t.Count++
	t.Bytes += r.Bytes
	if r.Duration != nil {
		t.BlockedNS += *r.Duration
	}
	if r.Host == "pageable" {
		t.Pageable += r.Bytes
	}
	return nil
}

func (c *collector) addProcess(number uint32, r *tables.Process) error {
	p, id := c.processOf(number), &r.Identity
	begun := time.Unix(0, r.Started).UTC()
	p.Run = Run{
		Run: p.Run.Run, Schema: Schema, Recording: r.Recording, Number: r.Number, Host: r.Hostname, PID: r.PID,
		User: units.Clean(id.User), Step: units.Clean(id.Step), Rank: units.Clean(id.Rank), Revision: units.Clean(id.Revision),
		Program: r.Program, Arguments: r.Arguments, Policy: r.Policy, Limits: r.Limits, Labels: id.Labels,
		Device: r.Device, Driver: r.Driver, DeviceBytes: r.DeviceBytes, Started: begun.UnixMicro(), Seconds: float64(r.LastNS-r.StartedNS) / 1e9,
		Status: r.Status, App: r.App, Job: cmp.Or(units.Clean(id.Job), "none"), Date: begun.Format(time.DateOnly), Events: int64(c.events[r.Recording]),
		Size: units.Clean(id.Size), Boot: units.Clean(id.Boot), Born: units.Clean(id.Born), Pod: units.Clean(id.Pod), Container: units.Clean(id.Container),
		Build: units.Clean(id.Build), DeviceID: r.DeviceID, NearPeak: r.NearPeak,
	}
	// The model's figures replace these, unless it has folded the process into others.
	p.setRunFigures(&figures.Subject{
		Totals: &stats.Totals{Hits: uint64(r.Hits), Misses: uint64(r.Misses), PeakInUse: uint64(r.PeakInUse), InUse: uint64(r.InUse)},
	}, &stats.Snapshot{Lost: uint64(r.LostEvents)})
	return nil
}

// finishRows adds the model's figures and findings, and orders the rows.
func (c *collector) finishRows(names *callsite.Names) []*Rows {
	s := c.model.PublishSnapshot()
	for i := range s.Processes {
		m := &s.Processes[i]
		p := c.rows[m.Number]
		if p == nil {
			continue
		}
		p.setRunFigures(figures.SubjectOfProcess(m, s.Time), s)
		p.Run.Build = cmp.Or(p.Run.Build, names.Process(m.Number).BuildIDOfBase(path.Base(p.Run.Program)))
		tags := m.Tags
		if len(s.Processes) == 1 {
			tags = s.Tags
		}
		for j := range tags {
			if site := p.sites[tags[j].Name]; site != nil {
				site.PeakInUse = int64(tags[j].PeakInUse)
			}
		}
	}
	for i := range s.Findings {
		f := &s.Findings[i]
		if p := c.rows[f.Process]; p != nil {
			p.Findings = append(p.Findings, Finding{
				Run: p.Run.Run, Kind: f.Kind.JSONKey(), Function: f.Function, Site: f.Tag, Kernel: f.Kernel, Count: int64(f.Count), Bytes: int64(f.Size),
			})
		}
	}
	var list []*Rows
	for _, number := range slices.Sorted(maps.Keys(c.rows)) {
		if p := c.rows[number]; p.Run.Date != "" { // otherwise it has no PROCESS record
			p.Sites, p.Misses, p.Transfers = sortedRows(p.sites), sortedRows(p.misses), sortedRows(p.transfers)
			list = append(list, &p.Rows)
		}
	}
	return list
}

// setRunFigures sets the values of RunFigures.
func (p *process) setRunFigures(of *figures.Subject, run *stats.Snapshot) {
	of.Evidence = &analysis.Evidence{Run: run, State: analysis.Over, Leaks: []analysis.Leak{{Bytes: p.leaked}}}
	p.Run.Figures = make([]int64, len(RunFigures))
	for i, f := range RunFigures {
		p.Run.Figures[i] = int64(f.ValueOf(of).Exact)
	}
}

// sortedRows returns rows in a fixed order, so that a recording always gives the same tables.
func sortedRows[K comparable, T any](rows map[K]*T) []T {
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b K) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	list := make([]T, len(keys))
	for i, key := range keys {
		list[i] = *rows[key]
	}
	return list
}
