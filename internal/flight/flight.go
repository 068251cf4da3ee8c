// Package flight reduces the flight logs of many processes to what their call sites have in common, and who differs.
package flight

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Process is what is kept of a record. Sizes are bytes, times ns.
type Process struct {
	Host     string
	PID      uint32
	UID      uint32
	Program  string
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

// Bad is a file that is no record, and why.
type Bad struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// Log is what a folder holds.
type Log struct {
	Processes []Process
	Sites     []Site // by the largest peak
	Bad       []Bad
}

// Site is a call site of a program, with what each process has of it.
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
	key    string
	frames []wire.FlightFrame
	counts wire.FlightCounts
}

// Read reads all records in a folder. A file that is not one is skipped and named in Bad. Memory is bounded by what is kept of
// each process: some KiB.
func Read(dir string) (*Log, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the flight log: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !strings.HasSuffix(e.Name(), wire.FlightSuffix) })
	records := make([]record, len(entries))
	var readers sync.WaitGroup
	workers := min(2*runtime.GOMAXPROCS(0), len(entries)) // some wait for the disk
	for w := range workers {
		readers.Go(func() {
			buffer := buffers{known: map[string]string{}}
			for i := w; i < len(entries); i += workers {
				records[i] = buffer.read(filepath.Join(dir, entries[i].Name()))
			}
		})
	}
	readers.Wait()
	return gather(records), nil
}

// buffers are those of a worker.
type buffers struct {
	file   [wire.SizeofFlight + 1]byte
	flight wire.Flight
	key    []byte
	known  map[string]string // keys of call sites, which are the same in many processes
}

func (b *buffers) read(path string) record {
	n, err := b.load(path)
	if err == nil {
		err = wire.ParseFlight(b.file[:n], &b.flight)
	}
	if err != nil {
		return record{bad: Bad{filepath.Base(path), err.Error()}}
	}
	r := record{process: newProcess(&b.flight)}
	for i := range b.flight.Sites {
		s := &b.flight.Sites[i]
		if s.Counts.Creates == 0 && s.Counts.Failed == 0 {
			break
		}
		b.key = b.flight.AppendSiteKey(b.key[:0], s)
		key, known := b.known[string(b.key)]
		var frames []wire.FlightFrame
		if !known {
			key, frames = string(b.key), b.flight.SiteFrames(s)
			b.known[key] = key
		}
		r.sites = append(r.sites, recordSite{key, frames, s.Counts})
	}
	return r
}

// load reads a regular file, or as much of it as shows that it is too large.
func (b *buffers) load(path string) (int, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("no regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(file, b.file[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, errors.Join(err, file.Close())
}

func text(field []byte) string { return callsite.Clean(wire.FlightText(field)) }

func newProcess(f *wire.Flight) Process {
	p := Process{
		Host: text(f.Host[:]), PID: f.Pid, UID: f.Uid, Program: units.ProgramName(text(f.Program[:])),
		Device: text(f.Device[:]), Driver: text(f.Driver[:]), Job: text(f.Job[:]), Step: text(f.Step[:]), Rank: text(f.Rank[:]),
		Labels: text(f.Labels[:]), Started: f.Started, Seconds: units.Seconds(f.Started, f.Ended),
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

// gather puts the call sites of all processes together.
func gather(records []record) *Log {
	log := &Log{}
	type place struct {
		program, job, key string
		all               bool
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
	frames := map[string][]wire.FlightFrame{}
	for i := range records {
		r := &records[i]
		if r.bad.File != "" {
			log.Bad = append(log.Bad, r.bad)
			continue
		}
		number := len(log.Processes)
		log.Processes = append(log.Processes, r.process)
		whole := at(place{r.process.Program, r.process.Job, "", true})
		whole.Ranks = append(whole.Ranks, Rank{number, r.process.Counts})
		for _, s := range r.sites {
			if s.frames != nil {
				frames[s.key] = s.frames
			}
			site := at(place{r.process.Program, r.process.Job, s.key, false})
			site.Ranks = append(site.Ranks, Rank{number, s.counts})
		}
	}
	names := newNamer()
	for p, s := range sites {
		if !p.all {
			s.Name, s.Stack = names.name(p.key, frames[p.key])
		}
		log.Sites = append(log.Sites, *s)
	}
	slices.SortFunc(log.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Job, b.Job), -cmp.Compare(weight(a.All), weight(b.All)),
			-cmp.Compare(a.Of(Peak).Max, b.Of(Peak).Max), cmp.Compare(a.Name, b.Name))
	})
	return log
}

func weight(all bool) int {
	if all {
		return 1
	}
	return 0
}

// namer names call sites by the modules that are on this machine.
type namer struct {
	resolver *symbol.Resolver
	named    map[string]named
}

type named struct {
	name  string
	stack []string
}

func newNamer() *namer { return &namer{symbol.New(symbol.Options{}), map[string]named{}} }

func (n *namer) name(key string, frames []wire.FlightFrame) (string, []string) {
	if known, ok := n.named[key]; ok {
		return known.name, known.stack
	}
	var payload []byte
	for _, f := range frames {
		if len(payload) > 0 && isCLibrary(f.Module) {
			break // it called main, or started the thread
		}
		for _, line := range n.lines(f) {
			if next := wire.AppendSiteFrame(nil, line); len(payload)+len(next) <= wire.PayloadMax {
				payload = append(payload, next...)
			}
		}
	}
	r := wire.SiteFields{}.Record(payload)
	made := named{name: cmp.Or(callsite.TagName(&r), callsite.Untagged)}
	for _, f := range callsite.Frames(payload) {
		made.stack = append(made.stack, f.Name())
	}
	n.named[key] = made
	return made.name, made.stack
}

func (n *namer) lines(f wire.FlightFrame) (lines []wire.SiteFrame) {
	if f.Function != "" {
		return []wire.SiteFrame{{Function: f.Function, File: f.Module, Line: f.Offset, Module: f.Module}}
	}
	for _, r := range n.resolver.Frames(f.Module, f.Offset) {
		lines = append(lines, wire.SiteFrame{
			Function: r.Function, File: r.File, Line: uint64(max(0, r.Line)), Module: f.Module, Offset: f.Offset, HasOffset: true,
		})
	}
	return lines
}

func isCLibrary(module string) bool { return strings.HasPrefix(filepath.Base(module), "libc.so") }
