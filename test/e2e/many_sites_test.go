package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// A small recording of more call sites than any program has costs a report no more than 512 MiB.
func TestReportOfManySites(t *testing.T) {
	t.Parallel()
	const sites, most = 110_000, 512 << 10 // KiB
	path := manySites(t, sites)
	c := exec.Command(gpumemtop(), "report", "-o", filepath.Join(t.TempDir(), "report.txt"), path)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	took := uint64(0)
	looks := time.NewTicker(2 * time.Millisecond)
	defer looks.Stop()
	for {
		select {
		case err := <-ended:
			if t.Logf("%d KiB", took); err != nil || took < sites/2 || took > most {
				t.Errorf("%v; the report took %d KiB, want at most %d", err, took, most)
			}
			return
		case <-looks.C:
			took = max(took, peakOf(c.Process.Pid))
		}
	}
}

// peakOf returns the most memory that a process has had, in KiB: wait4(2) would count that of its parent, too.
func peakOf(pid int) (peak uint64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	if _, rest, found := strings.Cut(string(text), "VmHWM:"); found {
		_, _ = fmt.Sscan(rest, &peak)
	}
	return peak
}

// manySites writes a recording of a program whose creates each have a call site of their own.
func manySites(t *testing.T, sites int) string {
	t.Helper()
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
	return path
}
