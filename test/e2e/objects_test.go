package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// objectCount is what a summary says of a type of objects.
type objectCount struct {
	Type                        string
	Live, Peak, Created, Leaked uint64
	Growth                      float64 `json:"growth_per_iteration"`
	PerSite                     []struct {
		Tag                   string
		Live, Created, Leaked uint64
	} `json:"per_site"`
}

// objectsOf returns what a report in JSON says of objects, by type.
func objectsOf(t *testing.T, report []byte) map[string]objectCount {
	t.Helper()
	var all struct{ Objects []objectCount }
	if err := json.Unmarshal(report, &all); err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	byType := map[string]objectCount{}
	for _, o := range all.Objects {
		byType[o.Type] = o
	}
	return byType
}

// TestObjectLeaks has a loop that keeps its objects, live, recorded, with and without a pool.
func TestObjectLeaks(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"none", "futhark"} {
		file := filepath.Join(t.TempDir(), "run.gmt")
		r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--policy", policy, fault("objects"), "leak", "300"}})
		for _, want := range []string{"300 programs, 303 kernels, 600 events, 300 samplers never released", "600 events at objects.c:"} {
			if !contains(r.stderr, want) {
				t.Errorf("%s: no %q in\n%s", policy, want, r.stderr)
			}
		}
		for _, args := range [][]string{nil, {"--since", "0.1s"}} {
			args = append(append([]string{gpumemtop(), "report", "--format", "json"}, args...), file)
			objects := objectsOf(t, run(t, command{args: args}).stdout)
			for kind, want := range map[string]uint64{"event": 600, "kernel": 303, "program": 300, "sampler": 300, "context": 0, "queue": 0} {
				if o := objects[kind]; o.Live != want || o.Leaked != want || o.Peak < want {
					t.Errorf("%s: %s %+v, want %d live", policy, kind, o, want)
				}
			}
			if each := objects["event"].Growth; len(args) == 5 && (each < 1.9 || each > 2.1) {
				t.Errorf("%s: an iteration leaves %v events, want 2", policy, each)
			}
		}
		text := run(t, command{args: []string{gpumemtop(), "report", "--all", file}}).stdout
		words := strings.Join(strings.Fields(string(text)), " ")
		for _, want := range []string{"problem: events grow in number over the iterations: 600 of 600 are live at the end", "OBJECTS live peak created"} {
			if !strings.Contains(words, want) {
				t.Errorf("%s: no %q in\n%s", policy, want, text)
			}
		}
		if each := regexp.MustCompile(`an iteration leaves (1\.9|2\.[01]) more on average`); !each.MatchString(words) {
			t.Errorf("%s: no %s in\n%s", policy, each, text)
		}
		for rule, code := range map[string]int{
			"max_leaked_events = 600": 0, "max_leaked_events = 599": 1, "max_leaked_objects = 1503": 0, "max_leaked_objects = 1502": 1,
			"max_object_growth = 6": 0, "max_object_growth = 4": 1,
		} {
			rules := filepath.Join(t.TempDir(), "rules.toml")
			if err := os.WriteFile(rules, []byte(rule+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if r := run(t, command{args: []string{gpumemtop(), "check", "--rules", rules, file}}); r.code != code {
				t.Errorf("%s: %s: status %d\n%s", policy, rule, r.code, r.stdout)
			}
		}
	}
}

// TestNoObjectLeaks has one that holds many for a while, and three kernels to its end, as programs do.
func TestNoObjectLeaks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.gmt")
	r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, "--policy", "none", fault("objects"), "tidy", "300"}})
	if contains(r.stderr, "objects ") && contains(r.stderr, "never released") {
		t.Errorf("the summary speaks of objects:\n%s", r.stderr)
	}
	objects := objectsOf(t, run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}}).stdout)
	if e, k := objects["event"], objects["kernel"]; e.Live != 0 || e.Created != 600 || e.Peak != 200 || k.Live != 3 || k.Leaked != 3 || k.Created != 303 {
		t.Errorf("events %+v, kernels %+v", e, k)
	}
	if text := run(t, command{args: []string{gpumemtop(), "report", "--all", file}}).stdout; contains(text, "in number") {
		t.Errorf("a finding about objects:\n%s", text)
	}
}

// TestAttachedObjects: attach counts what the library counts, at the lines that the commands are on.
func TestAttachedObjects(t *testing.T) {
	t.Parallel()
	for mode, live := range map[string]map[string]uint64{
		"leak": {"event": 600, "kernel": 303, "program": 300, "sampler": 300, "context": 0, "queue": 0},
		"tidy": {"event": 0, "kernel": 3, "program": 0, "sampler": 0, "context": 0, "queue": 0},
	} {
		inside, outside := recordedTwice(t, &program{name: "objects", args: []string{fault("objects"), mode, "300"}})
		want, got := objectsOf(t, inside.report), objectsOf(t, outside.report)
		for kind, n := range live {
			w, g := want[kind], got[kind]
			if g.Live != n || g.Leaked != n || g.Created != w.Created {
				t.Errorf("%s: %s %+v, want %d live, and as many created as %+v", mode, kind, g, n, w)
			}
		}
		if e := got["event"].PerSite; len(e) != 1 || !strings.HasPrefix(e[0].Tag, "objects.c:") {
			t.Errorf("%s: call sites of events %+v", mode, e)
		}
	}
}
