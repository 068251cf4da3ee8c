package e2e

import (
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// A small recording of more call sites than any program has costs a report no more than 512 MiB.
func TestReportOfManySites(t *testing.T) {
	const sites, most = 110_000, 512 << 10 // KiB
	path := filepath.Join(t.TempDir(), "sites.gmt")
	w, err := recording.Create(path, recording.Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	put := func(e wire.Event, payload []byte) {
		if err := w.Append(&wire.Record{Event: e, Process: 1, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	put(wire.Event{Kind: wire.KindModule, Time: 1, Object: 1, Size: 8}, []byte("/bin/app"))
	for i := range uint64(sites) {
		frame := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1), 16*i)
		tag, time := uint32(i+1), 10+100_000*i //nolint:gosec // below sites
		put(wire.Event{Kind: wire.KindTag, Time: time, Tag: tag, Op: uint8(wire.TagsCaller), Size: 16}, frame)
		put(wire.Event{Kind: wire.KindCreate, Time: time + 5, Tag: tag, Object: i + 1, Size: 4096, Granted: 4096}, nil)
	}
	if err := w.Close(recording.Footer{}); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(gpumemtop(), "report", path)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok || usage.Maxrss > most {
		t.Errorf("the report took %+v KiB, want at most %d", usage, most)
	}
	t.Logf("%d KiB", usage.Maxrss)
}
