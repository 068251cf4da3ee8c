package portable

import (
	"bytes"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const mib = 1 << 20

// TestBuiltIn: each profile can be read, has a limit, names its source, and is read again as it was written.
func TestBuiltIn(t *testing.T) {
	if len(ProfileNames()) < 12 {
		t.Errorf("only %d profiles", len(ProfileNames()))
	}
	for _, name := range ProfileNames() {
		p, ok := BuiltInProfile(name)
		if !ok || !strings.Contains(p.Source, "://") && !strings.HasPrefix(p.Source, "gpumemtop probe: ") || p.Memory+p.Largest+p.Align == 0 {
			t.Errorf("%s: %+v", name, p)
			continue
		}
		again(t, p)
	}
	if _, ok := BuiltInProfile("../profile"); ok {
		t.Error("a path is no name")
	}
}

// again writes a profile and reads it.
func again(t *testing.T, p *Profile) {
	t.Helper()
	var b, b2 bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	back, err := ParseProfile(b.String())
	if err != nil {
		t.Fatalf("%s\n%v", b.String(), err)
	}
	if err := back.Write(&b2); err != nil || b.String() != b2.String() {
		t.Errorf("%q came back as %q, %v", b.String(), b2.String(), err)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                    "no name",
		"name = 3":                                            "name: want a text",
		"name = \"x\"\nimages = 1":                            "images: want true or false",
		"name = \"x\"\nlargest_bufer = 1":                     "unknown key \"largest_bufer\"",
		"name = \"x\"\nglobal_memory = 0":                     "global_memory: want a size",
		"name = \"x\"\nglobal_memory = \"0\"":                 "global_memory: is 0",
		"name = \"x\"\nglobal_memory = -1":                    "global_memory: want a size",
		"name = \"x\"\nglobal_memory = [1]":                   "global_memory: want a size",
		"name = \"x\"\nbase_alignment_bits = 1000":            "power of two",
		"name = \"x\"\nbase_alignment_bits = 4":               "power of two",
		"name = \"x\"\nimage_width = \"4K\"":                  "image_width: want a whole number",
		"name = \"x\"\nlargest_buffer = 2\nglobal_memory = 1": "above global_memory",
		"name = ": "line 1",
		"name = \"x\"\na" + strings.Repeat(".a", 40) + " = 1": "nested too deeply",
		"name = \"" + strings.Repeat("x", ProfileMax) + "\"":  "longer than",
	} {
		_, err := ParseProfile(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("name = \"x\"\nlargest_buffer = \"1GiB\"\nimages = true")
	f.Add("name = 'x\\'\nbase_alignment_bits = 4096")
	f.Add("[[a]]\nb = 1979-05-27")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProfile(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: more than a line: %q", text, err)
			}
			return
		}
		again(t, p)
	})
}

// story creates buffers of 1, 3 and 2 MiB that live together, an image, and a sub-buffer at 4224.
func story() *records.Tape {
	tape := &records.Tape{}
	now := uint64(1000)
	put := func(e wire.Event) {
		now += 1000
		e.Time = now
		tape.Records = append(tape.Records, wire.Record{Event: e, Process: 1, Thread: 1})
	}
	for n, size := range []uint64{mib, 3 * mib, 2 * mib} {
		put(wire.Event{
			Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Reason: uint8(wire.MissCold), Object: uint64(n + 1), Tag: uint32(n + 1),
			Size: size, Granted: size, Link: uint64(n + 1), Access: 1,
		})
	}
	put(wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemorySubBuffer), Object: 4, Tag: 4, Size: 64, Granted: 1 + 4224, Link: 2})
	put(wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemoryImage), Object: 5, Tag: 5, Size: 4096, Granted: 4096})
	put(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandKernel), Flags: wire.FlagReads, Object: 1, Tag: 1, Granted: 1})
	return tape
}

// TestEachLimitIsExact: each limit that the program just meets, and the same limit reduced by one.
func TestEachLimitIsExact(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name    string
		profile Profile
		what    int
		want    Verdict
		text    string
		site    string
	}{
		{"no largest", Profile{}, 0, Unknown, "no largest_buffer", ""},
		{"largest", Profile{Largest: 3 * mib}, 0, Fits, "3.00 MiB of at most 3.00 MiB", ""},
		{"too large", Profile{Largest: 3*mib - 1}, 0, Fails, "split it into 2 parts", "tag 2"},
		{"no alignment", Profile{}, 1, Unknown, "multiples of 128 B; the profile has no base_alignment_bits", ""},
		{"aligned", Profile{Align: 1024}, 1, Fits, "all begin at multiples of 128 B", ""},
		{"misaligned", Profile{Align: 2048}, 1, Fails, "here to 4352", "tag 4"},
		{"no memory", Profile{}, 2, Unknown, "6.00 MiB without a pool", ""},
		{"memory", Profile{Memory: 7 * mib}, 2, Fits, "6.00 MiB without a pool", ""},
		{"too little", Profile{Memory: 5 * mib}, 2, Fails, "there are 5.00 MiB", "tag 3"},
		{"image", Profile{Images: &yes, Width: 4096, Height: 8192}, 3, Fits, "4096 × 8192", ""},
		{"image of unknown shape", Profile{Images: &yes, Width: 4095, Height: 8192}, 3, Unknown, "of unknown width", ""},
		{"no size of images", Profile{Images: &yes}, 3, Unknown, "no image_width", ""},
		{"no images", Profile{Images: &no}, 3, Fails, "has no images", "tag 5"},
		{"constant", Profile{Constant: mib}, 4, Fits, "1.00 MiB of at most 1.00 MiB", ""},
		{"perhaps constant", Profile{Constant: mib - 1}, 4, Unknown, "as a __constant argument", ""},
	} {
		r, err := CompareWithProfile(story(), 0, &c.profile)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Checks[c.what]
		site := ""
		if got.Failure != nil {
			site = got.Failure.Site
		}
		if got.Verdict != c.want || !strings.Contains(got.Text+" "+got.Remedy, c.text) || site != c.site {
			t.Errorf("%s: %+v at %q, want %s, %q at %q", c.name, got, site, c.want, c.text, c.site)
		}
		if wantAll := (r.Verdict == Fails); wantAll != (c.want == Fails) {
			t.Errorf("%s: all in all %s", c.name, r.Verdict)
		}
	}
}

// TestFirstExceededLimitIsNamed: an error names the limit that was exceeded first, whatever is exceeded most.
func TestFirstExceededLimitIsNamed(t *testing.T) {
	r, err := CompareWithProfile(story(), 0, &Profile{Name: "card", Largest: 2 * mib, Memory: 5 * mib, Align: 8192})
	if err != nil {
		t.Fatal(err)
	}
	if r.First != "largest buffer" || !strings.Contains(r.Text(), "card: it would not run; what fails first: largest buffer") {
		t.Errorf("%s", r.Text())
	}
}
