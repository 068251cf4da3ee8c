package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// viewSize is the size of the recording that view opens, if the disk has room for it.
const viewSize = 1 << 30

// measureViewOpening compares how soon a long recording can be looked at with how long it takes to read.
func (b *bench) measureViewOpening() error {
	path := filepath.Join(b.temp, "long.gmt")
	defer os.Remove(path)
	size, err := b.largestAffordableFile(viewSize)
	if err != nil {
		return err
	}
	events, err := writeLongRecording(path, size)
	if err != nil {
		return err
	}
	var first []float64
	for range b.runs {
		v, err := b.timeOpeningView(path, false)
		if err != nil {
			return err
		}
		first = append(first, v.first.Seconds())
	}
	all, err := b.timeOpeningView(path, true)
	if err != nil {
		return err
	}
	var r result
	if err := r.runAndMeasure(exec.Command(b.gpumemtopPath(), "report", path)); err != nil {
		return err
	}
	b.printRow("MiB on disk", "events", "bytes/event", "view: first frame s", "all read s", "peak MiB", "report s", "peak MiB")
	b.printRow(size/mib, events, formatFixed(float64(size)/float64(events), 1), formatFixed(medianOf(first), 3), formatFixed(all.read.Seconds(), 1), formatFixed(float64(all.peak)/1024, 0),
		formatFixed(r.wall.Seconds(), 1), formatFixed(float64(r.peak)/1024, 0))
	b.flushTable()
	fmt.Println("\nReading it all, and the report, are one run each.")
	if size < viewSize {
		fmt.Printf("\nThere is no room for %d MiB in %s: the recording is smaller.\n", viewSize/mib, b.temp)
	}
	return nil
}

// largestAffordableFile returns how large a file may be, at most wanted: a fourth of what is free.
func (b *bench) largestAffordableFile(wanted int64) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(b.temp, &disk); err != nil {
		return 0, fmt.Errorf("look for room: %w", err)
	}
	return min(wanted, int64(disk.Bavail)*disk.Bsize/4), nil
}

// writeLongRecording writes a recording of a size: buffers from 200 call sites that come, are used and go, 50 µs apart, as frames
// of a quarter of a second, so that the index is as long as one gets. Its numbers are random where they can be: events
// take more room than those of programs, and the size is reached with fewer of them.
func writeLongRecording(path string, size int64) (events uint64, err error) {
	const start, step, frame, live = uint64(1e12), uint64(50_000), uint64(250_000_000), 4096
	w, err := recording.Create(path, recording.Header{Program: "long", Policy: "none", ClockNS: start, Created: time.Now()}, true)
	if err != nil {
		return 0, err
	}
	var sum recording.Summary
	var held [live]wire.CreateFields
	var inUse uint64
	w.SetSummarizer(func() recording.Summary {
		s := sum
		sum = recording.Summary{InUse: inUse}
		return s
	})
	random := rand.New(rand.NewPCG(1, 2))
	now, flushed := start, start
	put := func(e wire.Event) {
		now += step
		e.Time = now
		err = errors.Join(err, w.Append(&wire.Record{Process: 1, Event: e}))
		events++
	}
	for n := uint64(1); int64(w.Bytes()) < size && err == nil; n++ {
		slot := &held[random.IntN(live)]
		if slot.Object != 0 {
			put(wire.ReleaseFields{
				Duration: random.Uint32(), Cost: random.Uint32(), Outcome: wire.OutcomeDriver, Scope: uint16(random.Uint32()),
				Tag: slot.Tag, Object: slot.Object, Requested: random.Uint64(), Block: random.Uint64(),
			}.Event())
			inUse -= slot.Granted
			sum.Releases++
		}
		bytes := random.Uint64N(1 << 20)
		*slot = wire.CreateFields{
			Duration: random.Uint32(), Cost: random.Uint32(), Outcome: wire.OutcomeMiss, Scope: uint16(random.Uint32()),
			Tag: uint32(1 + random.IntN(200)), Object: n, Requested: bytes, Granted: bytes, Block: n,
		}
		put(slot.Event())
		inUse += bytes
		sum.Creates, sum.Misses, sum.InUse = sum.Creates+1, sum.Misses+1, max(sum.InUse, inUse)
		put(wire.UseFields{
			ArgumentNumber: random.Uint32(), Scope: uint16(random.Uint32()), Object: n, Bytes: random.Uint64(), Queue: random.Uint64(),
		}.Event())
		if now-flushed >= frame {
			err, flushed = errors.Join(err, w.Flush()), now
		}
	}
	return events, errors.Join(err, w.Close(recording.Footer{EndedNS: now}))
}

// opened has the times and the peak of one view.
type opened struct {
	first, read time.Duration // since the start: the first frame, and the first after everything was read
	peak        int64         // KiB
}

// timeOpeningView opens a recording in a terminal and leaves it at the first frame, or when all was read.
func (b *bench) timeOpeningView(path string, all bool) (opened, error) {
	var o opened
	cmd := exec.Command(b.gpumemtopPath(), "view", path)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "CI=")
	start := time.Now()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 120, Rows: 36})
	if err != nil {
		return o, fmt.Errorf("start view: %w", err)
	}
	defer terminal.Close() //nolint:errcheck // the other side of a pty
	var written bytes.Buffer
	buffer := make([]byte, 64<<10)
	for o.first == 0 || all && o.read == 0 {
		n, err := terminal.Read(buffer)
		if err != nil {
			return o, errors.Join(fmt.Errorf("view ended: %w", err), cmd.Wait())
		}
		written.Write(buffer[:n])
		o.readHeaderLines(&written, time.Since(start))
	}
	o.peak = peakResidentKiB(cmd.Process.Pid)
	if _, err := io.WriteString(terminal, "q"); err != nil {
		return o, fmt.Errorf("leave view: %w", err)
	}
	_, _ = io.Copy(io.Discard, terminal) // until it is closed at the other side
	return o, cmd.Wait()
}

// readHeaderLines reads the complete header lines in the output: they show the time of the snapshot on the screen.
func (o *opened) readHeaderLines(written *bytes.Buffer, since time.Duration) {
	for {
		line, rest, whole := bytes.Cut(written.Bytes(), []byte("\n"))
		if !whole {
			return
		}
		if bytes.Contains(line, []byte(" AT ")) {
			if o.first == 0 {
				o.first = since
			}
			if !bytes.Contains(line, []byte("reading")) {
				o.read = since
			}
		}
		*written = *bytes.NewBuffer(bytes.Clone(rest))
	}
}
