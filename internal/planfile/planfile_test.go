package planfile

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// request is a request of a period: its call site is named by a letter.
type request struct {
	site string
	size uint64
	life uint64
}

// newRun returns a run of a period. Tags count from first.
func newRun(t *testing.T, first allocator.Tag, phases ...[]request) Run {
	t.Helper()
	r := Run{Sites: map[allocator.Tag]Site{}}
	tags := map[string]allocator.Tag{}
	var all [][]learn.Buffer
	for _, iteration := range phases {
		var buffers []learn.Buffer
		for _, q := range iteration {
			if tags[q.site] == 0 {
				tags[q.site] = first + allocator.Tag(len(tags))
				r.Sites[tags[q.site]] = Site{"name of " + q.site, []string{"program+0x" + q.site, "main"}}
			}
			buffers = append(buffers, learn.Buffer{Tag: tags[q.site], Class: 1, Size: q.size, Align: 128, Life: q.life})
		}
		all = append(all, buffers)
	}
	if r.Layout = learn.MakeLayout(all); r.Layout == nil {
		t.Fatal("no plan")
	}
	return r
}

// TestPlanHasWhatEachRunRequests: requests that are the same in each run are in the plan, with their longest lives, wherever the period
// begins.
func TestPlanHasWhatEachRunRequests(t *testing.T) {
	one := newRun(t, 1, []request{{"a", 4096, 2}, {"x", 100, 1}, {"b", 8192, 2}, {"c", 512, 0}, {"d", 300, 1}})
	other := newRun(t, 70, []request{{"b", 8192, 1}, {"c", 512, 1}, {"d", 400, 1}, {"a", 4096, 1}, {"y", 7, 2}})
	p, err := MakePlan([]Run{one, other})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]Place{}
	for i := range p.Sites {
		names[p.Sites[i].Name] = p.Sites[i].Places
	}
	if len(names) != 2 || p.Recordings != 2 || names["name of a"][0].Life != 1 || names["name of b"][0].Life != 2 {
		t.Errorf("%+v, want a and b", p)
	}
	why := map[string]string{}
	for _, o := range p.Outside {
		why[o.Name] = o.Why
	}
	want := map[string]string{
		"name of c": livesOn, "name of d": notInAll, "name of x": notInAll, "name of y": notInAll,
	}
	if !reflect.DeepEqual(why, want) {
		t.Errorf("outside %v, want %v", why, want)
	}
	if _, err := MakePlan([]Run{one, newRun(t, 1, []request{{"a", 4000, 1}})}); !errors.Is(err, ErrNothing) {
		t.Errorf("of runs without anything in common: %v", err)
	}
}

// TestMakeOrders: call sites that threads interleave differently in each run are left out, others stay.
func TestMakeOrders(t *testing.T) {
	one := newRun(t, 1, []request{{"a", 1, 1}, {"b", 2, 1}, {"c", 3, 1}, {"d", 4, 1}})
	other := newRun(t, 1, []request{{"a", 1, 1}, {"c", 3, 1}, {"b", 2, 1}, {"d", 4, 1}})
	p, err := MakePlan([]Run{one, other})
	if err != nil || len(p.Sites) != 3 {
		t.Errorf("%v: %+v, want three sites", err, p)
	}
}

func TestMakePhases(t *testing.T) {
	first, second := []request{{"a", 4096, 2}, {"b", 8192, 1}}, []request{{"c", 65536, 1}, {"e", 512, 2}}
	p, err := MakePlan([]Run{newRun(t, 1, first, second), newRun(t, 5, second, first)})
	if err != nil || len(p.Sites) != 4 || p.Arenas[0].Size != 65536+512 {
		t.Errorf("%v: %+v", err, p)
	}
	again := reread(t, p)
	if plan := again.LayoutForTags(tagsOf(again)); plan.Places[0].Size != 4096 || plan.Places[2].Size != 65536 || plan.Period != 2 {
		t.Errorf("%+v", plan)
	}
}

func reread(t *testing.T, p *Plan) *Plan {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := ParsePlan(b.String())
	if err != nil {
		t.Fatalf("%v of\n%s", err, b.String())
	}
	return again
}

func tagsOf(p *Plan) map[string]allocator.Tag {
	tags := map[string]allocator.Tag{}
	for i := range p.Sites {
		tags[p.Sites[i].keyOfSite()] = allocator.Tag(100 + i)
	}
	return tags
}

// TestWrittenPlanGivesTheSameLayout writes random plans and reads them: a run that has all call sites gets the layout of the first run.
func TestWrittenPlanGivesTheSameLayout(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		iteration := make([]request, 1+rng.IntN(20))
		for i := range iteration {
			iteration[i] = request{string(rune('a' + rng.IntN(9))), 1 + rng.Uint64N(1<<20), rng.Uint64N(uint64(len(iteration)) + 1)}
		}
		iteration[0].life = 1
		r := newRun(t, 1, iteration)
		p, err := MakePlan([]Run{r})
		if err != nil {
			t.Fatal(err)
		}
		p.Program, p.Build, p.Tags = `odd "name"\`, "0123", "stack"
		again := reread(t, p)
		if !reflect.DeepEqual(p, again) {
			t.Fatalf("wrote %+v\nread  %+v", p, again)
		}
		plan := again.LayoutForTags(tagsOf(again))
		if plan.Size != r.Layout.Size || plan.Bound != r.Layout.Bound || plan.Outside != r.Layout.Outside || len(plan.Places) != len(r.Layout.Places) {
			t.Fatalf("%+v, want %+v", plan, r.Layout)
		}
	}
}

const small = `version = 1
program = "p"
[[arena]]
size = 4096
alignment = 128
lower_bound = 4096
[[site]]
name = "s"
frames = ["p+0x1"]
places = [ { request = 1, size = 100, offset = 128, lifetime = 1 }, { request = 2, size = 4096, offset = 0 } ]
`

func TestParse(t *testing.T) {
	if _, err := ParsePlan(small); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string][2]string{
		"version 2: want 1":                 {"version = 1", "version = 2"},
		"version 0: want 1":                 {"version = 1\n", ""},
		`unknown key "colour"`:              {"program", "colour = 1\nprogram"},
		"line 4: ":                          {"size = 4096", "size = "},
		"alignment 3":                       {"alignment = 128", "alignment = 3"},
		"size 4097":                         {"size = 4096\nal", "size = 4097\nal"},
		"lower_bound 5000 is above":         {"lower_bound = 4096", "lower_bound = 5000"},
		"site 1 has 0 frames":               {`"p+0x1"`, ""},
		"100 bytes at 127":                  {"offset = 128", "offset = 127"},
		"4096 bytes at 128":                 {"offset = 0", "offset = 128"},
		"site 1, place 2: request 1 comes":  {"request = 2", "request = 1"},
		"request 0":                         {"request = 1", "request = 0"},
		"arena 2":                           {"request = 1", "arena = 2, request = 1"},
		"no place":                          {"{ request = 1, size = 100, offset = 128, lifetime = 1 }, { request = 2, size = 4096, offset = 0 }", ""},
		"want a plan, as 'gpumemtop advise": {"size = 100", `size = "much"`},
		"negative integer value -100":       {"size = 100", "size = -100"},
		"negative integer value -128":       {"alignment = 128", "alignment = -128"},
		"site 2 has the frames of another":  {"[[site]]", "[[site]]\nframes = [\"p+0x1\"]\n[[site]]"},
		"nested too deeply":                 {"version = 1", "version = " + strings.Repeat("[", 40) + strings.Repeat("]", 40)},
	} {
		_, err := ParsePlan(strings.Replace(small, change[0], change[1], 1))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (&Plan{Program: "p", Build: "a"}).CheckBuild("p", "b"); err == nil {
		t.Error("a plan for another build")
	}
	for _, c := range [][2]string{{"q", "b"}, {"p", "a"}, {"p", ""}} {
		if err := (&Plan{Program: "p", Build: "a"}).CheckBuild(c[0], c[1]); err != nil {
			t.Error(err)
		}
	}
}

// FuzzParse: a plan that can be read can be written and read again, and the policy accepts it.
func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add("version = 1\n[[site]]\nplaces = [{phase = 1000000000}]")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePlan(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has several lines", err)
			}
			return
		}
		again := reread(t, p)
		if !reflect.DeepEqual(p.layoutBySiteNumber(), again.layoutBySiteNumber()) {
			t.Errorf("%+v is read again as %+v", p, again)
		}
		policy, err := allocator.New("arena", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.InstallLayout(p.layoutBySiteNumber(), nil); err != nil {
			t.Error(err)
		}
	})
}

func site(process, tag uint32, frame string) *wire.Record {
	at := strings.LastIndex(frame, "+0x")
	payload := wire.AppendSiteFrame(nil, wire.SiteFrame{Function: "f", Module: "/somewhere/" + frame[:at], Offset: uint64(frame[at+3] - '0'), HasOffset: true})
	r := wire.SiteFields{Tag: tag}.Record(append(payload, payload...))
	r.Process = process
	return &r
}

// TestFinderWaitsForCallSites gives each process its layout as soon as all call sites are known, or no new ones come up.
func TestFinderWaitsForCallSites(t *testing.T) {
	p, err := ParsePlan(strings.Replace(small, "[[site]]", `[[site]]
name = "other"
frames = ["p+0x2"]
places = [ { request = 3, size = 100, offset = 0 } ]
[[site]]`, 1))
	if err != nil {
		t.Fatal(err)
	}
	f := NewFinder(p)
	create := func(process uint32) *wire.Record {
		return &wire.Record{Process: process, Event: wire.Event{Kind: wire.KindCreate}}
	}
	for _, r := range []*wire.Record{create(1), site(1, 5, "p+0x1"), site(1, 6, "p+0x3"), create(1), site(2, 5, "q+0x1"), create(2)} {
		if plan := f.TakeRecord(r); plan != nil {
			t.Fatalf("%+v too early", plan)
		}
	}
	if plan := f.TakeRecord(site(1, 9, "p+0x2")); plan == nil || len(plan.Places) != 3 || plan.Places[2].Tag != 9 || plan.Places[0].Tag != 5 {
		t.Errorf("%+v, want three places", plan)
	}
	if plan := f.TakeRecord(create(1)); plan != nil {
		t.Errorf("%+v again", plan)
	}
	f.TakeRecord(site(3, 1, "p+0x2"))
	plans := 0
	for range 10 {
		if plan := f.TakeRecord(create(3)); plan != nil {
			plans++
		}
	}
	if plans != 1 || f.LayoutForProcess(2) != nil || len(f.LayoutForProcess(3).Places) != 1 {
		t.Errorf("%d plans with one site of two", plans)
	}
}
