package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tooLongTwice are the longest measurements: the shorter ones show the same here.
var tooLongTwice = []string{"clpeak memory", "clblast", "handler, early"}

// racing are the programs whose own threads race for the order of calls, and with it for the numbers of objects and for
// how much is there at once: the events themselves are the same each time, and compared without those.
var racing = []string{
	"threads", "churn", "spawner", "conformance", "soak", "queries", "ffmpeg blur", "ffmpeg means", "hashcat",
}

// rushing are the programs that create so fast that stacks may find no room in the kernel's ring on a machine with much
// else to do: then only the caller is recorded.
var rushing = []string{"threads", "churn", "handler, late"}

// deep are the programs whose call stacks go through more libraries than stacks have frames: the library follows these farther.
var deep = []string{"ffmpeg blur", "ffmpeg means"}

// thoroughPrograms are the examples that other tests run in ways of their own: those that make every call there is, and
// those that end, write or wait in unusual ways.
func thoroughPrograms(t *testing.T) []program {
	t.Helper()
	return []program{
		{name: "cmdbuf", args: []string{fault("cmdbuf"), "8", "64K"}},
		{name: "crash", args: []string{fault("crash")}},
		{name: "hungry", args: []string{fault("hungry"), "4", "1M"}},
		{name: "keeper", args: []string{fault("keeper"), "4", "4K"}},
		{name: "noisy", args: []string{fault("noisy")}},
		{name: "quitter", args: []string{fault("quitter")}},
		{name: "spawner", args: []string{fault("spawner"), "20", "10", "4K"}},
		{name: "steps", args: []string{fault("steps"), filepath.Join(t.TempDir(), "steps"), "200", "4K"}},
		{name: "stubborn", args: []string{fault("stubborn"), "5"}},
		{name: "temporaries", args: []string{fault("temporaries"), "1M", "1"}},
		{name: "conformance", args: []string{testProgram("conformance")}},
		{name: "queries", args: []string{testProgram("queries")}},
		{name: "soak", args: []string{testProgram("soak"), "--threads", "1", "4"}},
	}
}

// elsewhere are the examples that are watched in tests of their own.
var elsewhere = []string{"accumulate", "asker", "barred", "beyond", "closer", "eager", "exiter", "extensions", "filtered", "findings", "forker", "generated", "growth", "mapped", "mistakes", "objects", "outgrows", "overtaken", "paced", "photos", "platforms", "ranks", "reader", "refusals", "shortage", "sites", "squeezed", "stale", "steered", "subdevices", "untimed", "waits"}

func TestEveryExampleIsCompared(t *testing.T) {
	compared := slices.Clone(elsewhere)
	for _, program := range append(examplePrograms(), thoroughPrograms(t)...) {
		compared = append(compared, filepath.Base(program.args[0]))
	}
	for _, pattern := range []string{example("*"), testProgram("*"), fault("*")} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %q, %v", pattern, files, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), "-buffers") // the same calls, but those of images
			if name != "faults" && !slices.Contains(compared, name) {
				t.Errorf("no recording of %s is compared with that of the library", name)
			}
		}
	}
}

// A program that is watched through the kernel gives the recording that it gives with the library in it: the same events
// with the same sizes, flags, results, call stacks and objects, in the same order, and so the same report.
func TestAttachedRecordingIsThatOfTheLibrary(t *testing.T) {
	for i, program := range slices.Concat(debianPrograms(), examplePrograms(), thoroughPrograms(t)) {
		if program.name == "forker" || slices.Contains(tooLongTwice, program.name) {
			continue // forker has a test of its own
		}
		t.Run(program.name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(program.args[0])
			if err != nil {
				t.Fatalf("%v: make test-deps installs it", err)
			}
			// No other program has this name.
			if name := "e2e" + itoa(i) + filepath.Base(path); program.name == "hashcat" { // which looks for its files where it lies
				program.args[0] = filepath.Join(t.TempDir(), own(name))
				if err := os.Symlink(path, program.args[0]); err != nil {
					t.Fatal(err)
				}
			} else {
				program.args[0] = called(t, path, name)
			}
			var flags []string
			if slices.Contains(rushing, program.name) {
				flags = []string{"--tags", "caller"}
			}
			if slices.Contains(deep, program.name) {
				flags = []string{"--stack-depth", "24"}
			}
			inside, outside := recordedTwice(t, &program, flags...)
			racy := slices.Contains(racing, program.name)
			want, got := inside.story, outside.story
			if program.name == "queries" { // wrong in every way, some of them unreported
				want.withoutStatuses()
				got.withoutStatuses()
			}
			if len(want.processes) == 0 != program.unseen {
				t.Fatalf("%d processes with the library in them", len(want.processes))
			}
			compareStories(t, want, got, racy)
			if program.unseen {
				return // inside, gpumemtop knows how it ended; from outside it does not know of it
			}
			if diff := cmp.Diff(figuresFrom(t, inside.report, racy), figuresFrom(t, outside.report, racy)); diff != "" {
				t.Errorf("the report (-library +attach):\n%s", diff)
			}
		})
	}
}

// witness is what a recording says: asked once, because exports and reports are most of what comparing costs.
type witness struct {
	file   string
	text   []byte // its export as lines of JSON
	report []byte // as JSON
	story  *story
	lost   uint64 // events that the recording says that it lacks
}

// hasOtherStacksOnly reports whether all but stacks is as another recording says. The numbers of objects follow from stacks.
func (w *witness) hasOtherStacksOnly(t *testing.T, other *witness) bool {
	t.Helper()
	if cmp.Equal(w.story, other.story, cmp.AllowUnexported(story{})) {
		return false
	}
	return onlyStacksDiffer(storyIn(t, w.text, true), storyIn(t, other.text, true))
}

func hear(t *testing.T, file string, racy bool) *witness {
	t.Helper()
	text := textOf(t, file)
	return &witness{file: file, text: text, report: jsonReport(t, file), story: storyIn(t, text, racy), lost: lostIn(t, text)}
}

// recordedTwice records a program with the library in it, and no pool, and from outside: again if it ended before anyone
// could look at its files, as one of a tenth of a second may on a busy machine (docs/MANUAL.md), so that no call site has a
// name or stacks are cut; and if calls came faster than they could be recorded, which the recording reports. Then the program gives way to
// gpumemtop.
func recordedTwice(t *testing.T, p *program, flags ...string) (inside, outside *witness) {
	t.Helper()
	const tries = 5
	racy := slices.Contains(racing, p.name)
	for n := range tries {
		first, second := recordedOnce(t, p, n > 0, flags...)
		inside, outside = hear(t, first, racy), hear(t, second, racy)
		a, b := figuresFrom(t, inside.report, false), figuresFrom(t, outside.report, false)
		nameless := slices.ContainsFunc(b.Tags, func(tag tagFigures) bool { return strings.HasPrefix(tag.Tag, "+0x") })
		if t.Failed() || !nameless && outside.lost == 0 && !onlyNamesDiffer(a, b) && !inside.hasOtherStacksOnly(t, outside) {
			break
		}
	}
	return inside, outside
}

// onlyNamesDiffer reports whether two reports are the same except for what they say of call sites.
func onlyNamesDiffer(a, b reportFigures) bool {
	if cmp.Equal(a, b) {
		return false
	}
	for _, f := range []*reportFigures{&a, &b} {
		f.Tags, f.AtPeak.Tags, f.Findings, f.Leaks = nil, nil, nil, nil
	}
	return cmp.Equal(a, b)
}

// lostIn returns how many events a recording says that it lacks, from its export as lines of JSON.
func lostIn(t *testing.T, text []byte) uint64 {
	t.Helper()
	text = bytes.TrimSpace(text)
	var last struct{ Footer struct{ Lost uint64 } }
	if err := json.Unmarshal(text[bytes.LastIndexByte(text, '\n')+1:], &last); err != nil {
		t.Fatal(err)
	}
	return last.Footer.Lost
}

// recordedOnce records both. yielding: the program runs when nothing else does.
func recordedOnce(t *testing.T, p *program, yielding bool, flags ...string) (inside, outside string) {
	t.Helper()
	if name := filepath.Base(p.args[0]); name != own(name) {
		p.args[0] = called(t, p.args[0], name)
	}
	inside = filepath.Join(t.TempDir(), "inside.gmt")
	args := slices.Concat([]string{gpumemtop(), "record", "--policy", "none", "-o", inside}, flags, []string{"--"}, p.args)
	bare := run(t, command{args: args, env: p.env})
	w := attach(t, append(flags, "--comm", filepath.Base(p.args[0]))...)
	args = p.args
	if yielding {
		args = slices.Concat([]string{"nice", "-n", "19"}, args)
	}
	result := run(t, command{args: args, env: p.env})
	w.leave()
	if !bare.sameEnd(result) || !p.sameOutput(bare.stdout, result.stdout) {
		t.Errorf("watched: %s with %q\nelse %s with %q\n%s", result, result.stdout, bare, bare.stdout, bare.stderr)
	}
	return inside, w.file
}

// Attach finds the mistakes that a program makes, except those that only a pool can notice. Each is
// what the library says of it, where a driver that is used wrongly survives it.
func TestAttachedMistakes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"unknown-release", "wrong-context", "still-mapped", "leak"} {
		t.Run(kind, func(t *testing.T) {
			p := program{name: kind, args: []string{fault("mistakes"), kind, "2"}}
			inside, outside := recordedTwice(t, &p)
			if kind == "unknown-release" {
				// From outside, what no create returned was there before.
				if got := figuresFrom(t, outside.report, false); len(got.Findings) != 0 {
					t.Errorf("findings %+v", got.Findings)
				}
				return
			}
			compareStories(t, inside.story, outside.story, false)
			want, got := figuresFrom(t, inside.report, false), figuresFrom(t, outside.report, false)
			if diff := cmp.Diff(want, got); diff != "" || len(want.Findings)+len(want.Leaks) == 0 {
				t.Errorf("(-library +attach):\n%s\n%+v", diff, want)
			}
		})
	}
}

// forker is watched from outside in all of its four processes, also in the child that the library leaves alone because
// it was forked after the first OpenCL call, and which it reports instead.
func TestAttachedForker(t *testing.T) {
	t.Parallel()
	p := program{name: "forker", args: []string{fault("forker"), "20", "64K"}}
	inside, outside := recordedTwice(t, &p)
	// The late child ends with its one create, often before gpumemtop can read it: its parent identifies it.
	if counts := creates(reportOf(t, outside.file).Processes); !slices.Equal(counts, []uint64{1, 20, 20, 41}) {
		t.Errorf("processes created %v, want 1, 20, 20 and 41", counts)
	}
	want, got := inside.story, outside.story
	for _, process := range want.processes {
		events := slices.DeleteFunc(want.events[process], func(line string) bool {
			return strings.HasPrefix(line, "diag forked") || strings.HasPrefix(line, "diag use after fork")
		})
		found := slices.ContainsFunc(got.processes, func(n uint64) bool { return slices.Equal(got.events[n], events) })
		if !found {
			t.Errorf("attach recorded no process that did what process %d did, in %d events", process, len(events))
		}
	}
}

// Ranks of an MPI run are processes of one name at the same time, which mpirun starts.
func TestAttachedToRanks(t *testing.T) {
	t.Parallel()
	const ranks, steps = 4, 25
	c := mpi(t, ranks, itoa(steps), "64K")
	c.args[slices.Index(c.args, testProgram("ranks"))] = called(t, testProgram("ranks"), "e2eranks")
	w := attach(t, "--comm", "e2eranks")
	ends(t, start(t, c))
	w.leave()
	processes := reportOf(t, w.file).Processes
	if len(processes) != ranks {
		t.Errorf("%d processes, want %d", len(processes), ranks)
	}
	for _, p := range processes {
		if p.Creates != 2*steps || p.InUse != 0 || p.PeakInUse != 128<<10 {
			t.Errorf("a rank's figures are %+v, want %d creates, none in use, 128K at the peak", p, 2*steps)
		}
	}
}
