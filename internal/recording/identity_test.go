package recording

import (
	"reflect"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestIdentityOfMergedRuns(t *testing.T) {
	a := Identity{User: "ada", Place: wire.Place{Job: "1", Rank: "0"}, Labels: map[string]string{"team": "x", "tier": "a"}}
	b := Identity{User: "ada", Place: wire.Place{Job: "1", Rank: "1"}, Labels: map[string]string{"team": "x", "tier": "b"}}
	want := Identity{User: "ada", Place: wire.Place{Job: "1"}, Labels: map[string]string{"team": "x"}}
	if got := a.SharedWith(b); !reflect.DeepEqual(got, want) || len(a.Labels) != 2 {
		t.Errorf("%+v", got)
	}
	h := Header{Identity: want, Merged: []Origin{{First: 1, Last: 1, Identity: a}, {First: 2, Last: 3, Identity: b}}}
	for process, want := range map[uint32]string{1: "0", 2: "1", 3: "1", 4: ""} {
		if got := h.IdentityOf(process).Rank; got != want {
			t.Errorf("process %d: rank %q, want %q", process, got, want)
		}
	}
	ids := map[string][]uint32{}
	h.Merged[0].Host, h.Merged[1].Host = "one", "two"
	for process, want := range map[uint32]uint32{0: 0, 1: 1, 2: 1, 3: 2, 4: 4} {
		id, number := h.RecordingIDOf(process)
		if number != want {
			t.Errorf("process %d was number %d, want %d", process, number, want)
		}
		ids[id] = append(ids[id], process)
	}
	if len(ids) != 3 || h.HostIfSeveral(1) != "one" || h.HostIfSeveral(3) != "two" {
		t.Errorf("recordings by processes %v, process 3 ran on %q", ids, h.HostIfSeveral(3))
	}
}

// TestOwnDevices: processes have devices of their own on two hosts, and where one has memory of its own.
func TestOwnDevices(t *testing.T) {
	merged := func(hosts string, memory ...uint64) Header {
		h := Header{Host: "a"}
		for i, bytes := range memory {
			h.Merged = append(h.Merged, Origin{Host: hosts[i : i+1], First: uint32(2 * i), Last: uint32(2*i + 1), DeviceMemory: bytes})
		}
		return h
	}
	for _, c := range []struct {
		h    Header
		a, b uint32
		want bool
		node string // of a
	}{
		{Header{Host: "a"}, 1, 2, false, ""},
		{Header{Host: "a", DeviceMemory: 1}, 1, 2, true, ""},
		{merged("aa", 0, 0), 1, 2, false, ""},
		{merged("ab", 0, 0), 0, 3, true, "a"},
		{merged("ab", 0, 0), 2, 3, false, "b"},
		{merged("aa", 5, 0), 1, 2, true, ""},
		{merged("aa", 0, 5), 1, 2, true, ""},
		{merged("aa", 0, 5), 0, 1, false, ""},
		{merged("aa", 5, 0), 4, 3, false, ""},
	} {
		if got := c.h.HaveSeparateDevices(c.a, c.b); got != c.want || c.h.HostIfSeveral(c.a) != c.node {
			t.Errorf("%+v: processes %d and %d: %v on %q, want %v on %q", c.h.Merged, c.a, c.b, got, c.h.HostIfSeveral(c.a), c.want, c.node)
		}
	}
}
