package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// advised is what gpumemtop advise --format json says.
type advised struct {
	Programs []struct {
		Program string
		Runs    []struct {
			Recording   string
			Now, Merged struct {
				Peak      uint64
				Allocated uint64 `json:"bytes_allocated"`
				Copies    int
			}
			Reuse struct {
				Before, After, Bound, Best struct{ Blocks, Bytes uint64 }
			}
			Lacks []string
		}
		Advice []struct {
			Topic, Verdict, Sentence string
			Sites                    []string
			Miss                     *struct{ Condition string }
		}
	}
	Empty []string
}

func advise(t *testing.T, args ...string) (a advised) {
	t.Helper()
	result := run(t, command{args: append([]string{gpumemtop(), "advise", "--format", "json"}, args...)})
	if result.code != 0 || len(result.stderr) != 0 {
		t.Fatalf("advise: %s\n%s", result, result.stderr)
	}
	if err := json.Unmarshal(result.stdout, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOneThingIsAdvised: what each iteration creates and keeps is to be shared or released sooner, not both.
func TestOneThingIsAdvised(t *testing.T) {
	t.Parallel()
	r := advise(t, recordUnder(t, "none", fault("findings"), "grow")).Programs[0]
	if len(r.Advice) != 1 || r.Advice[0].Topic != "share block" {
		t.Errorf("%+v", r.Advice)
	}
}

// TestOneBlockForAllRounds: the block that the first round's large buffer had made larger serves the later ones, too. How long the run would take
// then is not known.
func TestOneBlockForAllRounds(t *testing.T) {
	t.Parallel()
	file := recordUnder(t, "none", example("frag"), "3", "1M")
	r := advise(t, file).Programs[0].Runs[0]
	if want := (struct{ Blocks, Bytes uint64 }{1, 2 << 20}); r.Reuse.Best != want || r.Reuse.Bound != want {
		t.Errorf("best %+v, bound %+v, want %+v", r.Reuse.Best, r.Reuse.Bound, want)
	}
	text := run(t, command{args: []string{gpumemtop(), "advise", file}}).stdout
	if times := bytes.Count(run(t, command{args: []string{gpumemtop(), "advise", "--format", "json", file}}).stdout, []byte(`"time_ns"`)); times != 1 || !contains(text, "first to last step") {
		t.Errorf("%d runs have a time, only the recorded run may\n%s", times, text)
	}
}

// TestAdviceApplied records programs as they are, and as they are when they follow the advice: the peak, the bytes
// allocated and the copies that were predicted come true, and both print the same.
func TestAdviceApplied(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"mosaic", "20", "1M"}, {"mosaic", "7", "256K"}, {"staging", "20", "256K"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			plain := append([]string{example(args[0])}, args[1:]...)
			merged := append(slices.Clone(plain), "merged")
			if a, b := runBare(t, plain...), runBare(t, merged...); a.code != 0 || !bytes.Equal(a.stdout, b.stdout) {
				t.Fatalf("%s with %q, merged %s with %q", a, a.stdout, b, b.stdout)
			}
			predicted := advise(t, recordUnder(t, "none", plain...)).Programs[0].Runs[0]
			file := recordUnder(t, "none", merged...)
			p := advise(t, file).Programs[0]
			if got := p.Runs[0].Now; got != predicted.Merged || got == predicted.Now {
				t.Errorf("merged it has %+v, predicted was %+v of %+v", got, predicted.Merged, predicted.Now)
			}
			if peak := reportOf(t, file).PeakInUse; peak != predicted.Merged.Peak {
				t.Errorf("the report has a peak of %d, predicted was %d", peak, predicted.Merged.Peak)
			}
			if len(p.Advice) != 0 {
				t.Errorf("everything was recorded, and still: %+v", p.Advice)
			}
		})
	}
}

// TestAdviceOfAllExamples looks for what contradicts itself, or what the report of the same recording says.
func TestAdviceOfAllExamples(t *testing.T) {
	t.Parallel()
	for _, program := range examplePrograms() {
		t.Run(program.name, func(t *testing.T) {
			file := recordUnder(t, "none", program.args...)
			for _, form := range []string{"api", "uses", "completion"} {
				checkAdvice(t, advise(t, "--form", form, file), form)
			}
			a := advise(t, file)
			if program.unseen {
				if len(a.Programs) != 0 || len(a.Empty) != 1 {
					t.Errorf("%+v of a program without memory", a)
				}
				return
			}
			runs := a.Programs[0].Runs // the report's peak is that of all processes
			if want := reportOf(t, file).PeakInUse; len(runs) == 1 && runs[0].Now.Peak != want {
				t.Errorf("peak %d, in the report %d", runs[0].Now.Peak, want)
			}
		})
	}
}

func checkAdvice(t *testing.T, a advised, form string) {
	t.Helper()
	for _, p := range a.Programs {
		for _, r := range p.Runs {
			u := r.Reuse
			if r.Merged.Peak > r.Now.Peak || r.Merged.Allocated > r.Now.Allocated || r.Merged.Copies > r.Now.Copies ||
				r.Merged.Copies < 0 || u.Best.Bytes < u.Bound.Bytes || u.Best.Blocks < u.Bound.Blocks || u.After.Blocks > u.Before.Blocks {
				t.Errorf("by %s: %+v", form, r)
			}
		}
		alone, shared := map[string]bool{}, map[string]bool{}
		for _, advice := range p.Advice {
			if !strings.HasSuffix(advice.Sentence, ".") || len(advice.Sites) == 0 || advice.Verdict == "safe" ||
				(advice.Verdict == "near miss") != (advice.Miss != nil) {
				t.Errorf("by %s, of one recording: %+v", form, advice)
			}
			for _, site := range advice.Sites {
				alone[site] = alone[site] || advice.Topic == "create once" || advice.Topic == "keep several"
				if advice.Topic == "share block" {
					if shared[site] {
						t.Errorf("by %s: %s shares two blocks", form, site)
					}
					shared[site] = true
				}
			}
		}
		for site := range shared {
			if alone[site] {
				t.Errorf("by %s: %s keeps its own buffer, and shares one", form, site)
			}
		}
	}
}

// Two recordings of one program, with different inputs, make advice safe; one with a hole makes none safe.
func TestAdviceOfTwoRecordings(t *testing.T) {
	t.Parallel()
	first, second := recordUnder(t, "futhark", example("pipeline"), "5", "1M"), recordUnder(t, "none", example("pipeline"), "9", "2M")
	p := advise(t, first, second).Programs[0]
	if len(p.Runs) != 2 || p.Advice[0].Verdict != "safe" {
		t.Errorf("%+v", p)
	}
	long := recordUnder(t, "none", example("pipeline"), "3000", "16K")
	whole, err := os.ReadFile(long)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn.gmt")
	if err := os.WriteFile(torn, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	result := run(t, command{args: []string{gpumemtop(), "advise", first, torn}})
	if result.code != 0 || contains(result.stdout, "\n- safe:") || !contains(result.stdout, "none is safe") || len(result.stderr) == 0 {
		t.Errorf("%s\n%s%s", result, result.stdout, result.stderr)
	}
}

// Of a program that ran before the attach, advise says what is unknown, and nothing about earlier memory.
func TestAdviceAfterAttach(t *testing.T) {
	t.Parallel()
	p := program{name: "mosaic", args: []string{example("mosaic"), "30", "256K"}}
	inside, outside := recordedTwice(t, &p)
	after := advise(t, outside.file)
	checkAdvice(t, after, "completion")
	a, b := advise(t, inside.file).Programs[0].Runs[0], after.Programs[0].Runs[0]
	if a.Now != b.Now || a.Merged != b.Merged {
		t.Errorf("by the shim %+v %+v, from outside %+v %+v, which lacks %q", a.Now, a.Merged, b.Now, b.Merged, b.Lacks)
	}
}
