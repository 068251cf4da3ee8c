package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
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
		{fault("findings"), "nearly-reads", "130K"},
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
	if !contains(r.stderr, "full: 64.0 KiB of 96.0 KiB are reserved, 960.0 KiB are spilled to the host") {
		t.Errorf("the verdict does not tell the device from the host:\n%s", r.stderr)
	}
	for _, policy := range []string{"slab", "futhark"} { // also the default, where it is asked for
		r = run(t, command{args: []string{gpumemtop(), "--headless", "--spill", "--policy", policy, example("tiny")}})
		if r.code != 125 || !contains(r.stderr, "--spill works without a pool: leave out --policy and --plan, or give --policy none") {
			t.Errorf("%s\n%s", r, r.stderr)
		}
	}
}

// What moved is in the summary, and the same in the report of a recording.
func TestSpillFigures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	retry(t, func() string {
		r := run(t, command{args: []string{
			gpumemtop(), "record", "-f", "--spill", "--device-memory", "256K", "-o", dir + "/x.gmt", "--summary", dir + "/x.json", "--",
			example("spill"), "40", "64K",
		}})
		if r.code != 0 || !contains(r.stderr, "thrashing at spill.c:") || !contains(r.stderr, "takes 1.00 MiB; the device held") {
			return fmt.Sprintf("%s\n%s", r, r.stderr)
		}
		return ""
	})
	var live, recorded struct{ Spill *stats.Spill }
	text, err := os.ReadFile(dir + "/x.json")
	if err == nil {
		err = json.Unmarshal(text, &live)
	}
	if err != nil {
		t.Fatal(err)
	}
	report := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", dir + "/x.gmt"}})
	if err := json.Unmarshal(report.stdout, &recorded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(live.Spill, recorded.Spill); diff != "" {
		t.Errorf("the report differs: %s", diff)
	}
	s := live.Spill
	if s.Resident != 0 || s.PeakResident != 4*64<<10 || s.PeakSpilled < 12*64<<10 || s.In.Bytes != s.In.Times*64<<10 || s.In.Times < 40 ||
		s.Out.Times < s.In.Times || s.Stalls.NS < s.In.NS+s.Out.NS || s.Needed != 2*64<<10 || len(s.Sites) != 1 {
		t.Errorf("figures: %+v", s)
	}
}

// A program that takes its buffers in turn is the worst for what leaves least recently used first: half of the memory moves
// each buffer at each turn. What moves is near the best for that order of uses, which knows the future.
func TestSpillMovesLittle(t *testing.T) {
	t.Parallel()
	file, sum := t.TempDir()+"/x.gmt", t.TempDir()+"/x.json"
	words := []string{example("spill"), "1024", "16K", "cycle"}
	bare := run(t, command{args: words})
	r := run(t, command{args: append([]string{gpumemtop(), "record", "--spill", "--device-memory", "128K", "-o", file, "--summary", sum, "--"}, words...)})
	if r.code != 0 || !bytes.Equal(r.stdout, bare.stdout) {
		t.Fatalf("%s\n%s", r, r.stderr)
	}
	var live struct{ Spill *stats.Spill }
	text, err := os.ReadFile(sum)
	if err == nil {
		err = json.Unmarshal(text, &live)
	}
	if err != nil {
		t.Fatal(err)
	}
	var fit struct {
		Recordings []struct {
			Peak, Least uint64
			Estimates   []struct {
				Memory, In uint64
				Best       struct{ Out, In uint64 }
			}
		}
	}
	r = run(t, command{args: []string{gpumemtop(), "fit", "--spill", "--format", "json", file}})
	if err := json.Unmarshal(r.stdout, &fit); err != nil {
		t.Fatalf("%s: %v\n%s", r, err, r.stderr)
	}
	f := fit.Recordings[0]
	if f.Peak != 256<<10 || f.Least != 32<<10 || len(f.Estimates) != 3 || f.Estimates[2].Memory != 128<<10 {
		t.Fatalf("%+v", f)
	}
	moved, best, oldest := live.Spill.In.Bytes+live.Spill.Out.Bytes, f.Estimates[2].Best.In+f.Estimates[2].Best.Out, f.Estimates[2].In
	t.Logf("%d bytes moved, the best is %d", moved, best)
	if moved > best+best/10 || best > 2*oldest*7/10 {
		t.Errorf("%d bytes moved, the best is %d, and %d come back with the oldest leaving", moved, best, oldest)
	}
}

// Nothing of what a program can see changes: queries and errors here; all of the rest when the drivers are tested.
func TestSpillShowsNothing(t *testing.T) {
	t.Parallel()
	bare := run(t, command{args: []string{testProgram("queries")}})
	r := run(t, command{args: []string{gpumemtop(), "--headless", "--spill", testProgram("queries")}})
	lists := regexp.MustCompile(`(?m)^.*_EXTENSIONS.*$`) // except what is taken out of them
	r.stdout, bare.stdout = lists.ReplaceAll(r.stdout, nil), lists.ReplaceAll(bare.stdout, nil)
	if r.code != 0 || bare.code != 0 || !bytes.Equal(r.stdout, bare.stdout) {
		t.Errorf("queries: %s, %d bytes instead of %d\n%s", r, len(r.stdout), len(bare.stdout), r.stderr)
	}
}

// What --spill does not serve is in no list of extensions; a program that believes the lists does not crash.
func TestSpillListsWhatItServes(t *testing.T) {
	t.Parallel()
	for _, d := range []driver{pocl, rusticl} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := command{args: []string{fault("extensions")}, env: d.environment(t)}
			bare := run(t, c)
			c.args = slices.Concat([]string{gpumemtop(), "--headless", "--spill", "--"}, c.args)
			r := run(t, c)
			if r.code != 0 || bare.code != 0 {
				t.Fatalf("%s, bare %s\n%s%s", r, bare, r.stdout, r.stderr)
			}
			kept := regexp.MustCompile(` ?cl_(khr_command_buffer|pocl_content_size)\S*|(?m)^a command buffer\n`)
			spaces := regexp.MustCompile(` +(\n| )`)
			want := spaces.ReplaceAll(kept.ReplaceAll(bare.stdout, nil), []byte("$1"))
			if got := spaces.ReplaceAll(r.stdout, []byte("$1")); !bytes.Equal(got, want) {
				t.Errorf("%s\nwant\n%s", got, want)
			}
		})
	}
}

// PoCL 3.1 crashes at times when a program has released sub-devices. It did so 39 times of 40 when a marker of ours still was on them.
func TestSpillLeavesSubDevicesAlone(t *testing.T) {
	t.Parallel()
	const runs = 4
	words, crashes := []string{fault("subdevices"), "64", "20"}, func(args ...string) (n int) {
		for range runs {
			if r := run(t, command{args: args, env: pocl.environment(t)}); r.code != 0 {
				n++
			}
		}
		return n
	}
	if here := crashes(slices.Concat([]string{gpumemtop(), "--headless", "--spill", "--"}, words)...); here > runs/2 {
		if bare := crashes(words...); here > bare+runs/2 {
			t.Errorf("%d of %d runs failed, %d bare", here, runs, bare)
		}
	}
}

// Handles, references and callbacks, too. It takes long.
func TestSpillConforms(t *testing.T) {
	if !*driversAll {
		t.Skip("make test-drivers runs it")
	}
	t.Parallel()
	r := run(t, command{args: []string{gpumemtop(), "--headless", "--spill", testProgram("conformance")}}) // it checks itself
	if r.code != 0 {
		t.Errorf("conformance: %s\n%s", r, r.stderr)
	}
}
