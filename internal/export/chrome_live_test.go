package export

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/disk"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/chromelint"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// fullDisk is a file of a live trace. It remembers how much was there after each write.
type fullDisk struct {
	data   []byte
	marks  []int
	space  int // 0: endless
	closed bool
}

func (d *fullDisk) Write(b []byte) (int, error) {
	n := len(b)
	if d.space > 0 {
		n = min(n, d.space-len(d.data))
	}
	d.data = append(d.data, b[:n]...)
	d.marks = append(d.marks, len(d.data))
	if n < len(b) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}

func (d *fullDisk) Truncate(size int64) error { d.data = d.data[:size]; return nil }
func (d *fullDisk) Close() error              { d.closed = true; return nil }

func startLive(t interface{ Fatal(...any) }, d *fullDisk) *Live {
	facts := storyFacts()
	l := newLive(disk.NewWriter(d), &facts, growing)
	if err := l.writeFirstFacts(&facts); err != nil {
		t.Fatal(err)
	}
	return l
}

func live(t *testing.T, records []wire.Record) string {
	t.Helper()
	var d fullDisk
	l := startLive(t, &d)
	for i := range records {
		if err := l.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil || !d.closed {
		t.Fatal(err)
	}
	if _, problems := chromelint.LintTrace(bytes.NewReader(d.data)); len(problems) > 0 || !json.Valid(d.data) {
		t.Errorf("%v in\n%s", problems, d.data)
	}
	return string(d.data)
}

// TestLiveIsTheExport compares a trace that was written live with one of the recording.
func TestLiveIsTheExport(t *testing.T) {
	got := live(t, misdeeds())
	want, _, _ := export(t, misdeeds(), TraceOptions{})
	skip := func(text string) []string {
		var lines []string
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, " ,\n")
			// The first line cannot know what is lost, threads get their names later, and what belongs to no process
			// shows before there is one.
			if !strings.Contains(line, `"cat":"run"`) && !strings.Contains(line, `_name"`) && !strings.Contains(line, "events lost") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if diff := cmp.Diff(skip(want), skip(got)); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{`"live":true`, `"name":"process_name","pid":4242`, `"name":"thread_name","pid":4242,"tid":101`} {
		if strings.Count(got, part) != 1 {
			t.Errorf("%s is not there once in\n%s", part, got)
		}
	}
}

// frames is the payload of a TAG.
func frames(pairs ...uint64) []byte {
	var b []byte
	for _, n := range pairs {
		b = binary.NativeEndian.AppendUint64(b, n)
	}
	return b
}

// TestLiveWaitsForNames holds back, in order, what is created before its site has a name, but not for ever.
func TestLiveWaitsForNames(t *testing.T) {
	module := rec(1, wire.KindModule, func(r *wire.Record) { r.Object, r.Payload = 5, []byte("/opt/app\x00") })
	tag := rec(2, wire.KindTag, func(r *wire.Record) {
		r.Tag, r.Op, r.Payload = 1, uint8(wire.TagsStack), frames(0, 7, 5, 0x1234)
	})
	site := rec(40, wire.KindSite, func(r *wire.Record) { r.Tag, r.Payload = 1, []byte("blur\t/src/canny.c\t88\tapp+0x1234\n") })
	later := func(us uint64, r wire.Record) wire.Record { r.Time = origin + 1000*us; return r }
	const named, guessed = `"name":"canny.c:88 blur"`, `"name":"app+0x1234"`
	for name, test := range map[string]struct {
		records []wire.Record
		flush   int // after the first four
		named   int // lifetimes begun and ended under the name
		guessed int
	}{
		"in time":    {[]wire.Record{site, release(50, 1, 1, wire.OutcomeCached)}, 0, 2, 0},
		"at the end": {[]wire.Record{release(50, 1, 1, wire.OutcomeCached)}, 0, 0, 2},
		"a second late": {[]wire.Record{
			later(1_000_050, release(0, 9, 9, wire.OutcomeCached)), site, create(1_000_060, 2, 2, mib, wire.OutcomeMiss, 1),
			release(1_000_070, 1, 1, wire.OutcomeCached), release(1_000_080, 2, 2, wire.OutcomeCached),
		}, 0, 2, 2},
		"the program is silent": {[]wire.Record{site, create(60, 2, 2, mib, wire.OutcomeMiss, 1)}, 4, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var d fullDisk
			l := startLive(t, &d)
			records := append([]wire.Record{module, tag, create(10, 1, 1, mib, wire.OutcomeMiss, 1)}, test.records...)
			for i := range records {
				if i == 3 {
					for range test.flush {
						if strings.Contains(string(d.data), `"ph":"b"`) {
							t.Error("did not wait")
						}
						_ = l.Flush()
					}
				}
				if err := l.Append(&records[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if _, problems := chromelint.LintTrace(bytes.NewReader(d.data)); len(problems) > 0 {
				t.Errorf("%v in\n%s", problems, d.data)
			}
			if a, b := strings.Count(string(d.data), named), strings.Count(string(d.data), guessed); a != test.named || b != test.guessed {
				t.Errorf("%d and %d lines, want %d with the name and %d without, in\n%s", a, b, test.named, test.guessed, d.data)
			}
		})
	}
}

// TestLiveHoldsBackSoMuch bounds the memory for records that wait.
func TestLiveHoldsBackSoMuch(t *testing.T) {
	var d fullDisk
	l := startLive(t, &d)
	for i := range uint64(2 * heldMax) {
		r := create(0, i+1, 0, 1, wire.OutcomeDriver, 7)
		if err := l.Append(&r); err != nil {
			t.Fatal(err)
		}
		if waiting := len(l.held) - l.next; waiting > heldMax {
			t.Fatalf("%d records wait", waiting)
		}
	}
	if !strings.Contains(string(d.data), `"name":"tag 7"`) {
		t.Error("nothing was written")
	}
}

// TestLiveRandom cuts the trace of any run off behind any write: it is clean, and at the end its figures are the
// model's.
func TestLiveRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := run(rt)
		var d fullDisk
		l := startLive(rt, &d)
		for i := range records {
			if err := l.Append(&records[i]); err != nil {
				rt.Fatal(err)
			}
			if rapid.IntRange(0, 9).Draw(rt, "flush") == 0 {
				if err := l.Flush(); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if err := l.Close(); err != nil {
			rt.Fatal(err)
		}
		// A kill cuts the file off behind a write, or between two pages of one.
		for page := pageBytes; page < len(d.data); page += pageBytes {
			d.marks = append(d.marks, page)
		}
		for _, mark := range d.marks {
			if _, problems := chromelint.LintTrace(bytes.NewReader(d.data[:mark])); len(problems) > 0 {
				rt.Fatalf("cut off at %d: %v", mark, problems)
			}
		}
		got, _ := chromelint.LintTrace(bytes.NewReader(d.data))
		totals := fold(records).Totals
		have := fmt.Sprint(got.Creates, got.Hits, got.Misses, got.PeakInUse, got.Last["mem in_use"])
		if want := fmt.Sprint(totals.Creates, totals.Hits, totals.Misses, totals.PeakInUse, float64(totals.InUse)); have != want {
			rt.Fatalf("%s\n%s", have, want)
		}
	})
}

// TestLiveDiskFull keeps what was written whole.
func TestLiveDiskFull(t *testing.T) {
	for space := 1000; space < 12_000; space += 333 {
		d := fullDisk{space: space}
		l := startLive(t, &d)
		var failed error
		for round := range uint64(10) {
			for _, r := range story() {
				if r.Time += 10_000_000 * round; r.Kind == wire.KindCreate || r.Kind == wire.KindRelease {
					r.Object += 100 * round
				}
				if err := l.Append(&r); err != nil {
					failed = err
				}
			}
			if err := l.Flush(); err != nil {
				failed = err
			}
		}
		if err := l.Close(); err == nil || failed == nil || !strings.Contains(err.Error(), "no space left") || !d.closed {
			t.Errorf("%d bytes: %v, then %v", space, failed, err)
		}
		if _, problems := chromelint.LintTrace(bytes.NewReader(d.data)); len(problems) > 0 {
			t.Errorf("%d bytes: %v in\n%s", space, problems, d.data)
		}
	}
}

func TestCreateLive(t *testing.T) {
	old := filepath.Join(t.TempDir(), "old.json")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path  string
		force bool
		want  string
	}{
		"exists":        {old, false, "use -f to overwrite it"},
		"no such place": {filepath.Join(old, "x"), false, "not a directory"},
		"a device":      {"/dev/null", true, "is no regular file"},
	} {
		if _, err := CreateLive(test.path, storyFacts(), test.force); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "old" {
		t.Errorf("%q %v", text, err)
	}
	l, err := CreateLive(old, storyFacts(), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := chromelint.LintTrace(bytes.NewReader(file)); len(problems) > 0 || uint64(len(file)) != l.Bytes() {
		t.Errorf("%v in %d bytes, %d counted:\n%s", problems, len(file), l.Bytes(), file)
	}
}

// TestLiveNamesItsFile: an error speaks of the name that the user gave, not of the one that the file was made under.
func TestLiveNamesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "given.json")
	l, err := CreateLive(path, storyFacts(), false)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path + ".tmp")
	if err := errors.Join(err, l.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	facts := storyFacts()
	l = newLive(disk.NewWriter(file), &facts, growing)
	l.name = path
	if err := l.writeFirstFacts(&facts); err == nil {
		t.Fatal("a closed file was written")
	}
	err = l.Close()
	if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), ".tmp") {
		t.Errorf("it says %v", err)
	}
}

// FuzzLive gives it nonsense, with and without pauses: what is written is JSON, and nothing the importer dies of.
func FuzzLive(f *testing.F) {
	f.Add([]byte(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz\x0a\x01\xff\x7f", 8)), uint8(3))
	f.Add(bytes.Repeat([]byte{1, 1, 10, 0, 2, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9}, 16), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, every uint8) {
		var d fullDisk
		l := startLive(t, &d)
		for i, r := range exportrun.NonsenseRecords(data) {
			if err := l.Append(&r); err != nil {
				t.Fatal(err)
			}
			if every > 0 && i%int(every) == 0 {
				_ = l.Flush()
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		checkNonsense(t, d.data)
	})
}
