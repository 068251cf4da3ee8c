package ui

import (
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ofKinds has images and shared virtual memory beside buffers.
func ofKinds(s *stats.Snapshot) *stats.Snapshot {
	for _, kind := range []wire.Memory{wire.MemoryBuffer, wire.MemoryImage, wire.MemorySVM, wire.MemorySubBuffer} {
		n := uint64(kind)
		share := stats.Share{Creates: 1000 + n, Hits: 900 - 10*n, Misses: 100 + 10*n}
		if kind == wire.MemorySubBuffer {
			share.Hits, share.Misses = 0, 0 // no requests
		}
		s.Kinds = append(s.Kinds, stats.Kind{Memory: kind, Share: share})
	}
	return s
}

func TestKindsGolden(t *testing.T) {
	for _, size := range [][2]int{{140, 40}, {80, 24}, {60, 24}} {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			d := newTest((&calls{}).options(), size[0], size[1], ofKinds(sampleSnapshot()))
			press(d, "5")
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

func TestKindsOfBuffersAloneSayNothing(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	buffers := []stats.Kind{{Memory: wire.MemoryBuffer, Share: stats.Share{Creates: 9, Hits: 4, Misses: 5}}}
	if items := d.memoryKindItems(&stats.Snapshot{Kinds: buffers}); items != nil {
		t.Errorf("%v", items)
	}
	images := []stats.Kind{{Memory: wire.MemoryImage, Share: stats.Share{Creates: 9, Hits: 4, Misses: 5}}}
	if items := d.memoryKindItems(&stats.Snapshot{Kinds: append(buffers, images...)}); len(items) != 2 {
		t.Errorf("%v", items)
	}
}
