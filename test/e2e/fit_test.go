package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// fitted is what fit --format json prints.
type fitted struct {
	Command    []string `json:"command"`
	Peak       uint64   `json:"peak"`
	Resolution uint64   `json:"resolution"`
	Results    []struct {
		Policy string  `json:"policy"`
		Least  *uint64 `json:"least"`
		Runs   int     `json:"runs"`
	} `json:"results"`
}

// least returns what was found for a policy.
func (f *fitted) least(t *testing.T, policy string) uint64 {
	t.Helper()
	for _, r := range f.Results {
		if r.Policy == policy && r.Least != nil {
			return *r.Least
		}
	}
	t.Fatalf("nothing was found for %s: %+v", policy, f)
	return 0
}

func fit(t *testing.T, flags []string, args ...string) (fitted, outcome) {
	t.Helper()
	words := append([]string{gpumemtop(), "fit", "--format", "json"}, flags...)
	result := run(t, command{args: append(append(words, "--"), args...)})
	var f fitted
	if err := json.Unmarshal(result.stdout, &f); err != nil || result.code != 0 {
		t.Fatalf("fit ended with %s, %v\nstdout: %s\nstderr: %s", result, err, result.stdout, result.stderr)
	}
	return f, result
}

const hungryPeak = 8 * 2 << 20 // hungry 8 2M

// Bare, the program needs what it takes at its peak. The pool keeps blocks of earlier phases, but gives them back when
// memory is short, so that with it the program needs hardly more.
func TestFitFindsWhatAProgramNeeds(t *testing.T) {
	t.Parallel()
	f, result := fit(t, nil, fault("hungry"), "8", "2M")
	if f.Peak != hungryPeak || f.Resolution != hungryPeak/100 {
		t.Errorf("peak %d, resolution %d; want %d, %d", f.Peak, f.Resolution, hungryPeak, hungryPeak/100)
	}
	if got := f.least(t, "none"); got < hungryPeak || got > hungryPeak+f.Resolution {
		t.Errorf("without the pool it survives with %d, it holds %d at a time", got, hungryPeak)
	}
	if got := f.least(t, "futhark"); got < hungryPeak || got > hungryPeak+hungryPeak/10 {
		t.Errorf("with the pool it needs %d, without %d", got, f.least(t, "none"))
	}
	text := string(result.stderr)
	if n := 1 + f.Results[0].Runs + f.Results[1].Runs; strings.Count(text, "\n") != n {
		t.Errorf("want a line for each of %d runs, have:\n%s", n, text)
	}
	for _, part := range []string{"run 1: without a limit: it takes 16.0 MiB", "no pool: survives", "no pool: exit status 1", "futhark: survives", "futhark: exit status 1"} {
		if !strings.Contains(text, part) {
			t.Errorf("no word of %q:\n%s", part, text)
		}
	}
}

func TestFitTakesPolicyLimitsAndResolution(t *testing.T) {
	t.Parallel()
	f, _ := fit(t, []string{"--policy", "pow2", "--max-cached", "1M", "--resolution", "1M"}, fault("hungry"), "4", "2M")
	if f.Resolution != 1<<20 || len(f.Results) != 2 || f.Results[0].Policy != "none" || f.Results[1].Policy != "pow2" {
		t.Errorf("result %+v", f)
	}
	for _, policy := range []string{"none", "pow2"} {
		if got := f.least(t, policy); got%(1<<20) != 0 || got < 8<<20 {
			t.Errorf("%s: %d", policy, got)
		}
	}
}

// A program that makes do with less survives with a single buffer.
func TestFitOfAProgramThatStepsDown(t *testing.T) {
	t.Parallel()
	f, _ := fit(t, []string{"--resolution", "64K"}, fault("hungry"), "-s", "8", "2M")
	for _, policy := range []string{"none", "futhark"} {
		if got := f.least(t, policy); got < 2<<20 || got > 2<<20+64<<10 {
			t.Errorf("%s: it survives with %d, its largest buffer has %d", policy, got, 2<<20)
		}
	}
}

func TestFitAsTable(t *testing.T) {
	t.Parallel()
	result := run(t, command{args: []string{gpumemtop(), "fit", "--resolution", "4M", fault("hungry"), "4", "2M"}})
	if result.code != 0 {
		t.Fatalf("ended with %s\n%s", result, result.stderr)
	}
	for _, part := range []string{"LEAST DEVICE MEMORY", "none", "futhark", "8.00 MiB", "Smallest sizes that succeeded"} {
		if !contains(result.stdout, part) {
			t.Errorf("no %q in\n%s", part, result.stdout)
		}
	}
	if contains(result.stdout, "checksum") || contains(result.stderr, "checksum") {
		t.Errorf("the program's output is shown:\n%s%s", result.stdout, result.stderr)
	}
}

// --device-memory plays a small card: creates fail when it is full, and the program sees it.
func TestSmallCard(t *testing.T) {
	t.Parallel()
	bare := runBare(t, fault("hungry"), "8", "2M")
	for _, policy := range []string{"none", "futhark", "pow2"} {
		args := func(memory string, words ...string) command {
			return command{args: append([]string{gpumemtop(), "--headless", "--policy", policy, "--device-memory", memory, "--"}, words...)}
		}
		if difference := differs(bare, run(t, args("32M", fault("hungry"), "8", "2M"))); difference != "" {
			t.Errorf("%s, 32M: %s", policy, difference)
		}
		result := run(t, args("12M", fault("hungry"), "8", "2M"))
		if result.code != 1 || !contains(result.stderr, "hungry: out of memory at large buffer 7 of 8") {
			t.Errorf("%s, 12M: ended with %s\n%s", policy, result, result.stderr)
		}
		if result := run(t, args("12M", fault("hungry"), "-s", "8", "2M")); result.code != 0 {
			t.Errorf("%s, 12M, stepping down: ended with %s\n%s", policy, result, result.stderr)
		}
	}
}

// No create fails with a pool that succeeds without it, on cards that have what programs of many shapes need, or more. On a
// small card the pool wastes nothing; on a large one the host makes up for what it wastes.
func TestNoCreateFailsForThePool(t *testing.T) {
	t.Parallel()
	for _, card := range []struct {
		need     uint64
		percents []uint64
		hosted   string // the policy that wastes the most there
	}{
		{18 << 20, []uint64{100, 105}, ""},
		{320 << 20, []uint64{100, 300}, "pow2"},
	} {
		words := []string{fault("temporaries"), strconv.FormatUint(card.need, 10)}
		bare := runBare(t, words...)
		if strings.Count(string(bare.stdout), ": 0 of ") != 6 {
			t.Fatalf("%s\n%s", bare, bare.stdout)
		}
		for _, policy := range allocator.PolicyNames() {
			t.Run(policy, func(t *testing.T) {
				t.Parallel()
				for i, percent := range card.percents {
					if i > 0 && !*driversAll && !slices.Contains(few, policy) {
						continue // the smallest card is the hardest
					}
					memory := strconv.FormatUint(card.need/100*percent+percent, 10)
					here, sum := served{policy: policy, flags: []string{"--device-memory", memory}}.run(t, command{args: words})
					if difference := differs(bare, here); difference != "" || sum.Misses+sum.Hits < 3000 {
						t.Errorf("on %d %% of %d bytes: %s\n%+v", percent, card.need, difference, sum)
					}
					hosted := contains(here.stderr, "got the host's memory")
					if hosted && card.hosted == "" || percent == 100 && policy == card.hosted && !hosted {
						t.Errorf("on %d %% of %d bytes: the host's memory served: %v\n%s", percent, card.need, hosted, here.stderr)
					}
				}
			})
		}
	}
}

// choosy works with any memory as far as OpenCL is concerned, and reads in the session's settings how much it was
// given: below 3 MiB it hangs once, with a child whose number it leaves in a file, and fails from then on.
const choosy = `"$1" -s 4 1M || exit 2
memory=$(od -An -t u8 -j 48 -N 8 "$GPUMEMTOP_SESSION/config")
[ "$memory" -eq 0 ] || [ "$memory" -ge 3145728 ] && exit 0
[ -e "$2" ] && exit 1
sleep 1000 &
echo $! > "$2"
wait`

// A run that does not end within --timeout does not survive, and is ended with its children.
func TestFitEndsRunsThatHang(t *testing.T) {
	t.Parallel()
	hung := filepath.Join(t.TempDir(), "hung")
	f, result := fit(t, []string{"--resolution", "1M", "--timeout", "30s"}, "sh", "-c", choosy, "sh", fault("hungry"), hung)
	for _, policy := range []string{"none", "futhark"} {
		if got := f.least(t, policy); got != 3<<20 {
			t.Errorf("%s: found %d, want %d\n%s", policy, got, 3<<20, result.stderr)
		}
	}
	for _, part := range []string{"2.00 MiB, no pool: no end after 30s", "2.00 MiB, futhark: exit status 1"} {
		if !contains(result.stderr, part) {
			t.Errorf("no word of %q:\n%s", part, result.stderr)
		}
	}
	text, err := os.ReadFile(hung)
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the child of the run that hung to be gone", func() bool { return !alive(child) })
}

// A recording of sub-buffers that are right here is held against a device that wants them further apart.
func TestFitOnADeviceThatIsNotHere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recorded, card := filepath.Join(dir, "mosaic.gmt"), filepath.Join(dir, "card.toml")
	if r := run(t, command{args: []string{gpumemtop(), "record", "-o", recorded, "--", example("mosaic"), "2", "64K"}}); r.code != 0 {
		t.Fatalf("%s\n%s", r, r.stderr)
	}
	if err := os.WriteFile(card, []byte("name = \"card\"\nbase_alignment_bits = 1048576\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for device, want := range map[string]struct {
		code int
		text string
	}{
		card:         {1, "card: it would not run; what fails first: origins of sub-buffers"},
		"tesla-p100": {0, "all begin at multiples of 16.0 KiB; 512 B is needed there"},
	} {
		r := run(t, command{args: []string{gpumemtop(), "fit", "--on", device, recorded}})
		if r.code != want.code || !strings.Contains(string(r.stdout), want.text) {
			t.Errorf("on %s: %s\n%s%s", device, r, r.stdout, r.stderr)
		}
	}
}
