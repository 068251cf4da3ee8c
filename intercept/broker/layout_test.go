package broker

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// TestALayoutComesInPieces, and serves the requests of its places. A wrong piece is refused and changes nothing.
func TestALayoutComesInPieces(t *testing.T) {
	core := newBroker(t, "arena", "")
	layout := allocator.Layout{
		Arenas: []allocator.Arena{{Size: 8192, Align: 256}},
		Places: []allocator.Place{{Tag: 1, Size: 4096, Offset: 4096}, {Tag: 2, Size: 1000}},
	}
	var out [4]Eviction
	for _, piece := range layout.EncodePieces(40) {
		reply, n, _, err := core.ObeyMessage("plan "+piece, 0, out[:0])
		if err != nil || reply != "plan="+piece || n == 0 {
			t.Fatalf("%q: %q, number %d, %v", piece, reply, n, err)
		}
	}
	for _, piece := range []string{"plan end 2", "plan new", "plan arenas 2001:100:0", "plan places 0:1:1000:1", "plan end 1", "plan x", "plan"} {
		_, _, _, err := core.ObeyMessage(piece, 0, out[:0])
		if wrong := piece != "plan new" && piece != "plan arenas 2001:100:0" && piece != "plan places 0:1:1000:1"; (err != nil) != wrong {
			t.Errorf("%q: %v", piece, err)
		}
	}
	decision, _, _, err := ask(core, allocator.Request{Size: 4096, Align: 256, Class: 1, Tag: 1}, out[:0])
	if err != nil || decision.SlabSize != 8192 || decision.Offset != 4096 {
		t.Errorf("%+v, %v: want the layout's place", decision, err)
	}
	if _, _, _, err := newBroker(t, "slab", "").ObeyMessage("plan end 0", 0, out[:0]); err == nil {
		t.Error("slab took a layout")
	}
}
