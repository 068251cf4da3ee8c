package pprof

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/common"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// moduleSpan is the number of addresses of each module in a profile; larger offsets are dropped. All modules have the same
// number, so that pprof recognises a module in two profiles that it compares.
const moduleSpan = 1 << 40

// book has the tables of a profile.
type book struct {
	profile   *profile.Profile
	functions map[functionKey]*profile.Function
	locations map[locationKey]*profile.Location
	mappings  map[mappingKey]*profile.Mapping
}

type functionKey struct{ name, file string }

type mappingKey struct{ path, build string }

type locationKey struct {
	functionKey
	mappingKey
	line   int
	offset uint64
}

func compareSampleKeys(a, b sampleKey) int {
	if a.slabs != b.slabs {
		return cmp.Or(cmp.Compare(a.process, b.process), map[bool]int{true: 1, false: -1}[a.slabs])
	}
	return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.tag, b.tag), cmp.Compare(a.device, b.device),
		cmp.Compare(a.bytes, b.bytes))
}

// makeProfile makes a profile of the samples.
func (c *collector) makeProfile() *profile.Profile {
	b := &book{
		profile:   &profile.Profile{DefaultSampleType: "inuse_space"},
		functions: map[functionKey]*profile.Function{}, locations: map[locationKey]*profile.Location{},
		mappings: map[mappingKey]*profile.Mapping{},
	}
	for _, t := range [...][2]string{
		allocObjects: {"alloc_objects", "count"}, allocSpace: {"alloc_space", "bytes"},
		inUseObjects: {"inuse_objects", "count"}, inUseSpace: {"inuse_space", "bytes"}, cachedSpace: {"cached_space", "bytes"},
	} {
		b.profile.SampleType = append(b.profile.SampleType, &profile.ValueType{Type: t[0], Unit: t[1]})
	}
	c.addComments(b.profile)
	label := c.labelsOfSamples()
	for _, key := range slices.SortedFunc(maps.Keys(c.samples), compareSampleKeys) {
		v := c.samples[key]
		sample := &profile.Sample{Value: v[:], Label: label(key), Location: c.locationsOf(b, key)}
		if key.bytes > 0 {
			sample.NumLabel = map[string][]int64{"bytes": {int64(min(key.bytes, 1<<62))}}
			sample.NumUnit = map[string][]string{"bytes": {"bytes"}}
		}
		b.profile.Sample = append(b.profile.Sample, sample)
	}
	return b.profile
}

// addComments adds the run and the moment as comments.
func (c *collector) addComments(p *profile.Profile) {
	h := &c.options.Header
	after := time.Duration(max(c.when, h.ClockNS) - h.ClockNS)
	p.DurationNanos = int64(max(c.heap.Now(), h.ClockNS) - h.ClockNS)
	if !h.Created.IsZero() {
		p.TimeNanos = h.Created.Add(after).UnixNano()
	}
	words := []string{units.Clean(h.Program)}
	for _, word := range h.Arguments {
		words = append(words, units.Clean(word))
	}
	p.Comments = []string{
		fmt.Sprintf("gpumemtop: in use and cached %s, %v after the start", c.options.At, after),
		"program: " + strings.Join(words, " "),
		"policy: " + units.Clean(h.Policy),
	}
}

// locationsOf returns the locations of a sample, innermost first.
func (c *collector) locationsOf(b *book, key sampleKey) []*profile.Location {
	if key.slabs {
		return []*profile.Location{b.locationOf(locationKey{functionKey: functionKey{name: callsite.Slabs}})}
	}
	p := c.names.Process(key.process)
	site := p.Site(key.tag)
	if len(site.Frames) == 0 {
		return []*profile.Location{b.locationOf(locationKey{functionKey: functionKey{name: site.Name}})}
	}
	stack := make([]*profile.Location, len(site.Frames))
	for i := range site.Frames {
		f := &site.Frames[i]
		stack[i] = b.locationOf(locationKey{
			functionKey{common.FrameName(f), f.File}, mappingKey{f.Module, p.BuildID(f.Module)}, f.Line, f.Offset,
		})
	}
	return stack
}

// locationOf returns the location of a frame. Functions have no system name: pprof would demangle it, and cut template
// arguments off names that are correct.
func (b *book) locationOf(key locationKey) *profile.Location {
	if l := b.locations[key]; l != nil {
		return l
	}
	f := b.functions[key.functionKey]
	if f == nil {
		f = &profile.Function{ID: uint64(len(b.profile.Function) + 1), Name: key.name, Filename: key.file}
		b.functions[key.functionKey] = f
		b.profile.Function = append(b.profile.Function, f)
	}
	l := &profile.Location{
		ID: uint64(len(b.profile.Location) + 1), Line: []profile.Line{{Function: f, Line: int64(key.line)}},
	}
	if key.path != "" {
		l.Mapping = b.mappingOf(key.mappingKey)
		if key.offset < moduleSpan {
			l.Address = l.Mapping.Start + key.offset
		}
	}
	b.locations[key] = l
	b.profile.Location = append(b.profile.Location, l)
	return l
}

// mappingOf returns a module. It claims to have functions, so that pprof does not look for names itself.
func (b *book) mappingOf(key mappingKey) *profile.Mapping {
	if m := b.mappings[key]; m != nil {
		return m
	}
	id := uint64(len(b.profile.Mapping) + 1)
	m := &profile.Mapping{
		ID: id, Start: id * moduleSpan, Limit: (id + 1) * moduleSpan, File: key.path, BuildID: key.build,
		HasFunctions: true, HasFilenames: true, HasLineNumbers: true,
	}
	b.mappings[key] = m
	b.profile.Mapping = append(b.profile.Mapping, m)
	return m
}

// labelsOfSamples returns the labels of samples. Processes, devices and hosts are labels only if there are several.
func (c *collector) labelsOfSamples() func(sampleKey) map[string][]string {
	processes := c.names.NamedProcesses()
	hosts := map[string]bool{}
	devices := false
	for _, p := range processes {
		hosts[c.options.Header.HostOf(p.Number)] = true
		devices = devices || len(p.Devices) > 1
	}
	return func(key sampleKey) map[string][]string {
		p := c.names.Process(key.process)
		labels := map[string][]string{"tag": {callsite.Slabs}}
		if !key.slabs {
			labels["tag"] = []string{p.Site(key.tag).Name}
		}
		if len(processes) > 1 {
			labels["process"] = []string{processLabel(p)}
		}
		if devices && key.device < len(p.Devices) && !key.slabs {
			labels["device"] = []string{p.Devices[key.device].Name}
		}
		if len(hosts) > 1 {
			labels["host"] = []string{units.Clean(c.options.Header.HostOf(key.process))}
		}
		return labels
	}
}

// processLabel is "program pid 4242": pprof does not find labels that are only a number.
func processLabel(p *callsite.ProcessNames) string {
	if p.Program == "" {
		return fmt.Sprintf("#%d", p.Number)
	}
	return fmt.Sprintf("%s pid %d", path.Base(p.Program), p.PID)
}
