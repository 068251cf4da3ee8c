package e2e

import (
	"bytes"
	"strings"
	"testing"
)

// Programs that hold more than the device has run to the right result as long as one command's buffers fit.
func TestSpill(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program, args, memory string
	}{
		{example("spill"), "40 64K random", "256K"},
		{example("threads"), "4 20 64K", "64K"},
		{example("mosaic"), "4 1M", "1229K"}, // 60 %: less than a canvas and a part of it
		{testProgram("overtaken"), "1", "1048700"},
	} {
		words := append([]string{test.program}, strings.Fields(test.args)...)
		bare := run(t, command{args: words})
		r := run(t, command{args: append([]string{gpumemtop(), "--headless", "--spill", "--device-memory", test.memory, "--"}, words...)})
		if r.code != 0 || bare.code != 0 || !bytes.Equal(r.stdout, bare.stdout) {
			t.Errorf("%s with %s: %s %q, bare %q\n%s", words, test.memory, r, r.stdout, bare.stdout, r.stderr)
		}
	}
}

// Where the buffers of one command do not fit, the program gets the driver's error, and the user a reason.
func TestSpillSaysWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	r := run(t, command{args: []string{gpumemtop(), "--headless", "--spill", "--device-memory", "96K", example("spill"), "4", "64K"}})
	if r.code != 1 || !contains(r.stderr, "--spill: clEnqueueNDRangeKernel of mix_in needs 0.1 MiB at once; the card has 0.1 MiB") {
		t.Errorf("%s\n%s", r, r.stderr)
	}
	r = run(t, command{args: []string{gpumemtop(), "--headless", "--spill", "--policy", "slab", example("tiny")}})
	if r.code != 125 || !contains(r.stderr, "--spill works without a pool: leave out --policy and --plan, or give --policy none") {
		t.Errorf("%s\n%s", r, r.stderr)
	}
}

// Nothing of what a program can see changes: handles, queries, references, errors, callbacks.
func TestSpillShowsNothing(t *testing.T) {
	t.Parallel()
	r := run(t, command{args: []string{gpumemtop(), "--headless", "--spill", testProgram("conformance")}}) // it checks itself
	if r.code != 0 {
		t.Errorf("conformance: %s\n%s", r, r.stderr)
	}
	bare := run(t, command{args: []string{testProgram("queries")}})
	r = run(t, command{args: []string{gpumemtop(), "--headless", "--spill", testProgram("queries")}})
	if r.code != 0 || bare.code != 0 || !bytes.Equal(r.stdout, bare.stdout) {
		t.Errorf("queries: %s, %d bytes instead of %d\n%s", r, len(r.stdout), len(bare.stdout), r.stderr)
	}
}
