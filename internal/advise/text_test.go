package advise

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
)

// Memory held for nothing is worth a line from 1 % of the peak on, and wherever all advice is wanted.
func TestWorthwhile(t *testing.T) {
	run := Run{Found: merging.Run{Now: merging.Metrics{Peak: 1000}}}
	p := Program{Runs: []Run{run}, Advice: []merging.Advice{
		{Topic: merging.HeldEarly, Bytes: 10}, {Topic: merging.HeldEarly, Bytes: 9}, {Topic: merging.HeldLate, Bytes: 1},
		{Topic: merging.ShareBlock, Bytes: 1, Count: 5}, {Topic: merging.NoOpCopy, Bytes: 1},
	}}
	if got := p.adviceWorthShowing(5); len(got) != 3 || got[0].Bytes != 10 {
		t.Errorf("worth a line: %+v", got)
	}
	if got := p.adviceWorthShowing(-1); len(got) != len(p.Advice) {
		t.Errorf("all are wanted: %+v", got)
	}
}

// TestWorthTime: advice that saves no time and little memory is not worth a line, where what it saves is known.
func TestWorthTime(t *testing.T) {
	run := Run{Found: merging.Run{Now: merging.Metrics{Peak: 1000}, Merged: merging.Metrics{Peak: 995}}}
	run.NS, run.Making = 1000, map[uint32]uint64{1: 9, 2: 10}
	run.Program = &merging.Program{Names: map[uint32]string{1: "a", 2: "b"}}
	p := Program{Runs: []Run{run}}
	for want, list := range map[bool][]merging.Advice{
		false: {
			{Topic: merging.CreateOnce, Sites: []string{"a"}, Count: 5}, {Topic: merging.ShareBlock, Sites: []string{"a"}, Bytes: 9},
			{Topic: merging.InPlace, Sites: []string{"a"}},
		},
		true: {
			{Topic: merging.CreateOnce, Sites: []string{"b"}}, {Topic: merging.ShareBlock, Sites: []string{"a"}, Bytes: 10},
			{Topic: merging.KeepSeveral, Sites: []string{"a", "b"}}, {Topic: merging.Coalesce, Sites: []string{"a"}}, {Topic: merging.Concat, Sites: []string{"a"}},
		},
	} {
		for _, a := range list {
			if p.Advice = []merging.Advice{a}; (len(p.adviceWorthShowing(5)) == 1) != want {
				t.Errorf("%+v: shown, want %v", a, want)
			}
		}
	}
}

// TestNoAdvice: where memory cannot be merged, the text does not claim that none could be shared.
func TestNoAdvice(t *testing.T) {
	for pin, want := range map[merging.Pin]bool{merging.Free: false, merging.SVM: true, merging.Image: true} {
		run := Run{}
		run.Found.Reuse, run.Program = new(merging.Reuse), &merging.Program{Buffers: []merging.Buffer{{Pinned: pin}}}
		p := Program{Runs: []Run{run}}
		if text := p.noAdviceText(); strings.Contains(text, "Not tried") != want {
			t.Errorf("pinned %v: %s", pin, text)
		}
	}
}

// A plan is called the best only where it beats the program, with all the blocks that it leaves alone.
func TestBestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		best, fixed merging.Footprint
		want        string
	}{
		"fewer blocks and bytes": {merging.Footprint{Blocks: 2, Peak: 500}, merging.Footprint{Blocks: 1, Peak: 100}, "best: plan 3 600 B"},
		"nothing to move":        {merging.Footprint{Blocks: 1, Peak: 10}, merging.Footprint{Blocks: 5, Peak: 990}, "no better: plan 6 1000 B"},
		"fewer, and larger":      {merging.Footprint{Blocks: 2, Peak: 900}, merging.Footprint{Blocks: 1, Peak: 101}, "fewest blocks: plan 3 1001 B"},
		"not all at once":        {merging.Footprint{Blocks: 1, Peak: 10}, merging.Footprint{Blocks: 5, Peak: 991}, "at once. Blocks that stay to the end would need 1001 B or more."},
		"as many, and smaller":   {merging.Footprint{Blocks: 6, Peak: 900}, merging.Footprint{}, "best: plan 6 900 B"},
	} {
		run := Run{Found: merging.Run{Reuse: &merging.Reuse{Before: merging.Footprint{Blocks: 6, Peak: 1000}, Best: c.best, Bound: merging.Footprint{Peak: min(c.best.Peak, 10)}, Fixed: c.fixed, Method: "plan"}}}
		b := page{width: textWidth}
		if run.writeFewestBlocks(&b); !strings.Contains(strings.Join(strings.Fields(b.String()), " "), c.want) {
			t.Errorf("%s: no %q in\n%s", name, c.want, b.String())
		}
	}
}

// Where all advice is too small for a line, the text says so.
func TestNothingThatMatters(t *testing.T) {
	p := Program{Runs: []Run{{Found: merging.Run{Now: merging.Metrics{Peak: 1000}, Reuse: &merging.Reuse{}}}}, Advice: []merging.Advice{{Topic: merging.HeldEarly, Bytes: 1}}}
	b := page{width: textWidth}
	if p.writeText(&b, 5); !strings.Contains(b.String(), "ADVICE\nnone that matters: ") || !strings.Contains(b.String(), "\n1 more: --max 0 shows all\n\nRUN") {
		t.Error(b.String())
	}
}

// TestNoWordOnHiddenAdvice: a sentence names other advice for the same buffers only where that is shown.
func TestNoWordOnHiddenAdvice(t *testing.T) {
	held := merging.Advice{Topic: merging.HeldLate, Sites: []string{"a"}, Bytes: 500, Instead: true}
	other := merging.Advice{Topic: merging.WriteInto, Sites: []string{"a"}, Nanos: 500, Sentence: "Keep 1 buffer of a"}
	little := other
	little.Nanos = 1
	for name, c := range map[string]struct {
		list []merging.Advice
		most int
		said bool
	}{
		"shown":     {[]merging.Advice{other, held}, 5, true},
		"all":       {[]merging.Advice{little, held}, -1, true},
		"not worth": {[]merging.Advice{little, held}, 5, false},
		"cut":       {[]merging.Advice{held, other}, 1, false},
	} {
		p := Program{Runs: []Run{{Found: merging.Run{Now: merging.Metrics{Peak: 1000}, Reuse: &merging.Reuse{}}}}, Advice: merging.Reconcile(c.list)}
		p.Runs[0].NS = 1000
		b := page{width: textWidth}
		p.writeAdvice(&b, c.most)
		if text := b.String(); strings.Contains(text, "Instead of keeping or sharing them, release") != c.said || strings.Contains(text, ": Release") == c.said {
			t.Errorf("%s: %s", name, text)
		}
	}
}
