package export

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestChromeTransfers: bytes each way are counters, which stand where they have changed.
func TestChromeTransfers(t *testing.T) {
	use := func(us uint64, command wire.Command, bytes uint64) wire.Record {
		return wire.Record{Event: wire.UseFields{Time: origin + 1000*us, Command: command, Object: 1, Bytes: bytes}.Event(), Process: 1, Thread: 101}
	}
	records := append(story(), use(2000, wire.CommandWrite, 500), use(4000, wire.CommandRead, 30), use(6000, wire.CommandCopy, 7))
	got, _, _ := exportPart(t, &tape{Records: records}, storyFacts(), ChromeOptions{})
	contains(t, got, []string{`"name":"transfers"`, `"args":{"to_device":500,"to_host":30}`}, []string{`"to_device":507`})
}
