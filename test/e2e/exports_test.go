package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// recordUnder makes a recording of a program under a policy.
func recordUnder(t *testing.T, policy string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	result := run(t, command{args: append([]string{gpumemtop(), "record", "--policy", policy, "-o", file, "--"}, args...)})
	if result.code != 0 {
		t.Fatalf("record: %s\n%s", result, result.stderr)
	}
	return file
}

// exportAs writes a recording in a format, and requires that stderr stays empty.
func exportAs(t *testing.T, file, format string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out."+format)
	result := run(t, command{args: append([]string{gpumemtop(), "export", file, "--format", format, "-o", out}, flags...)})
	if result.code != 0 || len(result.stdout) > 0 || len(result.stderr) > 0 {
		t.Fatalf("export %s: %s\n%s%s", format, result, result.stdout, result.stderr)
	}
	return out
}

// figures are what report says of a recording.
func figures(t *testing.T, file string) summary {
	t.Helper()
	result := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
	var s summary
	if err := json.Unmarshal(result.stdout, &s); err != nil || result.code != 0 {
		t.Fatalf("report: %s, %v\n%s", result, err, result.stderr)
	}
	return s
}

// rows are the lines of a file without the first, split at commas.
func rows(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), ","))
	}
	return rows[1:]
}

func whole(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestExportsAgreeWithTheReport records real programs, and recomputes figures of the report from each export alone.
func TestExportsAgreeWithTheReport(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy string
		args   []string
		site   string
	}{
		{"futhark", []string{example("train"), "30", "16K"}, "create_gradient"},
		{"ualloc", []string{example("train"), "30", "16K"}, "create_gradient"},
		{"none", []string{example("frag"), "3", "16M"}, "use_small"},
		{"buddy", []string{example("leak"), "3", "1M"}, "forget_result"},
	} {
		t.Run(test.policy+" "+filepath.Base(test.args[0]), func(t *testing.T) {
			file := recordUnder(t, test.policy, test.args...)
			want := figures(t, file)
			checkProfile(t, file, &want, test.site)
			checkSnapshot(t, file, &want)
			checkLog(t, file, &want)
			checkInstance(t, file, &want)
		})
	}
}

// checkProfile lets the real pprof read a profile.
func checkProfile(t *testing.T, file string, want *summary, site string) {
	t.Helper()
	peak, end := exportAs(t, file, "pprof"), exportAs(t, file, "pprof", "--at", "end")
	top := func(args ...string) map[string]int64 {
		result := run(t, command{args: append([]string{"go", "tool", "pprof", "-top", "-unit=B", "-nodefraction=0"}, args...)})
		if result.code != 0 {
			t.Fatalf("go tool pprof %v: %s\n%s", args, result, result.stderr)
		}
		return flat(result.stdout)
	}
	at := top(peak)
	if got := sum(at); got != int64(want.PeakInUse) {
		t.Errorf("pprof says %d in use at the peak, the report %d", got, want.PeakInUse)
	}
	left := top(end)
	if got := sum(left); got != int64(want.InUse) {
		t.Errorf("pprof says %d in use at the end, the report %d", got, want.InUse)
	}
	if got := sum(top("-sample_index=cached_space", end)); got != int64(want.BytesCached) {
		t.Errorf("pprof says %d cached at the end, the report %d", got, want.BytesCached)
	}
	if created := top("-sample_index=alloc_space", peak); created[site] == 0 {
		t.Errorf("pprof does not know %s: %v", site, created)
	}
	changed := top("-diff_base", peak, end)
	for name := range maps.Keys(at) {
		if changed[name] != left[name]-at[name] {
			t.Errorf("from the peak to the end %s changes by %d, want %d", name, changed[name], left[name]-at[name])
		}
	}
}

// flat reads the column flat of pprof's -top.
func flat(top []byte) map[string]int64 {
	values := map[string]int64{}
	_, table, _ := bytes.Cut(top, []byte("cum%\n"))
	for line := range bytes.Lines(table) {
		fields := strings.Fields(string(line))
		if n, err := strconv.ParseInt(strings.TrimSuffix(fields[0], "B"), 10, 64); err == nil {
			values[strings.Join(fields[5:], " ")] = n
		}
	}
	return values
}

func sum(values map[string]int64) (sum int64) {
	for _, n := range values {
		sum += n
	}
	return sum
}

// checkSnapshot lets the real Python read a snapshot.
func checkSnapshot(t *testing.T, file string, want *summary) {
	t.Helper()
	script := filepath.Join(root, "internal", "export", "memviz", "testdata", "check.py")
	result := run(t, command{args: []string{"python3", script, exportAs(t, file, "memviz")}})
	reserved := want.InUse + want.BytesCached + want.BytesCooling
	says := fmt.Sprintf(" %d in use, %d reserved\n", want.InUse, reserved)
	if result.code != 0 || !strings.HasSuffix(string(result.stdout), says) {
		t.Errorf("python says %s: %s%s, want %s", result, result.stdout, result.stderr, says)
	}
}

func checkLog(t *testing.T, file string, want *summary) {
	t.Helper()
	live := map[string]int64{}
	var now, peak int64
	for _, row := range rows(t, exportAs(t, file, "rmm")) {
		size := whole(t, row[4])
		switch _, known := live[row[3]]; {
		case row[2] == "allocate" && !known:
			live[row[3]] = size
			now += size
			peak = max(peak, now)
		case row[2] == "free" && known && live[row[3]] == size:
			delete(live, row[3])
			now -= size
		default:
			t.Fatalf("%v, and %d live there", row, live[row[3]])
		}
	}
	if peak != int64(want.PeakRequested) {
		t.Errorf("the log's peak is %d, the report's %d", peak, want.PeakRequested)
	}
}

func checkInstance(t *testing.T, file string, want *summary) {
	t.Helper()
	changes := map[int64]int64{}
	var last, now, peak int64
	for _, row := range rows(t, exportAs(t, file, "minimalloc")) {
		lower, upper, size := whole(t, row[1]), whole(t, row[2]), whole(t, row[3])
		changes[lower] += size
		changes[upper] -= size
		last = max(last, upper)
	}
	for rank := range last {
		now += changes[rank]
		peak = max(peak, now)
	}
	if peak != int64(want.PeakInUse) {
		t.Errorf("the instance's peak is %d, the report's %d", peak, want.PeakInUse)
	}
}

// A part, one call site, standard output, and a file that is packed.
func TestExportOfAPart(t *testing.T) {
	t.Parallel()
	file := record(t, example("train"), "30", "16K")
	packed := filepath.Join(t.TempDir(), "x.pb.gz")
	args := []string{gpumemtop(), "export", file, "--format", "pprof", "-o", packed, "--tag", "create_gradient", "--at", "1ms"}
	if result := run(t, command{args: args}); result.code != 0 || len(result.stderr) > 0 {
		t.Fatalf("export: %s\n%s", result, result.stderr)
	}
	b, err := os.ReadFile(packed)
	if err != nil || !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		t.Fatalf("%.4q is no gzip, %v", b, err)
	}
	p, err := profile.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Sample {
		if name := s.Location[0].Line[0].Function.Name; name != "create_gradient" {
			t.Errorf("a profile of create_gradient has %s", name)
		}
	}
	result := run(t, command{args: []string{gpumemtop(), "export", file, "--format", "minimalloc", "-o", "-", "--tag", "no such"}})
	if result.code != 0 || string(result.stdout) != "id,lower,upper,size\n" {
		t.Errorf("of no call site: %s\n%s%s", result, result.stdout, result.stderr)
	}
	few := filepath.Join(t.TempDir(), "few.pickle")
	result = run(t, command{args: []string{gpumemtop(), "export", file, "--format", "memviz", "-o", few, "--max-events", "100"}})
	if result.code != 0 {
		t.Errorf("export of 100 events: %s", result)
	}
	checkOneLine(t, result.stderr, "kept the last 100")
}

func TestWrongExports(t *testing.T) {
	t.Parallel()
	file := record(t, example("tiny"))
	for _, test := range []struct {
		say  string
		args []string
	}{
		{`"5parsecs" for --at: want peak, end, or a time`, []string{"--format", "pprof", "--at", "5parsecs"}},
		{"--at 1s is before --since 2s", []string{"--format", "pprof", "--at", "1s", "--since", "2s"}},
		{"--at 3s is after --until 2s", []string{"--format", "pprof", "--at", "3s", "--until", "2s"}},
		{`"(" for --tag`, []string{"--format", "pprof", "--tag", "("}},
		{`"(" for --tag`, []string{"--format", "memviz", "--tag", "("}},
		{`"[" for --tag`, []string{"--format", "rmm", "--tag", "["}},
		{`"*" for --tag`, []string{"--format", "minimalloc", "--tag", "*"}},
		{"-1 for --max-events", []string{"--format", "memviz", "--max-events", "-1"}},
		{`"many" for --max-events`, []string{"--format", "memviz", "--max-events", "many"}},
		{"--at is for --format pprof, not rmm", []string{"--format", "rmm", "--at", "peak"}},
		{"--max-events is for --format", []string{"--format", "minimalloc", "--max-events", "5"}},
	} {
		out := filepath.Join(t.TempDir(), "out")
		result := run(t, command{args: append([]string{gpumemtop(), "export", file, "-o", out}, test.args...)})
		if result.code != 125 || len(result.stdout) > 0 {
			t.Errorf("%v: %s, %q", test.args, result, result.stdout)
		}
		checkOneLine(t, result.stderr, test.say)
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v left a file", test.args)
		}
	}
}
