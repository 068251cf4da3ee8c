package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// A program that makes images of its buffers gets sub-allocations in front of PoCL 3.1, which makes no images of sub-buffers.
// Replay knows it from a recording under any policy.
func TestSlabsServeProgramsThatMakeImages(t *testing.T) {
	t.Parallel()
	program, file := testProgram("conformance"), filepath.Join(t.TempDir(), "run.gmt")
	live, sum := runUnder(t, "slab", command{args: []string{program}})
	if live.code != 0 || contains(live.stderr, "no sub-allocations") || sum.PeakSlabs == 0 {
		t.Errorf("with slab: %s, %d B in slabs\n%s", live, sum.PeakSlabs, live.stderr)
	}
	if r := run(t, command{args: []string{gpumemtop(), "record", "--policy", "none", "-o", file, program}}); r.code != 0 {
		t.Fatalf("record: %s\n%s", r, r.stderr)
	}
	var replayed struct {
		Requests   uint64 `json:"requests"`
		NeedBlocks uint64 `json:"need_blocks"`
	}
	r := run(t, command{args: []string{gpumemtop(), "replay", "--policy", "slab", "--format", "json", file}})
	if err := json.Unmarshal(r.stdout, &replayed); err != nil {
		t.Fatal(err)
	}
	if replayed.Requests == 0 || replayed.NeedBlocks == replayed.Requests {
		t.Errorf("%d of %d requests need a block", replayed.NeedBlocks, replayed.Requests)
	}
}

// A report calls images what they are; where there are buffers, too, both are memory objects.
func TestReportsNameImages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		want  string
	}{{[]string{testProgram("tiles"), "40"}, "image"}, {[]string{fault("findings"), "nearly-grow"}, "buffer"}, {[]string{testProgram("conformance")}, "memory object"}} {
		file := filepath.Join(t.TempDir(), "run.gmt")
		if r := run(t, command{args: append([]string{gpumemtop(), "record", "--policy", "none", "-o", file}, c.words...)}); r.code != 0 {
			t.Fatalf("record: %s\n%s", r, r.stderr)
		}
		text := readFile(t, tool(t, "report", "--all", file))
		for _, want := range []string{" in use by ", "\nEvery " + c.want + " was released.", "\n" + c.want + "s, by requested size"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: no %q in %s", c.words, want, text)
			}
		}
	}
}

// Images come from the pool from the second of a shape on, under every policy of whole blocks and beside slabs. Figures are by kind.
func TestImagesComeFromThePool(t *testing.T) {
	t.Parallel()
	for _, policy := range allocator.PolicyNames() {
		result, sum := runUnder(t, policy, command{args: []string{testProgram("tiles"), "40"}})
		i := slices.IndexFunc(sum.PerKind, func(s share) bool { return s.Kind == "image" })
		if result.code != 0 || i < 0 {
			t.Fatalf("under %s: %s\n%s%+v", policy, result, result.stderr, sum.PerKind)
		}
		hits, misses := uint64(76), uint64(2) // of 80: two shapes, the first of each unpooled
		if policy == "none" || policy == "pinned" {
			hits = 0
		}
		if policy == "none" {
			misses = 0
		} else if hits == 0 {
			misses = 78
		}
		more := uint64(0)
		if policy == "arena" { // on a slow machine a plan may come in time, which gives each shape a block of its own
			more = 2
		}
		s := &sum.PerKind[i]
		if s.Creates != 80 || s.Misses < misses || s.Misses > misses+more || s.Hits+s.Misses != hits+misses || contains(result.stderr, "  image ") != (policy != "none") {
			t.Errorf("under %s: %+v\n%s", policy, *s, result.stderr)
		}
	}
}

// So does shared virtual memory, from the first on. When the driver runs a free in the queue, so that its memory can be had
// again, is up to the driver.
func TestSharedMemoryComesFromThePool(t *testing.T) {
	t.Parallel()
	for _, policy := range allocator.PolicyNames() {
		result, sum := runUnder(t, policy, command{args: []string{testProgram("pointers"), "40"}})
		i := slices.IndexFunc(sum.PerKind, func(s share) bool { return s.Kind == "svm" })
		if result.code != 0 || i < 0 {
			t.Fatalf("under %s: %s\n%s%+v", policy, result, result.stderr, sum.PerKind)
		}
		s, fewest, requests := &sum.PerKind[i], uint64(60), uint64(80)
		switch policy {
		case "none":
			fewest, requests = 0, 0
		case "pinned":
			fewest = 0
		case "futhark-2018": // keeps one block of a call site, which has two
			fewest = 30
		}
		if s.Creates != 80 || s.Hits < fewest || s.Hits+s.Misses != requests || contains(result.stderr, "  svm ") != (policy != "none") {
			t.Errorf("under %s: %+v\n%s", policy, *s, result.stderr)
		}
	}
}
