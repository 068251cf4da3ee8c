package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// outgrown is what a recording of outgrows shows.
type outgrown struct {
	hits, misses uint64
	peak         uint64 // bytes, of blocks that the driver had given out
	evicted      map[wire.Evict]int
	old          int // blocks that had gone for their age before the program's last miss
}

// outgrows records the program, and checks that a replay decides as the run did.
func outgrows(t *testing.T, args string, flags ...string) outgrown {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	program := append([]string{testProgram("outgrows")}, strings.Fields(args)...)
	bare := run(t, command{args: program})
	result := run(t, command{args: append(append([]string{gpumemtop(), "record", "-o", file}, flags...), append([]string{"--"}, program...)...)})
	if text := differs(bare, result); text != "" {
		t.Fatal(text)
	}
	if c := decidedAgain(t, file); !c.IsExact() || c.First != "" || c.Requests == 0 {
		t.Errorf("replay: %+v", *c)
	}
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	o := outgrown{evicted: map[wire.Evict]int{}}
	held := uint64(0)
	for r, err := range recording.Records(reader) {
		switch {
		case err != nil:
			t.Fatal(err)
		case r.Kind == wire.KindEvict:
			o.evicted[r.AsEvict().Reason()]++
			held -= r.AsEvict().Bytes()
		case r.Kind == wire.KindCreate && r.AsCreate().Outcome() == wire.OutcomeMiss:
			o.misses++
			held += r.AsCreate().Granted()
			o.old = o.evicted[wire.EvictAge]
		case r.Kind == wire.KindCreate && r.AsCreate().Outcome() == wire.OutcomeHit:
			o.hits++
		}
		o.peak = max(o.peak, held)
	}
	return o
}

// TestMemoryInProportion: what a program outgrew goes back before it gets more, and what comes back stays.
func TestMemoryInProportion(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	off := []string{"--set", "proportion=0", "--set", "outgrown=off", "--set", "max_age=0"}
	for _, c := range []struct {
		args          string
		peak, without uint64 // MiB, at most, and without the rules at least
		hits, misses  uint64
	}{
		{"scratch 12 4M", 48, 312, 12, 12},
		{"vector 12 4M", 97, 127, 0, 13},
		{"sweep 12 4M", 48, 312, 108, 12},
		{"phases 12 4M", 52, 51, 588, 24},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			o := outgrows(t, c.args)
			if o.peak > c.peak*mib || o.hits != c.hits || o.misses != c.misses {
				t.Errorf("%d MiB reserved, %d hits, %d misses, %v; want at most %d MiB, %d hits, %d misses", o.peak/mib, o.hits, o.misses,
					o.evicted, c.peak, c.hits, c.misses)
			}
			if o = outgrows(t, c.args, off...); o.peak < c.without*mib || o.hits != c.hits || o.misses != c.misses {
				t.Errorf("without the rules %d MiB reserved, %d hits, %d misses", o.peak/mib, o.hits, o.misses)
			}
		})
	}
}

// TestSlowIterations: what iterations of seconds need stays once they are known, although it is older than max_age.
func TestSlowIterations(t *testing.T) {
	t.Parallel()
	if o := outgrows(t, "slow 10 256K", "--set", "max_age=1", "--no-relief"); o.hits < 6 || o.misses < 9 || o.hits+o.misses != 30 || o.evicted[wire.EvictAge] != int(o.misses-3) {
		t.Errorf("%+v: want misses until the iterations are known, and hits from then on", o)
	}
}

// TestIdleMemoryGoes while the program makes no calls: it releases its buffers, and pauses for long.
func TestIdleMemoryGoes(t *testing.T) {
	t.Parallel()
	if o := outgrows(t, "pause 40 256K", "--set", "max_age=100ms"); o.old != 40 {
		t.Errorf("%+v: want 40 blocks gone before the last create", o)
	}
	if o := outgrows(t, "pause 40 256K", "--set", "max_age=1h"); o.evicted[wire.EvictAge] != 0 {
		t.Errorf("%+v: nothing is an hour old", o)
	}
}
