// Package flight reduces the flight logs of many processes to figures by call site, and finds the processes that differ.
package flight

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Process is the part of a record that is kept. Sizes are bytes, times ns.
type Process struct {
	Host     string
	PID      uint32
	UID      uint32
	Program  string
	Path     string // of the program
	Device   string
	Driver   string
	Job      string
	Step     string
	Rank     string
	Labels   string
	Started  uint64 // since 1970
	Seconds  float64
	Status   int32  // -1: unknown, or ended by a signal
	Signal   uint32 // 0: none
	Counts   wire.FlightCounts
	Failures map[string]uint64 // creates by status
	Findings map[string]uint64 // by kind
}

// Bad is a file that is no record, with the reason.
type Bad struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// Log is the content of folders of flight logs.
type Log struct {
	Processes []Process
	Sites     []Site // by the largest peak
	Bad       []Bad
	Unnamed   int // call sites whose names were left out for lack of room
}

// Site is a call site of a program, with each process's counts of it.
type Site struct {
	Program, Job, Name string
	Stack              []string
	All                bool // not a call site: the whole process
	Ranks              []Rank
}

// Rank is one process at a call site.
type Rank struct {
	Process int // index in Log.Processes
	Counts  wire.FlightCounts
}

// record is one file, read.
type record struct {
	process Process
	sites   []recordSite
	bad     Bad
}

type recordSite struct {
	key    siteKey
	counts wire.FlightCounts
}

// siteKey is a hash that a call site has in every process.
type siteKey [2]uint64

// Memory taken by what is kept, in bytes.
const (
	processBytes = 2 << 10
	rankBytes    = 256 // a call site of a process
	siteBytes    = 512
	frameBytes   = 64
)

// known has the call sites of all processes, and the texts that they share.
type known struct {
	keep  *budget.Budget // processes
	names *budget.Budget // call sites and their names
	seeds [2]maphash.Seed

	mu     sync.Mutex
	frames map[siteKey][]wire.FlightFrame // nil: there is no room
	texts  map[string]string
}

// keepSiteFrames keeps the frames of a call site, unless they are known or there is no room.
func (k *known) keepSiteFrames(key siteKey, f *wire.Flight, s *wire.FlightSite) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.frames[key]; known || !k.names.Charge(siteBytes+frameBytes*int64(s.Depth)) {
		return
	}
	frames := f.SiteFrames(s)
	for i := range frames {
		frames[i].Module, frames[i].Function, frames[i].Build = k.internText(frames[i].Module), k.internText(frames[i].Function), k.internText(frames[i].Build)
	}
	k.frames[key] = frames
}

// internText returns the one copy of a text, empty if there is no room.
func (k *known) internText(text string) string {
	one, known := k.texts[text]
	if !known && k.names.Charge(siteBytes+int64(len(text))) {
		k.texts[text] = text
		return text
	}
	return one
}

// ReadFolders reads all records in folders. It skips a file that is no record and names it in Bad. A process takes some KiB of
// memory. All together take at most what a session may take: further records are in Bad, too.
func ReadFolders(dirs ...string) (*Log, error) { return readFoldersWithin(budget.Session/2, dirs...) }

func readFoldersWithin(most int64, dirs ...string) (*Log, error) {
	var paths []string
	seen := map[string]bool{} // by name: a copy is the same record
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("read the flight log: %w", err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), wire.FlightSuffix) && !seen[e.Name()] {
				seen[e.Name()] = true
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	keep := budget.New(most)
	k := &known{
		keep: keep, names: keep.NewPart(most / 4), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		frames: map[siteKey][]wire.FlightFrame{}, texts: map[string]string{},
	}
	records := make([]record, len(paths))
	var readers sync.WaitGroup
	workers := min(2*runtime.GOMAXPROCS(0), len(paths)) // some wait for the disk
	for w := range workers {
		readers.Go(func() {
			buffer := buffers{known: k}
			for i := w; i < len(paths); i += workers {
				records[i] = buffer.readRecord(paths[i])
			}
		})
	}
	readers.Wait()
	return collectSites(records, k), nil
}

// ReadProcess reads the record in a file. The error says what is wrong with it.
func ReadProcess(path string) (p Process, err error) {
	b := new(buffers)
	if err = b.parseRecordFile(path); err == nil {
		p = newProcess(&b.flight)
	}
	return p, err
}

type buffers struct {
	file   [wire.SizeofFlight + 1]byte
	flight wire.Flight
	key    []byte
	known  *known
}

func (b *buffers) readRecord(path string) record {
	err := b.parseRecordFile(path)
	sites := 0
	for sites < len(b.flight.Sites) && b.flight.Sites[sites].Counts.Creates+b.flight.Sites[sites].Counts.Failed > 0 {
		sites++
	}
	if err == nil && !b.known.keep.Charge(int64(processBytes+rankBytes*sites)) {
		err = errors.New("left out: there is no room for more records")
	}
	if err != nil {
		return record{bad: Bad{filepath.Base(path), err.Error()}}
	}
	r := record{process: newProcess(&b.flight), sites: make([]recordSite, sites)}
	for i := range r.sites {
		s := &b.flight.Sites[i]
		b.key = b.flight.AppendKeyOfSite(b.key[:0], s)
		key := siteKey{maphash.Bytes(b.known.seeds[0], b.key), maphash.Bytes(b.known.seeds[1], b.key)}
		b.known.keepSiteFrames(key, &b.flight, s)
		r.sites[i] = recordSite{key, s.Counts}
	}
	return r
}

func (b *buffers) parseRecordFile(path string) error {
	n, err := b.loadRecordFile(path)
	if err == nil {
		err = wire.ParseFlight(b.file[:n], &b.flight)
	}
	return err
}

// loadRecordFile reads a regular file, or enough of it to show that it is too large.
func (b *buffers) loadRecordFile(path string) (int, error) {
	file, err := untrusted.OpenRegular(path, unix.O_NOFOLLOW)
	if errors.Is(err, untrusted.ErrNotRegular) {
		return 0, errors.New("no regular file")
	}
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(file, b.file[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, errors.Join(err, file.Close())
}

func cleanField(field []byte) string { return callsite.CleanText(wire.FlightFieldText(field)) }

// programNameOf returns the name of the program, as recordings have it.
func programNameOf(f *wire.Flight) string {
	words := strings.Split(string(bytes.TrimRight(f.Arguments[:], "\x00")), "\x00")
	return units.ProgramName(callsite.CleanText([]byte(wire.ProgramNameOf(cleanField(f.Program[:]), words[1:]))))
}

func newProcess(f *wire.Flight) Process {
	p := Process{
		Host: cleanField(f.Host[:]), PID: f.Pid, UID: f.Uid, Program: programNameOf(f), Path: cleanField(f.Program[:]),
		Device: cleanField(f.Device[:]), Driver: cleanField(f.Driver[:]), Job: cleanField(f.Job[:]), Step: cleanField(f.Step[:]),
		Rank:   cleanField(f.Rank[:]),
		Labels: cleanField(f.Labels[:]), Started: f.Started, Seconds: units.SecondsBetween(f.Started, f.Ended),
		Status: f.Status, Signal: f.Signal, Counts: f.Total,
		Failures: map[string]uint64{}, Findings: map[string]uint64{},
	}
	for _, failure := range f.Failures {
		if failure.Count > 0 {
			p.Failures[strconv.Itoa(int(failure.Status))] += failure.Count
		}
	}
	for i, n := range f.Findings {
		if n > 0 {
			p.Findings[wire.Diag(i).String()] = n
		}
	}
	return p
}

// collectSites collects the call sites of all processes.
func collectSites(records []record, k *known) *Log {
	log := &Log{}
	type place struct {
		program, job string
		key          siteKey
		all          bool
	}
	sites := map[place]*Site{}
	at := func(p place) *Site {
		s := sites[p]
		if s == nil {
			s = &Site{Program: p.program, Job: p.job, Name: "(process)", All: p.all}
			sites[p] = s
		}
		return s
	}
	for i := range records {
		r := &records[i]
		if r.bad.File != "" {
			log.Bad = append(log.Bad, r.bad)
			continue
		}
		number := len(log.Processes)
		log.Processes = append(log.Processes, r.process)
		whole := at(place{r.process.Program, r.process.Job, siteKey{}, true})
		whole.Ranks = append(whole.Ranks, Rank{number, r.process.Counts})
		for _, s := range r.sites {
			site := at(place{r.process.Program, r.process.Job, s.key, false})
			site.Ranks = append(site.Ranks, Rank{number, s.counts})
		}
	}
	names := newSiteNamer(k)
	for p, s := range sites {
		if !p.all {
			name := names.nameOfSite(p.key)
			if s.Name, s.Stack = name.name, name.stack; name.leftOut {
				log.Unnamed++
			}
		}
		log.Sites = append(log.Sites, *s)
	}
	slices.SortFunc(log.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Job, b.Job), -cmp.Compare(oneIfTrue(a.All), oneIfTrue(b.All)),
			-cmp.Compare(a.SpreadOfFigure(Peak).Max, b.SpreadOfFigure(Peak).Max), cmp.Compare(a.Name, b.Name))
	})
	return log
}

func oneIfTrue(all bool) int {
	if all {
		return 1
	}
	return 0
}

// namer names call sites with the modules on this machine.
type namer struct {
	*known
	resolver *symbol.Resolver
	named    map[siteKey]named
	builds   map[string]string // present build ids of files, by path
}

type named struct {
	name    string
	stack   []string
	leftOut bool
}

func newSiteNamer(k *known) *namer {
	return &namer{k, symbol.NewResolver(symbol.Options{Budget: k.keep, Still: true}), map[siteKey]named{}, map[string]string{}}
}

func (n *namer) nameOfSite(key siteKey) named {
	made, known := n.named[key]
	if !known {
		made = n.computeSiteName(key)
		n.named[key] = made
	}
	return made
}

func (n *namer) computeSiteName(key siteKey) named {
	frames, room := n.frames[key]
	if !room {
		return named{name: callsite.Untagged, leftOut: true}
	}
	n.names.Release(frameBytes * int64(len(frames))) // the name replaces them
	delete(n.frames, key)
	var payload []byte
	for _, f := range frames {
		if len(payload) > 0 && isCLibrary(f.Module) {
			break // it called main, or started the thread
		}
		for _, line := range n.linesOfFrame(f) {
			if next := wire.AppendSiteFrame(nil, line); len(payload)+len(next) <= wire.PayloadMax {
				payload = append(payload, next...)
			}
		}
	}
	r := wire.SiteFields{}.Record(payload)
	made := named{name: cmp.Or(callsite.TagNameOf(&r), callsite.Untagged)}
	if !n.names.Charge(int64(len(made.name))) {
		return named{name: callsite.Untagged, leftOut: true}
	}
	for _, f := range callsite.FramesAfterWrappers(payload) {
		stack := f.ShortText()
		if !n.names.Charge(int64(len(stack)) + frameBytes) {
			made.leftOut = true
			break
		}
		made.stack = append(made.stack, stack)
	}
	return made
}

func (n *namer) linesOfFrame(f wire.FlightFrame) (frameLines []wire.SiteFrame) {
	if f.Function != "" {
		return []wire.SiteFrame{{Function: f.Function, File: f.Module, Line: f.Offset, Module: f.Module}}
	}
	if f.Build != "" && !strings.HasPrefix(n.presentBuildID(f.Module), f.Build) { // the path has another build now
		return []wire.SiteFrame{{Module: f.Module, Offset: f.Offset, HasOffset: true}}
	}
	for _, r := range n.resolver.FramesAt(f.Module, f.Offset) {
		frameLines = append(frameLines, wire.SiteFrame{
			Function: r.Function, File: r.File, Line: uint64(max(0, r.Line)), Module: f.Module, Offset: f.Offset, HasOffset: true,
		})
	}
	return frameLines
}

// presentBuildID returns the present build id of a file.
func (n *namer) presentBuildID(path string) string {
	id, known := n.builds[path]
	if !known {
		id = symbol.BuildID(path)
		n.builds[path] = id
	}
	return id
}

func isCLibrary(module string) bool { return strings.HasPrefix(filepath.Base(module), "libc.so") }
