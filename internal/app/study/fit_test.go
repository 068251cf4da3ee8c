package study

import (
	"bytes"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"encoding/json"
	"errors"
	"math"
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func anyPeak() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64Range(1, 1000), rapid.Uint64Range(1, 1<<40), rapid.Just(uint64(math.MaxUint64)))
}

// The least memory of a program that needs a certain amount is found to within a step, and quickly.
func TestBisectFindsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peak, step := anyPeak().Draw(t, "peak"), rapid.Uint64Range(1, 1<<20).Draw(t, "step")
		top := peak
		if top < 1<<50 {
			top = peak << doublings
		}
		need := rapid.Uint64Range(1, top).Draw(t, "need")
		runs := 0
		least, found, err := bisectLeastBytes(peak, step, func(size uint64) (bool, error) {
			runs++
			if size == 0 {
				t.Fatal("asked about nothing")
			}
			return size >= need, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			if need <= peak {
				t.Fatalf("needs %d, of a peak of %d, and nothing was found", need, peak)
			}
			return
		}
		if least < need || least-need > step {
			t.Errorf("found %d, needs %d, step %d", least, need, step)
		}
		if most := 3 + 2*doublings + bits.Len64(peak/step); runs > most {
			t.Errorf("%d runs, want at most %d", runs, most)
		}
	})
}

// A program may survive with little and fail with more: what is returned is the least that was seen to survive.
func TestBisectReturnsTheLeastTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peak, step := rapid.Uint64Range(1, 1<<40).Draw(t, "peak"), rapid.Uint64Range(1, 1<<30).Draw(t, "step")
		tried := map[uint64]bool{}
		best := uint64(math.MaxUint64)
		least, found, err := bisectLeastBytes(peak, step, func(size uint64) (bool, error) {
			if _, again := tried[size]; again {
				t.Fatalf("%d was tried twice", size)
			}
			tried[size] = rapid.Bool().Draw(t, "survives")
			if tried[size] {
				best = min(best, size)
			}
			return tried[size], nil
		})
		if err != nil || found != (best != math.MaxUint64) {
			t.Fatalf("found %v, %v", found, err)
		}
		if found && least != best {
			t.Errorf("found %d, the least that survived is %d", least, best)
		}
	})
}

func TestBisectEndsAtAnError(t *testing.T) {
	stop := errors.New("stop")
	for after := range 4 {
		runs := 0
		_, found, err := bisectLeastBytes(1000, 1, func(uint64) (bool, error) {
			if runs == after {
				return false, stop
			}
			runs++
			return true, nil
		})
		if found || !errors.Is(err, stop) || runs != after {
			t.Errorf("after %d runs: %d runs, found %v, %v", after, runs, found, err)
		}
	}
}

func TestFitResultText(t *testing.T) {
	least := uint64(96 << 20)
	result := FitResult{
		Command: []string{"./blur"}, Peak: 100 << 20, Resolution: 1 << 20,
		Results: []Least{{Policy: "none", Bytes: &least, Runs: 8}, {Policy: "futhark", Runs: 4}},
	}
	var b bytes.Buffer
	if err := result.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := "POLICY   LEAST DEVICE MEMORY  OF THE PEAK  RUNS\n" +
		"none     96.0 MiB             96 %         8\n" +
		"futhark  none that was tried  -            4\n" +
		"Without a limit the program takes 100.0 MiB. Smallest sizes that succeeded (±1.00 MiB).\n"
	if b.String() != want {
		t.Errorf("have\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	two := result
	two.Devices = 2
	if err := two.WriteText(&b); err != nil || !strings.HasPrefix(b.String(), want+"It uses 2 devices: ") {
		t.Errorf("%v: %s", err, b.String())
	}
	b.Reset()
	if err := console.WriteJSON(&b, &result); err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back["peak"] != 100.0*(1<<20) || !strings.Contains(b.String(), `"least": null`) {
		t.Errorf("JSON is %s", b.String())
	}
}
