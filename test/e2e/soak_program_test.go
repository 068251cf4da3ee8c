package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// soak is one random program: what its command line says.
type soak struct {
	seed, threads, queues, ops uint64
	skip                       []uint64 // operations left out, ascending
	plain                      bool     // the build without images
	driver                     *driver  // nil: PoCL
}

// soakOf chooses the shape of a seed's program.
func soakOf(seed uint64) soak {
	return soak{seed: seed, threads: 1 + seed%3, queues: 1 + seed/3%3, ops: 60 + seed/9%3*70}
}

// on is the same program on a driver, as far as that can run it.
func (s soak) on(d *driver) soak {
	s.driver = d
	if d.oneThread {
		s.threads = 1
	}
	return s
}

func (s soak) args() []string {
	program := "soak"
	if s.plain {
		program = withoutImages(program)
	}
	args := []string{
		testProgram(program), "--threads", fmt.Sprint(s.threads), "--queues", fmt.Sprint(s.queues), "--ops", fmt.Sprint(s.ops),
	}
	if s.driver != nil {
		args = append(args, s.driver.soak...)
	}
	if len(s.skip) > 0 {
		args = append(args, "--skip", ranges(s.skip))
	}
	return append(args, fmt.Sprint(s.seed))
}

// command runs it.
func (s soak) command(t *testing.T) command {
	t.Helper()
	c := command{args: s.args()}
	if s.driver != nil {
		c.env = s.driver.environment(t)
	}
	return c
}

// all are the numbers of the operations that are not left out.
func (s soak) all() []uint64 {
	var numbers []uint64
	for i := range s.ops * s.threads {
		if _, out := slices.BinarySearch(s.skip, i); !out {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// only is the same program with just these operations.
func (s soak) only(keep []uint64) soak {
	s.skip = nil
	for i := range s.ops * s.threads {
		if !slices.Contains(keep, i) {
			s.skip = append(s.skip, i)
		}
	}
	return s
}

// line is the program as a line of testdata/soak.txt.
func (s soak) line(way string) string {
	skip := "-"
	if len(s.skip) > 0 {
		skip = ranges(s.skip)
	}
	return fmt.Sprintf("%d %d %d %d %s %s", s.seed, s.threads, s.queues, s.ops, skip, way)
}

// parseSoak reads such a line.
func parseSoak(line string) (s soak, way served, err error) {
	var skip string
	if n, err := fmt.Sscanf(line, "%d %d %d %d %s %s", &s.seed, &s.threads, &s.queues, &s.ops, &skip, &way.policy); err != nil {
		return s, way, fmt.Errorf("%q: only %d of seed, threads, queues, ops, skip, policy: %w", line, n, err)
	}
	way.flags = strings.Fields(line)[6:]
	s.plain = way.carves()
	if skip == "-" {
		return s, way, nil
	}
	for part := range strings.SplitSeq(skip, ",") {
		var first, last uint64
		if _, err := fmt.Sscanf(part, "%d-%d", &first, &last); err != nil {
			if _, err := fmt.Sscanf(part, "%d", &first); err != nil {
				return s, way, fmt.Errorf("%q: what is left out: %w", line, err)
			}
			last = first
		}
		for i := first; i <= last; i++ {
			s.skip = append(s.skip, i)
		}
	}
	return s, way, nil
}

// ranges writes ascending numbers as 3,17,20-40.
func ranges(numbers []uint64) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// shrink leaves out whatever is not needed for fails to stay true of what is kept: halves first, then ever smaller
// pieces, down to single numbers, until none can go (delta debugging) or the time is over.
func shrink(keep []uint64, deadline time.Time, fails func(keep []uint64) bool) []uint64 {
	for size := max(1, len(keep)/2); ; {
		removed := false
		for at := 0; at < len(keep) && len(keep) > 1 && time.Now().Before(deadline); {
			rest := slices.Concat(keep[:at], keep[min(at+size, len(keep)):])
			if len(rest) > 0 && fails(rest) {
				keep, removed = rest, true
			} else {
				at += size
			}
		}
		if size == 1 && !removed || time.Now().After(deadline) {
			return keep
		}
		size = max(1, min(size/2, len(keep)/2))
	}
}

func TestShrinkFindsWhatIsNeeded(t *testing.T) {
	for _, needed := range [][]uint64{{0}, {99}, {3, 17}, {0, 50, 51, 99}, {20, 40, 41, 42, 60, 80}} {
		var all []uint64
		for i := range uint64(100) {
			all = append(all, i)
		}
		asked := 0
		got := shrink(all, time.Now().Add(time.Hour), func(keep []uint64) bool {
			asked++
			for _, n := range needed {
				if !slices.Contains(keep, n) {
					return false
				}
			}
			return true
		})
		if !slices.Equal(got, needed) {
			t.Errorf("shrunk to %v, want %v", got, needed)
		}
		if asked > 20*len(needed)+100 {
			t.Errorf("%v: asked %d times", needed, asked)
		}
	}
}

func TestShrinkGivesUpInTime(t *testing.T) {
	all := []uint64{1, 2, 3}
	got := shrink(all, time.Now().Add(-time.Second), func([]uint64) bool { t.Error("asked after the end"); return true })
	if !slices.Equal(got, all) {
		t.Errorf("%v", got)
	}
}

func TestSoakLinesRoundTrip(t *testing.T) {
	for _, line := range []string{
		"7 2 3 150 - futhark", "18446744073709551615 1 1 10 0,2-4,9 pow2",
		"7 2 3 150 - pow2 --set min_block=64KiB --tags none",
	} {
		s, way, err := parseSoak(line)
		if err != nil || s.line(way.String()) != line {
			t.Errorf("%q came back as %q, %v", line, s.line(way.String()), err)
		}
	}
	for _, line := range []string{"", "1 2 3", "1 2 3 4 x futhark", "1 2 3 4 - "} {
		if _, _, err := parseSoak(line); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

func TestSoakSaysWhatIsWrong(t *testing.T) {
	rows := []struct{ args, want string }{
		{"", "which seed"},
		{"x", "the seed is a number"},
		{"1 2", "one seed"},
		{"--ops 0 1", "--ops wants"},
		{"--threads 17 1", "--threads wants"},
		{"--queues -1 1", "--queues wants"},
		{"--skip 3-2 1", "--skip wants"},
		{"--skip 3, 1", "--skip wants"},
		{"--ops 5 --threads 1 --skip 5 1", "--skip wants"},
		{"--ops", "nothing follows"},
		{"--what 1", "unknown option"},
	}
	for _, row := range rows {
		result := runBare(t, append([]string{testProgram("soak")}, strings.Fields(row.args)...)...)
		if result.code != 1 || !contains(result.stderr, row.want) || len(result.stdout) != 0 {
			t.Errorf("soak %s: %s, %q", row.args, result, result.stderr)
		}
	}
}

// Leaving operations out must leave a valid program; otherwise shrinking finds other faults than the one it was given.
func TestSoakIsValidWithoutAnyOfItsOperations(t *testing.T) {
	t.Parallel()
	s := soakOf(5)
	for _, step := range []uint64{2, 3, 7} {
		var keep []uint64
		for i := uint64(0); i < s.ops*s.threads; i += step {
			keep = append(keep, i)
		}
		result := runBare(t, s.only(keep).args()...)
		if result.code != 0 || !contains(result.stdout, fmt.Sprintf("operations=%d ", len(keep))) {
			t.Errorf("every operation of %d: %s, %s%s", step, result, result.stdout, result.stderr)
		}
	}
	listed := runBare(t, append(s.args(), "--list")...)
	if got := uint64(bytes.Count(listed.stdout, []byte("\n"))); got != s.ops*s.threads {
		t.Errorf("%d operations listed, want %d", got, s.ops*s.threads)
	}
}
