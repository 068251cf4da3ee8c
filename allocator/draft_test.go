package allocator

import (
	"reflect"
	"strings"
	"testing"
)

// readAll reads the pieces of a layout.
func readAll(texts []string) (*Layout, error) {
	var d Draft
	for i, text := range texts {
		l, err := d.ReadPiece(text)
		if err != nil || (l != nil) != (i == len(texts)-1) {
			return l, err
		}
		if l != nil {
			return l, nil
		}
	}
	return nil, nil
}

// TestLayoutsAsText come back as they were, in pieces that are short enough.
func TestLayoutsAsText(t *testing.T) {
	long := Layout{Arenas: []Arena{{arenaMax, 2048, arenaMax}, {1 << 20, 1, 7}}}
	for i := range 1000 {
		long.Places = append(long.Places, Place{Arena: i % 2, Tag: Tag(1<<32 - 1 - i), Size: 1 << 19, Offset: uint64(i)})
	}
	for _, l := range []Layout{{}, threePlaces(), long} {
		texts := l.EncodePieces(114)
		got, err := readAll(texts)
		if err != nil || got == nil || !reflect.DeepEqual(*got, l) {
			t.Fatalf("%v: %+v of %+v, pieces %q", err, got, l, texts)
		}
		for _, text := range texts {
			if len(text) > 114 {
				t.Errorf("%q has %d bytes", text, len(text))
			}
		}
	}
}

func TestBadDrafts(t *testing.T) {
	for want, texts := range map[string][]string{
		"without a beginning":     {"places 0:1:1:0"},
		"unknown piece":           {"new", "x"},
		"want 3 numbers":          {"new", "arenas 5"},
		"want 4 numbers":          {"new", "places 0:1:1:0,"},
		`"g" is no number`:        {"new", "places 0:g:1:0"},
		"is no number up to 1000": {"new", "places 0:1:1:0", "arenas 1000000000001:1:1"},
		"1 places came":           {"new", "places 0:1:1:0", "end 2"},
		"0 places came":           {"new", "end"},
	} {
		if l, err := readAll(texts); err == nil || l != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", texts, err, want)
		}
	}
}

func FuzzDraft(f *testing.F) {
	l := threePlaces()
	f.Add(strings.Join(l.EncodePieces(40), "\n"))
	f.Add("new\narenas 1:1:1,ffff:ffff:0\nplaces f:f:f:f\nend 1")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := readAll(strings.Split(text, "\n"))
		if err != nil || l == nil {
			return
		}
		p := newPolicy(t, "arena", "")
		if _, err := p.InstallLayout(*l, nil); (err == nil) != (l.Check() == nil) {
			t.Errorf("%+v: %v", l, err)
		}
	})
}
