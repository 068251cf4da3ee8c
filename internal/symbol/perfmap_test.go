package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
)

func TestPerfMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "perf-7.map")
	m := NewPerfMap(path)
	look := func(address uint64, want string) {
		t.Helper()
		if got := m.FrameAt(address); got != (Frame{Function: want}) {
			t.Errorf("0x%x: %+v, want %q", address, got, want)
		}
	}
	add := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close() //nolint:errcheck // a failed write fails the test
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	look(0x1001, "") // no file yet
	add("1000 40 void Solver.step(int)\n0x2000 0x10 main\nnonsense\n3000 0 empty\n4000 10\n2000 8 ne")
	look(0x1000, "") // the call is before what it returns to
	look(0x1001, "void Solver.step(int)")
	look(0x1040, "void Solver.step(int)")
	look(0x1041, "")
	look(0x2004, "main")
	look(0x4001, "")
	add("w\nffffffffffffff00 80 high\nffffffffffffff00 101 beyond\n")
	look(0x2011, "") // reads on
	look(0x2004, "new")
	look(0x2009, "main")
	look(0xffffffffffffff10, "high")
	look(0, "")
}

func TestGeneratedNames(t *testing.T) {
	for name, want := range map[string]Frame{
		"LazyCompile:*step /a b/solve.js:42:9": {Function: "step", File: "/a b/solve.js", Line: 42},
		"JS:~step file:///a/solve.mjs:42:9":    {Function: "step", File: "file:///a/solve.mjs", Line: 42},
		"JS:^ /a/solve.js:1:1":                 {File: "/a/solve.js", Line: 1},
		"Builtin:ArrayMap":                     {Function: "Builtin:ArrayMap"},
		"py::Solver.step:/a/solve.py":          {Function: "Solver.step", File: "/a/solve.py"},
		"void Solver.step(int)":                {Function: "void Solver.step(int)"},
		"":                                     {},
	} {
		if got := parseGenerated(name); got != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}

// TestPerfMapOfOthers: any user can leave a file of that name in /tmp.
func TestPerfMapOfOthers(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "perf-7.map")
	if err := os.WriteFile(path, []byte("1000 40 f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if got := NewPerfMap(link).FrameAt(0x1001).Function + NewPerfMap(folder).FrameAt(0x1001).Function; got != "" {
		t.Errorf("read through a link or from a folder: %q", got)
	}
	if os.Geteuid() != 0 {
		return // only root can give a file away
	}
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if got := NewPerfMap(path).FrameAt(0x1001).Function; got != "" {
		t.Errorf("read from another user's file: %q", got)
	}
}

// TestPerfMapsShareABudget: many processes that each generate little code take no more together. Names are left out then, and
// a line says so.
func TestPerfMapsShareABudget(t *testing.T) {
	const least = 40 << 10
	whole := budget.New(least)
	folder, said, named := t.TempDir(), 0, 0
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "%x 10 %s\n", 0x1000+16*i, strings.Repeat("f", 20))
	}
	var maps []*PerfMap
	for i := range 20 {
		m := NewMapOfProcess(os.Getpid(), Options{Budget: whole, Say: func(string) { said++ }})
		m.path, m.since = filepath.Join(folder, strconv.Itoa(i)), time.Time{}
		if err := os.WriteFile(m.path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(100) {
			if m.FrameAt(0x1001+16*i).Function != "" {
				named++
			}
		}
		maps = append(maps, m)
	}
	if used := whole.UsedBytes(); used > least || named == 0 || named == 2000 || said == 0 {
		t.Errorf("%d bytes kept, %d of 2000 named, said %d times", used, named, said)
	}
	for _, m := range maps {
		m.Close()
	}
	if whole.UsedBytes() != 0 {
		t.Errorf("%d bytes are never given back", whole.UsedBytes())
	}
}

// TestPerfMapOfThePast: an earlier process with the same number leaves its file, too.
func TestPerfMapOfThePast(t *testing.T) {
	m := NewMapOfProcess(os.Getpid(), Options{})
	if age := time.Since(m.since); age < 0 || age > time.Hour {
		t.Fatalf("this process began %v ago", age)
	}
	m.path = filepath.Join(t.TempDir(), "x.map")
	if err := os.WriteFile(m.path, []byte("1000 40 f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := m.since.Add(-time.Second)
	if err := os.Chtimes(m.path, before, before); err != nil {
		t.Fatal(err)
	}
	if got := m.FrameAt(0x1001).Function; got != "" {
		t.Errorf("read from an earlier process's file: %q", got)
	}
	if err := os.Chtimes(m.path, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := m.FrameAt(0x1001).Function; got != "f" {
		t.Errorf("%q", got)
	}
	if ended := NewMapOfProcess(1<<30, Options{}); time.Since(ended.since) > time.Hour {
		t.Errorf("of a process that has ended, files count from %v on", ended.since)
	}
}

func FuzzPerfMap(f *testing.F) {
	f.Add("1000 40 f\n1010 8 g\n", uint64(0x1012), 5)
	f.Add("0 ffffffffffffffff all\n", uint64(1), 0)
	f.Fuzz(func(t *testing.T, text string, address uint64, split int) {
		whole, parts := &PerfMap{}, &PerfMap{}
		whole.parseNextBytes([]byte(text))
		split = max(0, min(split, len(text)))
		parts.parseNextBytes([]byte(text[:split]))
		parts.parseNextBytes([]byte(text[split:]))
		find := func(m *PerfMap) string {
			if p := m.pieceAt(address); p != nil {
				return p.name
			}
			return ""
		}
		if len(text) < perfLineMax && find(whole) != find(parts) {
			t.Errorf("%q, read in two parts %q", find(whole), find(parts))
		}
		if name := find(whole); !strings.Contains(text, name) {
			t.Errorf("%q is not in the file", name)
		}
	})
}
