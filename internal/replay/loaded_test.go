package replay

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// checkRuns fails unless a loaded recording gives the result of the recording, and gives it again.
func checkRuns(t *testing.T, src recording.Source, loaded *Loaded, o Options) {
	t.Helper()
	want, err := Replay(labtest.RewindSource(t, src), o)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := loaded.Replay(o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%+v: %s", o, diff)
		}
	}
}

func TestLoadedGivesWhatTheRecordingGives(t *testing.T) {
	for file, reader := range labtest.Recordings(t, "testdata") {
		loaded := load(t, reader)
		if loaded.EventCount() == 0 {
			t.Errorf("%s: no events", file)
		}
		for _, policy := range allocator.PolicyNames() {
			checkRuns(t, reader, loaded, Options{Policy: policy, Fit: true})
			checkRuns(t, reader, loaded, Options{Policy: policy, Capacity: 2 << 20, Device: cost.Device{Touch: cost.Line{B: 0.5}}})
		}
	}
}

// TestLoadedNonsense loads more records than a chunk has room for.
func TestLoadedNonsense(t *testing.T) {
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 7))
		src := labtest.NewTape()
		for n := range chunkOps * 3 / 2 {
			src.Records = append(src.Records, randomRecord(rng, uint64(n)))
		}
		loaded := load(t, src)
		for _, policy := range allocator.PolicyNames() {
			checkRuns(t, src, loaded, Options{Policy: policy, Capacity: rng.Uint64N(2) * 1 << 22})
		}
	}
}

// TestLoadFirstEvents loads as many events as were asked for, and says whether these are all.
func TestLoadFirstEvents(t *testing.T) {
	all := load(t, thousand()).EventCount()
	for _, most := range []int{1, 3, all - 1, all, all + 1} {
		l, whole, err := LoadFirstEvents(thousand(), most)
		if err != nil || l.EventCount() != min(most, all) || whole != (most > all) {
			t.Errorf("at most %d: %d events of %d, whole %v, %v", most, l.EventCount(), all, whole, err)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(labtest.Broken{Err: errors.New("bad block")}); err == nil || !strings.Contains(err.Error(), "bad block") {
		t.Errorf("a source that fails: %v", err)
	}
	if _, err := load(t, thousand()).Replay(Options{Policy: "futhork"}); err == nil || !strings.Contains(err.Error(), "unknown policy") {
		t.Errorf("a policy that there is not: %v", err)
	}
}

func TestOpIsCompact(t *testing.T) {
	if size := reflect.TypeFor[op]().Size(); size > 32 {
		t.Errorf("an op has %d bytes, want at most 32", size)
	}
}

// TestSlotsAreUsedAgain loads many buffers; few live at one time.
func TestSlotsAreUsedAgain(t *testing.T) {
	src := labtest.NewTape()
	for object := range uint64(1000) {
		src.AddCreate(object+1, 4096)
		src.AddRelease(object+1, []wire.Outcome{wire.OutcomeCached, wire.OutcomeCooling, wire.OutcomeRefused}[object%3])
		src.AddEvent(wire.Event{Kind: []wire.Kind{wire.KindSync, wire.KindCooled, wire.KindEvict}[object%3], Link: object + 1})
	}
	if loaded := load(t, src); loaded.script.slots != 1 {
		t.Errorf("%d slots, want 1", loaded.script.slots)
	}
}
