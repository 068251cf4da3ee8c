package main

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// measureAttachIntakeRate shows how many sampled calls one core processes: it decodes, tracks, counts and records them, as
// gpumemtop does with what it reads from the ring.
func (b *bench) measureAttachIntakeRate() error {
	b.printRow("sampled", "calls/s", "records/s")
	for _, way := range []struct {
		name  string
		calls []wire.Sample
	}{
		{"create, release", []wire.Sample{newCreateSample(), newCallSample("clReleaseMemObject", 0, handle)}},
		{"argument, launch", []wire.Sample{newKernelArgSample(), newCallSample("clEnqueueNDRangeKernel", 0, 0x300, 0x400)}},
	} {
		taken, written, err := b.countSamplesPerSecond(way.calls)
		if err != nil {
			return err
		}
		b.printRow(way.name, formatIfCounted(taken), formatIfCounted(written))
	}
	return nil
}

const handle = 0x10000 // of a buffer

// newCallSample is a call as the eBPF program sends it.
func newCallSample(name string, result uint64, arguments ...uint64) (s wire.Sample) {
	number := slices.IndexFunc(calls.Functions, func(f calls.Function) bool { return f.Name == name })
	s.Function, s.Result = uint16(number), result
	s.Pid, s.Tid = 1, 1
	copy(s.Argument[:], arguments)
	return s
}

func newCreateSample() wire.Sample { return newCallSample("clCreateBuffer", handle, 0x200, 1, 4096) }

func newKernelArgSample() wire.Sample {
	s := newCallSample("clSetKernelArg", 0, 0x400, 0, 8)
	s.Copied[0] = 1
	s.Copies = make([]byte, wire.CallData)
	binary.LittleEndian.PutUint64(s.Copies, handle)
	return s
}

// untagged names no call sites.
type untagged struct{}

func (untagged) Tag(*wire.Sample, uint64) uint32 { return 0 }
func (untagged) SiteTag(*wire.Sample) uint32     { return 0 }
func (untagged) UnknownTag() uint32              { return 0 }

// countSamplesPerSecond processes the same calls again and again for a second, and returns how many calls it processed and how many
// records they made.
func (b *bench) countSamplesPerSecond(list []wire.Sample) (taken, written float64, err error) {
	w, err := recording.Create(filepath.Join(b.temp, "intake.gmt"), recording.Header{}, true)
	if err != nil {
		return 0, 0, err
	}
	m, records := stats.New(stats.Options{Program: "bench", Started: 1}), 0
	book := calls.NewTracker(untagged{}, func(r *wire.Record) {
		r.Process = 1
		records++
		m.Apply(r)
		if failed := w.Append(r); failed != nil {
			err = failed
		}
	})
	create := newCreateSample()
	book.HandleCall(&create)
	var raw [][]byte
	for i := range list {
		raw = append(raw, wire.AppendSample(nil, &list[i]))
	}
	n, now := 0, uint64(1000)
	var s wire.Sample
	start := time.Now()
	for time.Since(start) < time.Second {
		for range 1000 {
			for _, bytes := range raw {
				if failed := wire.DecodeSample(bytes, &s); failed != nil {
					return 0, 0, failed
				}
				now += 100
				s.Entered, s.Time = now-50, now
				book.HandleCall(&s)
				n++
			}
		}
	}
	seconds := time.Since(start).Seconds()
	if closed := w.Close(recording.Footer{}); err == nil {
		err = closed
	}
	return float64(n) / seconds, float64(records) / seconds, err
}

// measureAttachSetupTimes shows how long it takes to load the eBPF programs, to set probes in this machine's ICD loader, in all
// processes that map it, and to remove the probes.
func (b *bench) measureAttachSetupTimes() error {
	path := findLoader()
	if path == "" {
		return fmt.Errorf("no ICD loader is installed")
	}
	probes, shapes, err := openCLProbes(path)
	if err != nil {
		return err
	}
	b.printRow("functions", "load ms", "attach ms", "detach ms")
	for _, n := range []int{1, 10, len(probes)} {
		var load, attach, detach []float64
		for range b.runs {
			start := time.Now()
			k, err := kernel.LoadPrograms(kernel.Options{Shapes: shapes, Uses: true})
			if err != nil {
				return err
			}
			loaded := time.Now()
			link, err := k.Attach(path, 0, probes[:n])
			attached := time.Now()
			if err == nil {
				err = link.Close()
			}
			detached := time.Now()
			_ = k.Close() // nothing is attached now
			if err != nil {
				return err
			}
			load = append(load, milliseconds(loaded.Sub(start)))
			attach, detach = append(attach, milliseconds(attached.Sub(loaded))), append(detach, milliseconds(detached.Sub(attached)))
		}
		b.printRow(n, formatFixed(medianOf(load), 1), formatFixed(medianOf(attach), 1), formatFixed(medianOf(detach), 1))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// findLoader returns the ICD loader of this machine, "" when there is none.
func findLoader() string {
	for _, path := range target.KnownLoaders() {
		if strings.Contains(path, "64") {
			return path
		}
	}
	return ""
}

func openCLProbes(path string) (probes []kernel.Probe, shapes []wire.Shape, err error) {
	var names []string
	for i := range calls.Functions {
		names, shapes = append(names, calls.Functions[i].Name), append(shapes, calls.Functions[i].Shape)
	}
	library, err := target.NewCatalog(names, nil).LibraryAt(path)
	if err != nil {
		return nil, nil, err
	}
	for i, name := range names {
		if offset, ok := library.Functions[name]; ok {
			probes = append(probes, kernel.Probe{Function: uint16(i), Offset: target.ProbePlaces(path, []uint64{offset})[0]})
		}
	}
	return probes, shapes, nil
}
