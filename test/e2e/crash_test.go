package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The moments of each kind of death: 60 in all, and 200 with make test-drivers.
const (
	deathsOfPrograms = 24
	deathsOfOurs     = 24
	fullDisks        = 16 // two of each size
	// deathWithin is the time in which a death comes: it covers the start, the first frames, and steady recording.
	deathWithin = 400 * time.Millisecond
	// Steps that last longer than that, and those whose recording is about as large as the largest disk.
	manySteps = "100000000"
	diskSteps = "30000"
)

// holding is what a recording holds of a program of steps.
type holding struct {
	events   uint64
	creates  uint64
	damage   string
	digest   uint64 // of the events, in order
	complete bool   // there is a footer
}

// readRecording reads what is there; only the first events of it, if most is not 0. A file that is no recording yet
// holds nothing.
func readRecording(t *testing.T, file string, most uint64) holding {
	t.Helper()
	reader, err := recording.Open(file)
	if errors.Is(err, recording.ErrNotRecording) || errors.Is(err, os.ErrNotExist) {
		return holding{damage: err.Error()}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}()
	var got holding
	var r wire.Record
	for most == 0 || got.events < most {
		err := reader.Next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got.events++
		if r.Kind == wire.KindCreate {
			got.creates++
		}
		got.digest = got.digest*1099511628211 + (r.Time ^ r.Object<<20 ^ uint64(r.Kind))
	}
	got.damage = reader.Damage()
	_, got.complete = reader.Footer()
	return got
}

// stepsTaken is what a program of steps says that it has done.
func stepsTaken(t *testing.T, file string) uint64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	line, _, whole := strings.Cut(string(text), "\n")
	if !whole {
		return 0 // it had not come to its first step
	}
	steps, err := strconv.ParseUint(line, 10, 64)
	if err != nil {
		t.Fatalf("the program counts %q: %v", text, err)
	}
	return steps
}

// thorough is a number of moments: more with make test-drivers.
func thorough(n int) int {
	if *driversAll {
		return n * 10 / 3
	}
	return n
}

// moments runs a test at a number of moments of a recording's life, two at a time.
func moments(t *testing.T, n int, try func(t *testing.T, moment time.Duration)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), 17))
	for i := range thorough(n) {
		moment := time.Duration(rng.Int64N(int64(deathWithin)))
		t.Run(fmt.Sprintf("%03d-%v", i, moment.Round(time.Millisecond)), func(t *testing.T) {
			t.Parallel()
			try(t, moment)
		})
	}
}

// A program that is killed at any moment leaves a whole recording of everything that it did before.
func TestProgramKilledAtAnyMoment(t *testing.T) {
	moments(t, deathsOfPrograms, func(t *testing.T, moment time.Duration) {
		dir := t.TempDir()
		file, steps := filepath.Join(dir, "x.gmt"), filepath.Join(dir, "steps")
		p := start(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", fault("steps"), steps, manySteps, "4K"}})
		target := awaitDescendant(t, p.cmd.Process.Pid, "steps")
		time.Sleep(moment) // the moment is the test's subject, not what it waits for
		if err := syscall.Kill(target, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if result := p.wait(); result.signal != syscall.SIGKILL {
			t.Errorf("ended with %s, the program was killed\n%s", result, result.stderr)
		}
		got, done := readRecording(t, file, 0), stepsTaken(t, steps)
		if got.damage != "" || !got.complete {
			t.Errorf("the recording is not whole: %q", got.damage)
		}
		if got.creates < done {
			t.Errorf("%d steps were taken, %d are recorded", done, got.creates)
		}
	})
}

// What memory looked like when a program was killed is known of the time of its last record: the session notices the end later.
func TestKilledIsSeenAtTheLastRecord(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"killed": true, "aborted": false} {
		file := filepath.Join(t.TempDir(), "x.gmt")
		run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", fault("shortage"), name}, env: pocl.environment(t)})
		var began, last, over uint64
		for line := range strings.Lines(readFile(t, exportAs(t, file, "ndjson"))) {
			var e struct {
				Header struct {
					Clock uint64 `json:"clock_ns"`
				}
				Time, Thread uint64
				Kind         string
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if began = max(began, e.Header.Clock); e.Thread > 0 {
				last = max(last, e.Time)
			} else if e.Kind == "exit" {
				over = e.Time
			}
		}
		var found struct {
			Failures []struct{ Seconds float64 } `json:"out_of_memory"`
		}
		readJSON(t, tool(t, "report", "--format", "json", file), &found)
		if got := found.Failures; over <= last || killed != (len(got) == 1) || killed && math.Abs(got[0].Seconds*1e9-float64(last-began)) > 1e3 {
			t.Errorf("%s: %+v, the last record came after %d ns, the exit after %d", name, got, last-began, over-began)
		}
		text := string(run(t, command{args: []string{gpumemtop(), "report", file}}).stdout)
		if strings.Contains(text, "after the start or later") != killed || strings.Contains(text, "at least") != killed {
			t.Error(text)
		}
	}
}

// When gpumemtop is killed at any moment, what had reached the file stays, and all of it can be read.
func TestGpumemtopKilledAtAnyMoment(t *testing.T) {
	moments(t, deathsOfOurs, func(t *testing.T, moment time.Duration) {
		dir := t.TempDir()
		file, steps := filepath.Join(dir, "x.gmt"), filepath.Join(dir, "steps")
		p := start(t, command{args: []string{gpumemtop(), "record", "-o", file, "--", fault("steps"), steps, manySteps, "4K"}})
		target := awaitDescendant(t, p.cmd.Process.Pid, "steps")
		time.Sleep(moment)
		before := readRecording(t, file, 0)
		if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		alone := stepsTaken(t, steps)
		waitFor(t, "the program to go on alone", func() bool { return stepsTaken(t, steps) > alone })
		if err := syscall.Kill(target, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.wait() // the program had its streams
		after := readRecording(t, file, 0)
		if after.events < before.events || after.complete || after.damage == "" {
			t.Errorf("%d events were there, now %d; complete %v, damage %q", before.events, after.events, after.complete, after.damage)
		}
		if first := readRecording(t, file, before.events); before.events > 0 && first.digest != before.digest {
			t.Error("events that were there before are others now")
		}
	})
}

// onSmallDisk runs a recording on a file system of a size in KiB, in a mount namespace of its own, and takes the file out
// before that ends.
const onSmallDisk = `mount -t tmpfs -o size="$1"k none "$2" || exit 99
shift 2
out=$1 file=$2
shift 2
"$@"
status=$?
cp "$file" "$out" || exit 98
exit $status`

// A recording on a disk that fills up ends there, whole, and the program does not notice.
func TestDiskFullAtAnyMoment(t *testing.T) {
	namespace := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		namespace = append(namespace, "--map-root-user")
	}
	rng := rand.New(rand.NewPCG(23, 42))
	var cut, whole atomic.Int32
	t.Cleanup(func() {
		if cut.Load() == 0 || whole.Load() == 0 {
			t.Errorf("%d recordings were cut by a full disk, %d had room: choose other sizes", cut.Load(), whole.Load())
		}
	})
	for i := range thorough(fullDisks) {
		kib := 4 * (1 + rng.IntN(1<<(i%8))) // from 4 KiB to 256 KiB
		if i%8 == 7 {
			kib = 16 << 10 // more than is recorded, however fast the machine is
		}
		t.Run(fmt.Sprintf("%03d-%dKiB", i, kib), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			disk, out, steps := filepath.Join(dir, "disk"), filepath.Join(dir, "x.gmt"), filepath.Join(dir, "steps")
			if err := os.Mkdir(disk, 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(disk, "x.gmt")
			args := append(namespace, "sh", "-c", onSmallDisk, "sh", strconv.Itoa(kib), disk, out, file,
				gpumemtop(), "record", "-o", file, "--", fault("steps"), steps, "100000", "4K")
			result := run(t, command{args: args})
			full := contains(result.stderr, "no space left on device")
			got := readRecording(t, out, 0)
			switch {
			case full && strings.Contains(got.damage, recording.ErrNotRecording.Error()) && result.code == 125:
				return // not even the header had room: nothing was started
			case result.code != 0 || !contains(result.stdout, "steps: checksum"):
				t.Errorf("ended with %s: %q\n%s", result, result.stdout, result.stderr)
			case full == got.complete:
				t.Errorf("full: %v, the recording is complete: %v (%q)\n%s", full, got.complete, got.damage, result.stderr)
			case !full && got.creates < 30000:
				t.Errorf("%d creates in a whole recording", got.creates)
			case full && strings.Contains(got.damage, "cut off"):
				t.Errorf("half a frame was left: %s", got.damage)
			case full:
				cut.Add(1)
			default:
				whole.Add(1)
			}
		})
	}
}
