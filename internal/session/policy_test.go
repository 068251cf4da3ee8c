package session

import (
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// longest are values of limits that take as much room as values may, and go together.
var longest = map[string]string{
	"max_cached_bytes": "1125899906842624", "max_cached_fraction": "0.0123456789", "over_limit": "reject-new",
	"max_per_tag": "1000000", "max_per_bucket": "1000000", "max_waste_ratio": "1023.9999999", "min_block": "1073741824",
	"steal_other_tag": "off", "mantissa_bits": "8", "max_part": "1099511627776", "heap_bytes": "1125899906842624",
	"slabs_per_heap": "1000000", "page_bytes": "1048576", "max_age": "999999.999999", "proportion": "1023.9999999", "outgrown": "off", "drain_order": "largest-first",
	"bucket_sizes": "1024:4096:16384:65536:262144:1048576:4194304:16777216:67108864:268435456:1073741824:8589934592",
}

// TestPolicyTextsFit sends every policy with all limits at their longest: a process that obeys the messages has them
// all.
func TestPolicyTextsFit(t *testing.T) {
	for _, name := range allocator.PolicyNames() {
		description, _ := allocator.DescribePolicy(name)
		var settings []allocator.Setting
		for _, l := range description.Limits {
			settings = append(settings, allocator.Setting{Name: l.Name, Value: longest[l.Name]})
		}
		want, err := allocator.New(name, settings)
		if err != nil {
			t.Fatal(err)
		}
		var got *allocator.Pool
		texts := policyTexts(name, settings)
		for i, text := range texts {
			if _, err := (wire.Control{Text: text.message}).Encode(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			verb, rest, _ := strings.Cut(text.message, " ")
			if (verb == "policy") != (i == 0) {
				t.Fatalf("message %d of %s is %q", i, name, text.message)
			}
			if i == 0 {
				word, limits, _ := strings.Cut(rest, " ")
				first, err := allocator.ParseSettings(limits)
				if err == nil {
					got, err = allocator.New(word, first)
				}
				if err != nil {
					t.Fatalf("%q: %v", text.message, err)
				}
				continue
			}
			limit, value, _ := strings.Cut(rest, "=")
			if _, err := got.SetLimit(limit, value, 0, nil); err != nil || limit != text.limit {
				t.Fatalf("%q of %s: %v", text.message, text.limit, err)
			}
		}
		same := func(a, b allocator.Limit) bool { return a.Name == b.Name && a.Text == b.Text }
		if !slices.EqualFunc(got.Limits(), want.Limits(), same) {
			t.Errorf("%s: %+v from %q, want %+v", name, got.Limits(), texts, want.Limits())
		}
	}
	texts := policyTexts("buddy", []allocator.Setting{{Name: "max_part", Value: "512"}, {Name: "page_bytes", Value: "256"}})
	if len(texts) != 1 || texts[0].message != "policy buddy page_bytes=256,max_part=512" {
		t.Errorf("%q", texts)
	}
}

func TestCollectorPolicies(t *testing.T) {
	c := newCollector(stats.New(stats.Options{Policy: "futhark"}), nil, "")
	c.clock = func() uint64 { return 1 }
	early := newFakeTarget(t)
	c.addProcess(early.peer(7))
	number := uint64(0)
	next := func() uint64 { number++; return number }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.setLimit("max_per_tag", "3", next()))
	sequence, err := c.setPolicy("pow2", []allocator.Setting{{Name: "max_age", Value: "30"}}, next)
	must(err)
	must(c.setLimit("min_block", "64", next()))
	must(c.setLimit("min_block", "128", next()))
	for _, bad := range [][]allocator.Setting{{{Name: "max_per_tag", Value: "3"}}, {{Name: "max_age", Value: "soon"}}} {
		if _, err := c.setPolicy("pow2", bad, next); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	if _, err := c.setPolicy("nonsense", nil, next); err == nil || !strings.Contains(err.Error(), "want one of") {
		t.Errorf("an unknown policy: %v", err)
	}
	todo, _ := c.takeQueuedCalls()
	for _, fn := range todo {
		fn()
	}
	late := newFakeTarget(t)
	c.addProcess(late.peer(8))
	for _, want := range []struct {
		target *fakeTarget
		texts  []string
	}{
		{early, []string{"limit max_per_tag=3", "policy pow2 max_age=30", "limit min_block=64", "limit min_block=128"}},
		{late, []string{"policy pow2 max_age=30", "limit min_block=128"}},
	} {
		for _, text := range want.texts {
			if got, ok := want.target.message(); !ok || got.Text != text {
				t.Errorf("got %q (%v), want %q", got.Text, ok, text)
			}
		}
	}
	if s := c.model.PublishSnapshot(); s.Change.Wanted != "pow2" || s.Change.Sequence != sequence || sequence != 2 {
		t.Errorf("%+v, want pow2 pending", s.Change)
	}
}

func TestNoPolicyWithoutAPool(t *testing.T) {
	s := &Session{options: Options{Config: wire.Config{Policy: "none"}}}
	if _, err := s.SetPolicy("futhark", nil); err == nil || !strings.Contains(err.Error(), "policy none stays") {
		t.Errorf("%v", err)
	}
}

// TestPlans go to one process, in more pieces than its mailbox has room for, and nothing overtakes them.
func TestPlans(t *testing.T) {
	c := newCollector(stats.New(stats.Options{Policy: "arena"}), nil, "")
	c.clock = func() uint64 { return 1 }
	first, other := newFakeTarget(t), newFakeTarget(t)
	c.addProcess(first.peer(7))
	c.addProcess(other.peer(8))
	layout := allocator.Layout{Arenas: []allocator.Arena{{Size: 1 << 30, Align: 256}}}
	for i := range 300 {
		layout.Places = append(layout.Places, allocator.Place{Tag: 1 + allocator.Tag(i), Size: 1 << 20, Offset: uint64(i) << 20})
	}
	number := uint64(0)
	next := func() uint64 { number++; return number }
	if err := c.setPlan(1, &layout, next); err != nil {
		t.Fatal(err)
	}
	if err := c.setLimit("max_age", "3", next()); err != nil {
		t.Fatal(err)
	}
	todo, _ := c.takeQueuedCalls()
	for _, fn := range todo {
		fn()
	}
	var draft allocator.Draft
	var got *allocator.Layout
	for got == nil {
		message, ok := first.message()
		if !ok {
			if c.readRings(); len(c.peers) != 2 || len(c.peers[0].outbox) == 0 && got != nil {
				t.Fatal("the plan does not come")
			}
			if message, ok = first.message(); !ok {
				t.Fatal("the plan ends early")
			}
		}
		piece, is := strings.CutPrefix(message.Text, "plan ")
		if !is {
			t.Fatalf("%q among the pieces of a plan", message.Text)
		}
		var err error
		if got, err = draft.ReadPiece(piece); err != nil {
			t.Fatal(err)
		}
	}
	c.readRings()
	if message, _ := first.message(); len(got.Places) != 300 || message.Text != "limit max_age=3" {
		t.Errorf("%d places, then %q", len(got.Places), message.Text)
	}
	if message, _ := other.message(); message.Text != "limit max_age=3" {
		t.Errorf("another process got %q", message.Text)
	}
}
