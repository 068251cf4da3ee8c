package export

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestChromeTransfers: bytes each way are counters, which stand where they have changed.
func TestChromeTransfers(t *testing.T) {
	use := func(us uint64, command wire.Command, bytes uint64) wire.Record {
		return wire.Record{Event: wire.UseFields{Time: origin + 1000*us, Command: command, Object: 1, Bytes: bytes}.Event(), Process: 1, Thread: 101}
	}
	records := append(story(), use(2000, wire.CommandWrite, 500), use(4000, wire.CommandRead, 30), use(6000, wire.CommandCopy, 7))
	got, _, _ := exportPart(t, &tape{Records: records}, storyFacts(), TraceOptions{})
	contains(t, got, []string{`"name":"transfers"`, `"args":{"to_device":500,"to_host":30}`}, []string{`"to_device":507`})
}

// TestChromeShowsProfiledTransfers: what a device measured is drawn for as long, and ends where the program learned of it.
func TestChromeShowsProfiledTransfers(t *testing.T) {
	timed := func(us uint64, command wire.Command, bytes, took uint64) wire.Record {
		event := wire.TransferFields{Time: origin + 1000*us, Profiled: command, Moved: bytes, Took: took}.Event()
		return wire.Record{Event: event, Process: 1, Thread: 101}
	}
	side := wire.Record{Event: wire.TransferFields{Time: origin + 5_000_000, Pinned: true}.Event(), Process: 1, Thread: 101} // of a command that has a USE
	records := append(story(), timed(10_000, wire.CommandWrite, 500, 750_000), timed(12_000, wire.CommandRead, 30, 1<<62), side)
	got, _, _ := exportPart(t, &tape{Records: records}, storyFacts(), TraceOptions{})
	contains(t, got, []string{
		`"name":"write on the device"`, `"ts":9250.000`, `"ts":10000.000`, `"bytes":500,"device_us":750.000`, `"name":"read on the device"`,
	}, []string{`"name":"other on the device"`})
	if n := strings.Count(got, `"cat":"device"`); n != 4 {
		t.Errorf("%d lines, want two for each of two transfers", n)
	}
	got, _, _ = exportPart(t, &tape{Records: records}, storyFacts(), TraceOptions{MinSize: 100})
	contains(t, got, []string{"write on the device"}, []string{"read on the device"})
}
