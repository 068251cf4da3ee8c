package plain

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// TestPolicy names the lower of both limits on what is cached.
func TestPolicy(t *testing.T) {
	s := &model.Snapshot{Policy: "pow2", Device: model.Device{Global: 512 << 20}, Limits: []model.Limit{
		{Name: "max_cached_bytes", Value: 512 << 20}, {Name: "max_cached_fraction", Value: 0.25},
	}}
	if got, want := Policy(s), "pow2, at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Change.Former = []string{"futhark", "slab"}
	if got, want := Policy(s), "pow2 (before that futhark, slab), at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Auto = &model.Auto{Steers: true}
	if got, want := Policy(s), "auto: pow2 (before that futhark, slab), at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Auto.Steers = false; strings.Contains(Policy(s), "auto") {
		t.Errorf("%q, but somebody has changed the policy", Policy(s))
	}
	if got := Policy(&model.Snapshot{}); got != "unknown" {
		t.Errorf("%q", got)
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Count(1, "event"): "1 event", Count(0, "event"): "0 events", Misses(1): "1 miss", Misses(2): "2 misses",
		Percent(0.5, 1): "50.0 %", Percent(0.5, 0): "-", Duration(999): "999ns", Duration(1_234_567): "1.23ms",
		Duration(1 << 63): Duration(1 << 62), Cut("äöü", 3): "äöü", Cut("äöüß", 3): "äö…", Cut("日本語", 5): "日本…", Cut("日本語", 6): "日本語", Clean("a\x1b\nb\xff"): "a  b�",
		ProgramName(""): "-", ProgramName("/bin/ls"): "ls", fmt.Sprint(Seconds(2e9, 3e9), Seconds(3, 2)): "1 0",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestEnded(t *testing.T) {
	for want, p := range map[string]model.Process{
		"running": {}, "signal 9": {State: model.Signaled, Status: 9}, "status 7": {State: model.Exited, Status: 7},
		"exited": {State: model.Exited, Status: -1, Orderly: true}, "unknown": {State: model.Exited, Status: -1},
	} {
		if got := Ended(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTop(t *testing.T) {
	list := []int{1, 2, 3}
	for most, want := range map[int]string{-1: "[1 2 3] 0", 0: "[] 3", 2: "[1 2] 1", 3: "[1 2 3] 0", 9: "[1 2 3] 0"} {
		kept, left := Top(list, most)
		if got := fmt.Sprint(kept, left); got != want {
			t.Errorf("%d: %s, want %s", most, got, want)
		}
	}
}

func TestPairs(t *testing.T) {
	var b bytes.Buffer
	Pairs(&b, [][2]string{{"a", "1"}, {"empty", ""}})
	if want := "a            1\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestSplit always gets on, however narrow it is.
func TestSplit(t *testing.T) {
	for columns, want := range map[int]string{0: "日 本語", 1: "日 本語", 3: "日 本語", 4: "日本 語", 9: "日本語 "} {
		first, rest := Split("日本語", columns)
		if got := first + " " + rest; got != want {
			t.Errorf("%d: %q, want %q", columns, got, want)
		}
	}
}
