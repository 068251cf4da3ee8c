package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func flightRecord() *wire.Flight {
	f := &wire.Flight{Pid: 7, Status: 3}
	f.Sites[0].Counts = wire.FlightCounts{Creates: 2, Peak: 100}
	f.Sites[0].Depth = 2
	f.Sites[0].Frames[0] = wire.Frame{Module: 1, Offset: 0x10}
	f.Sites[0].Frames[1] = wire.Frame{Module: 2, Offset: 42}
	copy(f.Modules[0].Path[:], "/bin/app")
	f.Modules[1].Script = 1
	copy(f.Modules[1].Path[:], "solve.py\x00step")
	return f
}

func TestFlight(t *testing.T) {
	b := wire.AppendFlight(nil, flightRecord())
	var f wire.Flight
	if err := wire.ParseFlight(b, &f); err != nil {
		t.Fatal(err)
	}
	frames, key := f.SiteFrames(&f.Sites[0]), f.AppendKeyOfSite(nil, &f.Sites[0])
	want := []wire.FlightFrame{{Module: "/bin/app", Offset: 0x10}, {Module: "solve.py", Function: "step", Offset: 42}}
	if f.Pid != 7 || len(frames) != 2 || frames[0] != want[0] || frames[1] != want[1] || len(key) == 0 {
		t.Errorf("%d %+v %q", f.Pid, frames, key)
	}
	for what, bad := range map[string][]byte{
		"cut off":  b[:len(b)-1],
		"checksum": append(bytes.Clone(b[:len(b)-9]), append([]byte{1}, b[len(b)-8:]...)...),
		"no recor": append([]byte{0}, b[1:]...),
	} {
		if err := wire.ParseFlight(bad, &f); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzParseFlight(f *testing.F) {
	f.Add(wire.AppendFlight(nil, flightRecord()), 0, uint64(0))
	f.Add([]byte("short"), 600, ^uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, at int, value uint64) {
		var r, again wire.Flight
		if wire.ParseFlight(b, &r) != nil { // whatever is in it, with a right checksum
			b = append(b, make([]byte, max(0, wire.SizeofFlight-len(b)))...)[:wire.SizeofFlight]
			copy(b, wire.AppendFlight(nil, flightRecord())[:16])
			_ = wire.ParseFlight(b, &r)
		}
		site := &r.Sites[uint(at)%uint(len(r.Sites))]
		site.Depth, site.Frames[uint(at)%wire.StackMax].Module = uint32(value), value
		if err := wire.ParseFlight(wire.AppendFlight(nil, &r), &again); err != nil {
			t.Fatal(err)
		}
		for i := range again.Sites {
			key := again.AppendKeyOfSite(nil, &again.Sites[i])
			if frames := again.SiteFrames(&again.Sites[i]); len(frames) > wire.StackMax || len(key) < len(frames) {
				t.Fatal(len(frames), len(key))
			}
		}
	})
}
