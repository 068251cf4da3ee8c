package stats

import (
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// limitsOf are the limits of the policies in the tests below.
func limitsOf(policy string) []Limit {
	switch policy {
	case "pow2":
		return []Limit{{Name: "min_block", Text: "4", Value: 4}, {Name: "max_cached_bytes", Text: "100", Value: 100}}
	case "slab":
		return []Limit{{Name: "max_part", Text: "0", Max: 1000}}
	}
	return nil
}

func TestPolicyChanges(t *testing.T) {
	s := newStream(Options{Policy: "futhark", LimitsOf: limitsOf, Limits: []Limit{{Name: "max_cached_bytes", Value: 7}}})
	answer := func(process uint32, sequence uint64, status int16, text string) {
		s.process = process
		s.feed(wire.Event{Kind: wire.KindLimit, Object: sequence, Status: status}, []byte(text)...)
	}
	check := func(step, policy, wanted, former string, limits int) *Snapshot {
		t.Helper()
		got := s.Snapshot()
		if got.Policy != policy || got.Change.Wanted != wanted || strings.Join(got.Change.Former, " ") != former || len(got.Limits) != limits {
			t.Errorf("%s: policy %q, change %+v, limits %+v", step, got.Policy, got.Change, got.Limits)
		}
		return got
	}
	s.process = 2
	s.feed(wire.Event{Kind: wire.KindSync})
	s.NotePolicyWanted("pow2", 3)
	check("on its way", "futhark", "pow2", "", 1)
	answer(1, 3, 0, "policy=pow2,min_block=64,nonsense=5,max_cached_bytes=x\x00")
	got := check("obeyed by one", "pow2", "", "futhark", 2)
	if l := got.Limits; l[0].Text != "64" || l[0].Wanted != 64 || l[1].Text != "100" || got.Processes[0].Policy != "futhark" || got.Processes[1].Policy != "pow2" {
		t.Errorf("limits %+v, processes %+v", l, got.Processes)
	}
	s.NoteLimitWanted("min_block", "128", 4)
	answer(1, 4, 0, "min_block=128")
	answer(2, 3, 0, "policy=pow2,min_block=64")
	got = check("obeyed by both", "pow2", "", "futhark", 2)
	if got.Limits[0].Text != "128" || got.Processes[0].Policy != "pow2" {
		t.Errorf("the second process took a limit back: %+v, or does not obey: %+v", got.Limits, got.Processes)
	}
	s.NotePolicyWanted("slab", 5)
	s.NotePolicyWanted("mantissa", 6)
	answer(1, 5, 0, "policy=slab")
	check("the first of two", "slab", "mantissa", "futhark pow2", 1)
	answer(2, 5, 0, "policy=slab")
	answer(1, 6, -1, "the allocator\x1b has failed")
	if got = check("refused", "slab", "", "futhark pow2", 1); got.Change.Refused != "the allocator  has failed" || got.Change.IsPending() {
		t.Errorf("%+v", got.Change)
	}
	if got.Change.Done != 2 {
		t.Errorf("%d changes, and both processes took part in each of the two", got.Change.Done)
	}
	s.NotePolicyWanted("slab", 8)
	answer(1, 8, 0, "policy=slab,max_part=9")
	if got = check("the same policy", "slab", "", "futhark pow2", 1); got.Change.Done != 3 || got.Limits[0].Text != "9" {
		t.Errorf("other limits of the same policy: %+v, %+v", got.Change, got.Limits)
	}
	answer(1, 9, 0, "policy=")
	answer(1, 9, 0, "policy="+strings.Repeat("x", 65))
	check("nonsense", "slab", "", "futhark pow2", 1)
	answer(1, 10, 0, "policy=\x1bunheard of")
	check("unknown", " unheard of", "", "futhark pow2 slab", 0)
	for i := range uint64(40) {
		answer(1, 11+i, 0, "policy="+[]string{"pow2", "slab"}[i%2])
	}
	if got = s.Snapshot(); len(got.Change.Former) != formerMax || got.Change.Former[0] != "slab" {
		t.Errorf("former policies: %q", got.Change.Former)
	}
	if !slices.ContainsFunc(got.Marks, func(m Mark) bool { return m.Kind == wire.KindLimit && m.Text == "policy=slab" }) {
		t.Errorf("no mark reports the change: %+v", got.Marks)
	}
}

// TestReliefIsOneMarkForEachReason: memory that went back for other programs is summed up in one mark until the reason is another one, and counted.
func TestReliefIsOneMarkForEachReason(t *testing.T) {
	s := newStream(Options{Policy: "futhark"})
	s.process = 1
	gave := func(given uint64, why string) {
		s.feed(wire.Event{Kind: wire.KindLimit, Object: 1}, []byte(wire.Relief{Asked: 1 << 30, Given: given, Why: why}.AnswerText())...)
	}
	s.feed(wire.EvictFields{Bytes: 3 << 20, Reason: wire.EvictRelief}.Event())
	gave(2<<20, wire.ReliefShort)
	gave(0, wire.ReliefShort)
	gave(1<<20, wire.ReliefIdle)
	gave(512<<20, wire.ReliefAsked)
	var texts []string
	got := s.Snapshot()
	for _, m := range got.Marks {
		texts = append(texts, m.Text)
	}
	want := []string{"gave 3.00 MiB back: little memory was free", "gave 512.0 MiB back: another program needed it"}
	if !slices.Equal(texts, want) || got.Totals.Relieved != 3<<20 || got.Totals.Evictions[wire.EvictRelief] != 1 {
		t.Errorf("marks %q, %d bytes in %d blocks", texts, got.Totals.Relieved, got.Totals.Evictions[wire.EvictRelief])
	}
}
