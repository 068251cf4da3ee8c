package replay

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// playAll plays a source through a batch with one member for each policy, a number of records at a time, without the
// records that do not concern a policy.
func playAll(t *testing.T, src recording.Source, batch int, o Options) *Batch {
	t.Helper()
	c := NewBatch()
	for _, name := range allocator.PolicyNames() {
		o.Policy = name
		if _, err := c.AddSimulation(o); err != nil {
			t.Fatal(err)
		}
	}
	play := func() {
		for member := range allocator.PolicyNames() {
			if err := c.PlayMember(member); err != nil {
				t.Fatal(err)
			}
		}
		c.ForgetReadSteps()
	}
	n := 0
	labtest.EachRecord(t, labtest.RewindSource(t, src), func(r *wire.Record) {
		if ConcernsPolicy(&r.Event) { // a listener is given no others
			c.ReadRecord(r)
		}
		if n++; n%batch == 0 {
			play()
		}
	})
	play()
	return c
}

// TestBatchGivesWhatReplayGives compares every member with a replay of its own.
func TestBatchGivesWhatReplayGives(t *testing.T) {
	device := cost.Device{Create: cost.Line{A: 100, B: 1}, Release: cost.Line{A: 7}, Part: cost.Line{A: 3}}
	for file, reader := range labtest.Recordings(t, "testdata") {
		for _, o := range []Options{{}, {Capacity: 2 << 20}} {
			for _, batch := range []int{1, 64, 1 << 30} {
				c := playAll(t, reader, batch, o)
				for member, name := range allocator.PolicyNames() {
					o.Policy, o.Device = name, device
					want, err := Replay(labtest.RewindSource(t, reader), o)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(*want, c.ResultOfMember(member, device)); diff != "" {
						t.Errorf("%s, %s, batches of %d: %s", file, name, batch, diff)
					}
				}
			}
		}
	}
}

// TestMembersComeAndGo adds a member late, which does not know the earlier buffers, and removes another.
func TestMembersComeAndGo(t *testing.T) {
	story := labtest.NewTape()
	c := NewBatch()
	first, err := c.AddSimulation(Options{Policy: "futhark"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddSimulation(Options{Policy: "futrak"}); err == nil {
		t.Error("an unknown policy takes part")
	}
	read := func() {
		for i := range story.Records {
			c.ReadRecord(&story.Records[i])
		}
		story.Records = story.Records[:0]
	}
	for n := range uint64(5) {
		story.AddCreate(n+1, 4096)
	}
	read()
	if err := c.PlayMember(first); err != nil {
		t.Fatal(err)
	}
	if c.EventCount() != 5 || c.TableBytes() == 0 || c.ReservedBytesOfMember(first) != 5*4096 {
		t.Errorf("%d events, %d bytes kept, %d reserved", c.EventCount(), c.TableBytes(), c.ReservedBytesOfMember(first))
	}
	c.ForgetReadSteps()
	late, err := c.AddSimulation(Options{Policy: "futhark"})
	if err != nil {
		t.Fatal(err)
	}
	c.RemoveMember(first)
	for n := range uint64(5) {
		story.AddRelease(n+1, wire.OutcomeCached)
	}
	story.AddCreate(6, 4096)
	story.AddRelease(6, wire.OutcomeCached)
	story.AddCreate(7, 4096)
	read()
	if err := c.PlayMember(late); err != nil {
		t.Fatal(err)
	}
	if r := c.ResultOfMember(late, cost.Device{}); r.Hits != 1 || r.Misses != 1 || r.PeakReserved != 4096 {
		t.Errorf("%+v", r)
	}
}
