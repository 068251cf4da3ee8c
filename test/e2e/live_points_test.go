package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// slowNS is for how long a program is made to run, from its first create to its last release.
const slowNS = 60_000_000_000

// Each point of the dashboard's list has a program that it is about, and one that nearly is. They run for a moment: the
// list judges them as if they took a minute.
func TestLivePointsHavePrograms(t *testing.T) {
	t.Parallel()
	for _, j := range []judged{
		{title: "memory grows", policy: "futhark", words: []string{fault("findings"), "grow"}},
		{title: "never released", policy: "futhark", words: []string{fault("findings"), "grow"}},
		{title: "map without unmap", policy: "futhark", words: []string{fault("findings"), "maps"}},
		{title: "device memory is nearly full", policy: "futhark", flags: []string{"--device-memory", "16M"}, words: []string{fault("findings"), "fill"}},
		{title: "blocks are much larger than requested", policy: "pow2", flags: []string{"--device-memory", "512M"}, words: []string{fault("findings"), "waste"}},
		{
			title: "max_cached_bytes bites", policy: "futhark", flags: []string{"--set", "max_cached_bytes=1M"}, words: []string{fault("findings"), "loop"},
		},
		{title: "failed (-4)", policy: "futhark", flags: []string{"--device-memory", "16M"}, words: []string{fault("shortage"), "full"}, nearly: []string{fault("shortage"), "nearly"}},
		{title: "calls refused", policy: "futhark", words: []string{fault("refusals")}, nearly: []string{fault("refusals"), "nearly"}},
		{title: "SIGKILL ended process", policy: "futhark", words: []string{fault("shortage"), "killed"}, nearly: []string{fault("shortage"), "aborted"}},
		{title: "the pool keeps memory", policy: "futhark", flags: []string{"--device-memory", "64M"}, words: []string{fault("findings"), "vain"}},
	} {
		t.Run(j.title, func(t *testing.T) {
			t.Parallel()
			if j.nearly == nil {
				j.nearly = []string{j.words[0], "nearly-" + j.words[1]}
			}
			for i, words := range [][]string{j.words, j.nearly} {
				retry(t, func() string {
					titles := j.points(t, words)
					if found := strings.Contains(titles, j.title); found != (i == 0) {
						return fmt.Sprintf("%v: found %v among\n%s", words[1:], found, titles)
					}
					return ""
				})
			}
		})
	}
}

// TestMemoryBesideBuffers: without a recording no command is an event, and what a driver holds shows in what the machine reports alone.
func TestMemoryBesideBuffers(t *testing.T) {
	t.Parallel()
	const title = "memory grew beside the buffers"
	for _, name := range []string{"piles", "nearly-piles"} {
		term := openTerminal(t, 120, 36)
		term.run(t.TempDir(), gpumemtop(), "--policy", "none", fault("findings"), name)
		term.await(`[✓✗] EXITED`)
		if name == "piles" {
			term.await(title)
			term.await(`in flight not known without -o`)
		} else if strings.Contains(term.screen(), title) {
			t.Errorf("a false alarm:\n%s", term.screen())
		}
		term.leave()
	}
}

// points records a program and returns the titles that the list had at any time.
func (j *judged) points(t *testing.T, words []string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	run(t, command{args: append(append([]string{gpumemtop(), "record", "-o", file, "--policy", j.policy}, j.flags...), words...)})
	return livePoints(t, file, slowed)
}

// livePoints returns the titles that the list had at any time of a recording, when it is looked at in a way.
func livePoints(t *testing.T, file string, play func(*testing.T, *recording.Reader, func(*stats.Snapshot))) string {
	t.Helper()
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // only read
	titles := map[string]bool{}
	live := analysis.Live{}
	play(t, reader, func(s *stats.Snapshot) {
		live.Update(s)
		for i := range live.Points {
			titles[live.Points[i].Title] = true
		}
	})
	var list []string
	for title := range titles {
		list = append(list, title)
	}
	return strings.Join(list, "\n")
}

// asItWas looks at a recording each second.
func asItWas(t *testing.T, reader *recording.Reader, look func(*stats.Snapshot)) {
	t.Helper()
	list, header := records.ReadAll(t, reader), reader.Header()
	due := list[0].Time
	m := stats.New(stats.Options{Policy: header.Policy, Limits: stats.PolicyLimits(header.Policy, header.Limits), Started: due})
	for i := range list {
		for ; due < list[i].Time; due += 1e9 {
			m.AdvanceTime(due)
			look(m.PublishSnapshot())
		}
		m.Apply(&list[i])
	}
}

// slowed looks at a recording whose program is made to take its time, evenly, whatever else the machine did: each second, and before
// each release.
func slowed(t *testing.T, reader *recording.Reader, look func(*stats.Snapshot)) {
	t.Helper()
	list := records.ReadAll(t, reader)
	first, last := len(list), 0 // create, and create or release
	for i := range list {
		switch list[i].Kind {
		case wire.KindCreate:
			first, last = min(first, i), i
		case wire.KindRelease:
			last = i
		}
	}
	header := reader.Header()
	m := stats.New(stats.Options{Policy: header.Policy, Limits: stats.PolicyLimits(header.Policy, header.Limits), Started: 1})
	slow := uint64(slowNS / max(last-first, 1))
	due := uint64(0)
	for i := range list {
		r := &list[i]
		r.Time = 1 + uint64(max(i, first)-first)*slow
		for ; due < r.Time && due < 2*slowNS; due += 1e9 {
			m.AdvanceTime(due)
			look(m.PublishSnapshot())
		}
		if r.Kind == wire.KindRelease {
			look(m.PublishSnapshot())
		}
		m.Apply(r)
	}
	look(m.PublishSnapshot())
}
