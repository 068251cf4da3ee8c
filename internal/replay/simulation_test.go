package replay

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// changed releases a block, changes something, and asks for as much again.
func changed(text string, status int16) *labtest.Tape {
	t := labtest.NewTape()
	t.AddCreate(1, 4096)
	t.AddRelease(1, wire.OutcomeCached)
	t.AddLimit(text, status)
	t.AddCreate(2, 4096)
	return t
}

func TestChangesOfLimits(t *testing.T) {
	for _, c := range []struct {
		text             string
		status           int16
		set              string
		hold             bool
		hits             uint64
		changes, leftOut uint64
		reason           wire.Miss
	}{
		{text: "max_cached_bytes=4096", hits: 1, changes: 1},
		{text: "max_cached_bytes=4095", changes: 1, reason: wire.MissLimit},
		{text: "4096", hits: 1, changes: 1}, // a trim
		{text: "0", changes: 1, reason: wire.MissDrained},
		{text: "relieve=0 0 short", hits: 1, changes: 1},
		{text: "period=20000000000", hits: 1, changes: 1},
		{text: "relieve=4096 4096 timed", changes: 1, reason: wire.MissDrained},
		{text: "relieve=64 0 timed", hits: 1, changes: 1},
		{text: "relieve=1 4096 asked", changes: 1, reason: wire.MissDrained},
		{text: "max_cached_bytes=0", status: -1, hits: 1},
		{text: "mantissa_bits=3", hits: 1, changes: 1, leftOut: 1}, // not futhark's
		{text: "neither", hits: 1},
		{text: "max_cached_bytes=0", set: "max_cached_bytes=8192", changes: 1, reason: wire.MissLimit},
		{text: "max_cached_bytes=0", set: "max_cached_bytes=8192", hold: true, hits: 1, changes: 1, leftOut: 1},
		{text: "max_cached_bytes=0", set: "min_block=1", hold: true, changes: 1, reason: wire.MissLimit},
		{text: "0", set: "max_cached_bytes=8192", hold: true, changes: 1, reason: wire.MissDrained},
	} {
		settings, err := allocator.ParseSettings(c.set)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Replay(changed(c.text, c.status), Options{Policy: "futhark", Settings: settings, HoldSettings: c.hold})
		if err != nil {
			t.Fatal(err)
		}
		if r.Hits != c.hits || r.Changes != c.changes || r.LeftOut != c.leftOut || c.hits == 0 && r.MissReasons[c.reason] != 1 {
			t.Errorf("%+v: %d hits, %d changes, %d left out, %v", c, r.Hits, r.Changes, r.LeftOut, r.MissReasons)
		}
	}
}

// TestRequestsThatFailed repeats failed requests where there is a capacity.
func TestRequestsThatFailed(t *testing.T) {
	failed := func(status int16, access uint16) *labtest.Tape {
		s := labtest.NewTape()
		s.AddCreate(1, 4096)
		s.AddRelease(1, wire.OutcomeCached)
		r := s.AddCreate(0, 6000)
		r.Outcome, r.Status, r.Granted, r.Access = wire.OutcomeFailed, status, 0, access
		s.AddCreate(2, 4096)
		return s
	}
	const noMemory, invalid = -4, -30
	for name, c := range map[string]struct {
		tape                     *labtest.Tape
		capacity                 uint64
		hits, rescued, evictions uint64
	}{
		"no capacity":      {failed(noMemory, labtest.ReadWrite), 0, 1, 0, 0},
		"fails again":      {failed(noMemory, labtest.ReadWrite), 5000, 1, 0, 0}, // what can never fit drains nothing
		"drains":           {failed(noMemory, labtest.ReadWrite), 6000, 0, 1, 1},
		"would succeed":    {failed(noMemory, labtest.ReadWrite), 11000, 1, 1, 0},
		"another mistake":  {failed(invalid, labtest.ReadWrite), 6000, 1, 0, 0},
		"contents to copy": {failed(noMemory, labtest.ReadWrite|wire.CopyHostPtr), 6000, 1, 0, 0},
	} {
		r := replay(t, c.tape, "futhark", c.capacity)
		if r.Hits != c.hits || r.Rescued != c.rescued || r.Evictions != c.evictions || r.Failures != 0 || r.Requests != 2 || r.InUse != 4096 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestCosts(t *testing.T) {
	story := labtest.NewTape()
	story.AddCreate(1, 1000)
	story.AddRelease(1, wire.OutcomeCached)
	story.AddCreate(2, 600) // a hit
	story.AddCreate(3, 3000)
	story.EndContext(labtest.Scope)
	story.AddRelease(2, wire.OutcomeDriver)
	device := cost.Device{Create: cost.Line{A: 100, B: 1}, Touch: cost.Line{A: 10}, Release: cost.Line{A: 7, B: 2}, Part: cost.Line{A: 5}}
	r, err := Replay(story, Options{Policy: "futhark", Device: device})
	if err != nil {
		t.Fatal(err)
	}
	if r.CreateNS != 2*100+4000 || r.TouchNS != 20 || r.ReleaseNS != 7+2*1000 || r.PartNS != 0 || r.SavedNS != 1100+7+2*1000 {
		t.Errorf("creates %g, touches %g, releases %g, parts %g, saved %g", r.CreateNS, r.TouchNS, r.ReleaseNS, r.PartNS, r.SavedNS)
	}
	if r.DriverNS != r.CreateNS+r.TouchNS+r.ReleaseNS+r.PartNS || r.Device != device {
		t.Errorf("driver %g, device %+v", r.DriverNS, r.Device)
	}
	if r, err = Replay(labtest.RewindSource(t, story), Options{Policy: "slab", Device: device}); err != nil || r.Slabs != 1 ||
		r.PartNS != 15 || r.TouchNS != 10 { // of the third part bytes were used by the first
		t.Errorf("slab: %v, %d slabs, parts %g, touches %g", err, r.Slabs, r.PartNS, r.TouchNS)
	}
}

// TestCostsWithBreaks prices each call by the line of its block's size.
func TestCostsWithBreaks(t *testing.T) {
	line := func(a float64) cost.Line {
		return cost.Line{A: a, B: 1, Below: cost.Below{Bytes: 2000, A: a / 10, B: 0.5}}
	}
	device := cost.Device{Create: line(100), Touch: line(200), Release: line(300), Part: line(400)}
	play := func(policy string) Result {
		story := labtest.NewTape()
		story.AddCreate(1, 1000)
		story.AddRelease(1, wire.OutcomeCached)
		story.AddCreate(2, 1000) // a hit
		story.AddCreate(3, 3000)
		story.EndContext(labtest.Scope)
		story.AddRelease(3, wire.OutcomeDriver)
		r, err := Replay(story, Options{Policy: policy, Device: device})
		if err != nil {
			t.Fatal(err)
		}
		return *r
	}
	r := play("futhark") // blocks of 1000 and 3000 bytes; the larger is released
	create, touch, release := &device.Create, &device.Touch, &device.Release
	if r.CreateNS != create.CallNS(1000)+create.CallNS(3000) || r.TouchNS != touch.CallNS(1000)+touch.CallNS(3000) ||
		r.ReleaseNS != release.CallNS(3000) ||
		r.SavedNS != create.CallNS(1000)+release.CallNS(1000) || r.PartNS != 0 {
		t.Errorf("creates %g, touches %g, releases %g, saved %g, parts %g", r.CreateNS, r.TouchNS, r.ReleaseNS, r.SavedNS, r.PartNS)
	}
	// In a slab, which is large, small parts are touched as large blocks are.
	part := &device.Part
	if r = play("slab"); r.Slabs != 1 || r.PartNS != 2*part.CallNS(1000)+part.CallNS(3000) || r.TouchNS != touch.A+1000+touch.A+3000 {
		t.Errorf("slab: %d slabs, parts %g, touches %g", r.Slabs, r.PartNS, r.TouchNS)
	}
}

// TestFittedDevice learns the cost lines from timed calls in the recording.
func TestFittedDevice(t *testing.T) {
	story := labtest.NewTape()
	for n := range uint64(10) {
		story.AddCreate(n+1, 1000*(n+1)).Cost = uint32(50 + 3000*(n+1))
		story.AddEvict(n+1, 1000*(n+1), wire.EvictNone).Cost = 40
	}
	story.AddCreate(11, 5) // not timed
	loaded := load(t, story)
	d := loaded.DriverCosts()
	near := func(got, want float64) bool { return got > want*0.999 && got < want*1.001 }
	if !near(d.Create.A, 50) || !near(d.Create.B, 3) || !near(d.Release.A, 40) || d.Release.B > 1e-9 || d.Touch != (cost.Line{}) {
		t.Errorf("%+v", d)
	}
	r, err := loaded.Replay(Options{Policy: "none", Fit: true})
	if err != nil || r.Device != d || !near(r.CreateNS, 11*50+3*55005) {
		t.Errorf("%v, %+v, creates %g", err, r.Device, r.CreateNS)
	}
}

// TestPriceOfCopies leaves out creates that copy, where there are others.
func TestPriceOfCopies(t *testing.T) {
	story := labtest.NewTape()
	timed := func(outcome wire.Outcome, access uint16, ns uint32) {
		r := story.AddCreate(uint64(len(story.Records)), 1000)
		r.Outcome, r.Access, r.Cost = outcome, access, ns
	}
	timed(wire.OutcomeDriver, labtest.ReadWrite|wire.CopyHostPtr, 70_000)
	timed(wire.OutcomeMiss, labtest.ReadWrite|wire.CopyHostPtr, 90_000)
	timed(wire.OutcomeDriver, labtest.ReadWrite|wire.UseHostPtr, 5) // has no memory
	if d := load(t, story).DriverCosts(); d.Create != (cost.Line{A: 70_000}) {
		t.Errorf("nothing but copies: %+v", d.Create)
	}
	timed(wire.OutcomeMiss, labtest.ReadWrite, 300)
	timed(wire.OutcomeMiss, labtest.ReadWrite, 500)
	if d := load(t, story).DriverCosts(); d.Create != (cost.Line{A: 300}) {
		t.Errorf("copies of 70 and 90 µs, blocks of 300 and 500 ns: %+v", d.Create)
	}
}

// TestFewReleases: what a few slow releases took is no price of releases.
func TestFewReleases(t *testing.T) {
	story := labtest.NewTape()
	for n := range uint64(releasesLeast) {
		r := story.AddCreate(n+1, 4096)
		r.Outcome, r.Cost = wire.OutcomeMiss, 300
		want := cost.Line{A: 300}
		if story.AddRelease(n+1, wire.OutcomeDriver).Cost = 1_500_000; n+1 == releasesLeast {
			want.A = 1_500_000
		}
		if n == 0 { // one create shows no costs, nor that of a release
			want.A = 0
		}
		if d := load(t, story).DriverCosts(); d.Release != want {
			t.Errorf("%d releases: %+v", n+1, d)
		}
	}
}

// TestPriceOfParts takes the price of a sub-buffer's create twice where it was timed, and assumes it elsewhere.
func TestPriceOfParts(t *testing.T) {
	story := labtest.NewTape()
	part := func(object uint64, outcome wire.Outcome, ns uint32) {
		r := story.AddCreate(object, 256)
		r.Outcome, r.Flags, r.Cost = outcome, wire.FlagSubAlloc, ns
	}
	part(1, wire.OutcomeMiss, 9000) // with a slab in it
	story.AddEvict(9, 4096, wire.EvictNone).Cost = 700
	if d := load(t, story).DriverCosts(); d.Part != (cost.Line{A: 700}) || !d.PartAssumed {
		t.Errorf("nothing was timed: %+v", d)
	}
	part(2, wire.OutcomeHit, 60)
	part(3, wire.OutcomeHit, 80)
	part(4, wire.OutcomeHit, 0) // not timed
	if d := load(t, story).DriverCosts(); d.Part != (cost.Line{A: 120}) || d.PartAssumed {
		t.Errorf("creates of 60 and 80 ns: %+v", d)
	}
}

// TestSimulationCanBeAskedAnyTime asks after every record: that changes nothing.
func TestSimulationCanBeAskedAnyTime(t *testing.T) {
	story := thousand()
	story.AddCreate(9, 512)
	o := Options{Policy: "futhark", Capacity: 1024, Fit: true}
	want, err := Replay(story, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newBatchOfOne(o)
	if err != nil {
		t.Fatal(err)
	}
	requests := uint64(0)
	for i := range story.Records {
		if err := s.readAndPlayRecord(&story.Records[i]); err != nil {
			t.Fatal(err)
		}
		r := s.resultSoFar()
		if r.Requests < requests || r.Requests != r.Hits+r.Misses+r.Failures+r.Direct {
			t.Errorf("after %d records: %+v", i+1, r)
		}
		requests = r.Requests
	}
	if diff := cmp.Diff(*want, s.resultSoFar()); diff != "" {
		t.Error(diff)
	}
}

// TestContextNumbersComeAgain: a context has the number of an ended one, and its freed blocks are cached.
func TestContextNumbersComeAgain(t *testing.T) {
	story := labtest.NewTape()
	story.AddCreate(1, 4096)
	story.AddRelease(1, wire.OutcomeCached)
	story.EndContext(labtest.Scope)
	story.AddContext(labtest.Scope + 1<<16)
	story.AddCreate(2, 4096)
	story.AddRelease(2, wire.OutcomeCached)
	story.AddCreate(3, 4096)
	if r := replay(t, story, "futhark", 0); r.Hits != 1 || r.Evictions != 1 {
		t.Errorf("%+v", r)
	}
}
