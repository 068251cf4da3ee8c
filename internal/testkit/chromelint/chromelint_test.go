package chromelint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// clean is a trace without problems; tests break one line of it at a time.
var clean = []string{
	`[`,
	`{"ph":"i","cat":"run","name":"gpumemtop","pid":7,"tid":7,"ts":0.000,"s":"g","args":{}},`,
	`{"ph":"M","name":"process_name","pid":7,"tid":7,"args":{"name":"app"}},`,
	`{"ph":"X","cat":"call","name":"create buffer","pid":7,"tid":8,"ts":1.000,"dur":2.500,"bind_id":"0x9","flow_out":true,"args":{"outcome":"miss"}},`,
	`{"ph":"b","cat":"buf","name":"a","id2":{"local":"0x1"},"pid":7,"tid":8,"ts":3.500,"bind_id":"0x9","flow_in":true,"flow_out":true,"args":{"granted":64}},`,
	`{"ph":"X","cat":"call","name":"create buffer","pid":7,"tid":8,"ts":4.000,"dur":1.000,"args":{"outcome":"hit"}},`,
	`{"ph":"b","cat":"buf","name":"a","id2":{"local":"0x2"},"pid":7,"tid":8,"ts":5.000,"args":{"granted":32}},`,
	`{"ph":"e","cat":"buf","name":"a","id2":{"local":"0x2"},"pid":7,"tid":8,"ts":6.000,"args":{}},`,
	`{"ph":"C","name":"mem","pid":7,"tid":7,"ts":6.000,"args":{"in_use":64,"cached":32}},`,
	`{"ph":"e","cat":"buf","name":"a","id2":{"local":"0x1"},"pid":7,"tid":8,"ts":7.000,"args":{"leaked":true}}`,
	`]`,
}

func TestClean(t *testing.T) {
	facts, problems := LintTrace(strings.NewReader(strings.Join(clean, "\n")))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := Facts{
		Events: 9, Creates: 2, Hits: 1, Misses: 1, Lifetimes: 2, PeakInUse: 96, Leaks: 1, LeakedBytes: 64,
		Last: map[string]float64{"mem in_use": 64, "mem cached": 32},
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		t.Error(diff)
	}
	if _, problems := LintTrace(strings.NewReader(strings.Join(clean[:len(clean)-1], "\n") + ",")); len(problems) > 0 {
		t.Errorf("cut off after an event: %v", problems)
	}
	if _, problems := LintTrace(strings.NewReader(strings.Join(clean[:6], "\n"))); len(problems) > 0 {
		t.Errorf("cut off while something lives: %v", problems)
	}
}

func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		line     int // to replace, an index
		old, new string
		want     string
	}{
		"object form":         {0, "[", `{"traceEvents":[`, "line 1: does not begin"},
		"no JSON":             {1, `"ts"`, `ts`, "line 2: no event"},
		"array for event":     {1, `{"ph":"i","cat":"run","name":"gpumemtop","pid":7,"tid":7,"ts":0.000,"s":"g","args":{}}`, `[1]`, "line 2: no event"},
		"no comma":            {1, "},", "}", "line 3: no comma"},
		"unknown phase":       {1, `"i"`, `"N"`, `phase "N"`},
		"no scope":            {1, `"s":"g",`, ``, "instant with scope"},
		"control character":   {1, "gpumemtop", "a\x7fb", "control character 0x7f"},
		"no name":             {1, "gpumemtop", "", "no name"},
		"no pid":              {1, `"pid":7,`, "", "no pid"},
		"plain id":            {1, `"s"`, `"id":"0x1","s"`, "plain id"},
		"stack":               {1, `"s":`, `"stack":["a"],"s":`, "ignored"},
		"unknown metadata":    {2, "process_name", "process_labels", "is ignored"},
		"metadata no name":    {2, `"name":"app"`, ``, "without args.name"},
		"timed metadata":      {2, `"pid"`, `"ts":1,"pid"`, "metadata with ts"},
		"sort index":          {2, `"process_name"`, `"thread_sort_index"`, "without args.sort_index"},
		"negative time":       {3, "1.000", "-1.000", "is negative"},
		"finer than ns":       {3, "1.000", "1.0001", "finer than"},
		"exponent":            {3, "1.000", "1e3", "no time"},
		"no time":             {3, `"ts":1.000,`, "", "ts: is missing"},
		"no duration":         {3, `"dur":2.500,`, "", "dur: is missing"},
		"endless":             {3, "2.500", "18446744073709551.615", "after all time"},
		"no outcome":          {3, `"outcome":"miss"`, "", "without args.outcome"},
		"overlap":             {3, "2.500", "3.500", "line 6: slice overlaps the one in line 4"},
		"global id":           {4, "local", "global", "id2 with a string local"},
		"number as id":        {4, `"0x1"`, `1`, "id2 with a string local"},
		"id not in base 16":   {4, "0x1", "x", "base 16"},
		"no granted":          {4, `"granted":64`, "", "without args.granted"},
		"id used again":       {6, "0x2", "0x1", "line 7: buf 0x1 was used before, in line 5"},
		"ends as another":     {7, `"a"`, `"b"`, `ends as "b"`},
		"ends as other class": {7, `"buf"`, `"sub"`, "is not open"},
		"ends too early":      {7, "6.000", "4.999", "ends before it begins"},
		"never ends":          {7, `"ph":"e"`, `"ph":"i","s":"g"`, "line 7: lifetime without an end"},
		"no value":            {8, `"in_use":64,"cached":32`, "", "without a value"},
		"text as value":       {8, "64", `"64"`, "is no number"},
		"null as value":       {8, "64", `null`, "is no number"},
		"leaked no boolean":   {9, "true", "1", "args.leaked"},
		"flow again":          {5, `"ts"`, `"bind_id":"0x9","flow_out":true,"ts"`, "line 6: flow 0x9 begins again"},
		"flow from nowhere":   {3, `"bind_id":"0x9","flow_out":true`, `"bind_id":"0x9","flow_in":true`, "has not begun"},
		"flow without an end": {3, `"flow_out":true,`, ``, "without flow_in or flow_out"},
		"flow without an id":  {3, `"bind_id":"0x9",`, ``, "flow without bind_id"},
		"flow id":             {3, `0x9`, `9`, "want a number in base 16"},
		"flow on a counter":   {8, `"ts"`, `"bind_id":"0x9","flow_in":true,"ts"`, "flow on phase C"},
		"text behind":         {10, "]", "]\n]", "line 12: something behind"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := append([]string(nil), clean...)
			if !strings.Contains(lines[test.line], test.old) {
				t.Fatalf("%q is not in %s", test.old, lines[test.line])
			}
			lines[test.line] = strings.Replace(lines[test.line], test.old, test.new, 1)
			_, problems := LintTrace(strings.NewReader(strings.Join(lines, "\n")))
			for _, p := range problems {
				if strings.Contains(p.String(), test.want) {
					return
				}
			}
			t.Errorf("want %q, have %v", test.want, problems)
		})
	}
}

func TestEmptyAndEndless(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "empty array": "[\n]", "long line": "[\n" + strings.Repeat("x", 2*lineMax),
		"many problems": "[\n" + strings.Repeat("{}\n", 10*problemsMax),
	} {
		_, problems := LintTrace(strings.NewReader(text))
		if len(problems) == 0 || len(problems) > problemsMax+1 {
			t.Errorf("%s: %d problems", name, len(problems))
		}
	}
}

func FuzzLint(f *testing.F) {
	f.Add(strings.Join(clean, "\n"))
	f.Add("[\n{\"ph\":\"X\",\"name\":\"create \",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}")
	f.Add("[\n{\"ph\":\"e\",\"cat\":\"buf\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"id2\":{\"local\":\"0x\"}}")
	f.Add("[\n{\"ph\":\"X\",\"ts\":0,\"dur\":0}")
	f.Fuzz(func(t *testing.T, text string) {
		facts, problems := LintTrace(strings.NewReader(text))
		if len(problems) > problemsMax+1 {
			t.Fatalf("%d problems", len(problems))
		}
		if len(problems) == 0 && facts.Events == 0 {
			t.Fatal("neither events nor problems")
		}
	})
}
