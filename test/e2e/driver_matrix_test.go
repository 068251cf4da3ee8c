package e2e

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// driven is a program that runs on every driver, with little work: oclgrind simulates it.
type driven struct {
	name  string
	args  []string
	quick bool
	fits  func(served) bool // ways that it may run in; nil: all
}

func drivenPrograms(d *driver) []driven {
	list := []driven{
		{name: "platforms", args: []string{fault("platforms")}, quick: true},
		{name: "neighbours", args: []string{testProgram("neighbours"), "50", "20"}, quick: true},
		{name: "forker", args: []string{fault("forker"), "3", "5"}, quick: true},
		{name: "queries", args: []string{testProgram("queries")}, fits: func(way served) bool { return !way.carves() }},
		{name: "queries", args: []string{testProgram("queries"), "parts"}, fits: served.carves},
	}
	for name, quick := range map[string]bool{
		"stencil": true, "frag": true, "leak": true, "pipeline": false, "staging": false, "mosaic": false, "multiqueue": false,
	} {
		list = append(list, driven{name: name, args: []string{example(name), "4", "16K"}, quick: quick})
	}
	list = append(list, driven{name: "threads", args: []string{example("threads"), "3", "8", "16K"}, quick: true})
	for _, name := range []string{"tiles", "pointers"} {
		list = append(list, driven{name: name, args: []string{testProgram(name), "8", "16K"}})
	}
	for _, name := range []string{"conformance", "conformance-buffers", "queries-buffers"} {
		list = append(list, driven{name: name, args: []string{testProgram(name)}})
	}
	for _, name := range []string{"queries", "queries-buffers"} {
		if d.fails["queries"] != "" { // others need no leniency, and PoCL has it wait for what never comes
			list = append(list, driven{name: "lenient " + name, args: []string{testProgram(name), "lenient"}})
		}
	}
	for seed := range *driversSeeds {
		s := soakOf(seed + 1).on(d)
		list = append(list, driven{name: "soak", args: s.args()})
		s.plain = true
		list = append(list, driven{name: "soak-buffers", args: s.args()})
	}
	return list
}

// matrix counts what was compared on one driver.
type matrix struct {
	driver
	runs, different int
	failing         []string // without us
}

func (m *matrix) String() string {
	slices.Sort(m.failing)
	return fmt.Sprintf("%s: runs %d, differences %d, fail without us: %s", m.name, m.runs, m.different, strings.Join(slices.Compact(m.failing), ", "))
}

// withoutFailed leaves out the checks that fail bare, and where images are used again.
func (m *matrix) withoutFailed(bare, here []byte) (want, got []byte) {
	if !bytes.Contains(bare, []byte(" FAILED")) {
		return bare, here
	}
	a, b := strings.Split(string(bare), "\n"), strings.Split(string(here), "\n")
	for i := range a {
		if i >= len(b) {
			break
		}
		reuse := m.reuse != "" && strings.HasPrefix(b[i], m.reuse+" FAILED")
		if reuse {
			m.failing = append(m.failing, m.reuse+" (also if a program uses images again)")
		}
		if reuse || strings.Contains(a[i], " FAILED") {
			a[i], b[i] = "", ""
		}
	}
	return []byte(strings.Join(a, "\n")), []byte(strings.Join(b, "\n"))
}

// compare runs a program bare and in ways.
func (m *matrix) compare(t *testing.T, p driven, ways []served) {
	t.Helper()
	if why := m.fails[p.name]; why != "" {
		m.failing = append(m.failing, p.name+" ("+why+")")
		return
	}
	c := command{args: p.args, env: m.environment(t)}
	bare := again(func() outcome { return run(t, c) })
	checks := bytes.Count(bare.stdout, []byte(" FAILED"))
	if checks > 0 {
		m.failing = append(m.failing, fmt.Sprintf("%d checks of %s", checks, p.name))
	} else if bare.code != 0 && strings.HasPrefix(p.name, "soak") {
		m.failing = append(m.failing, p.name+" "+p.args[len(p.args)-1])
		return
	} else if bare.code != 0 {
		t.Fatalf("%s: bare: %s, which is not listed\n%s", p.name, bare, bare.stderr)
	}
	for _, way := range ways {
		if p.fits != nil && !p.fits(way) {
			continue
		}
		here := again(func() (result outcome) {
			result, _ = way.run(t, c)
			return result
		})
		m.runs++
		want, got := m.withoutFailed(bare.stdout, here.stdout)
		difference := differingLines(want, got, 5)
		same := difference == "" && (checks > 0 || here.sameEnd(bare))
		if !same && strings.HasPrefix(p.name, "soak") && unsteady(t, c, bare) {
			m.failing = append(m.failing, p.name+" "+p.args[len(p.args)-1]+" at times")
			return
		}
		if !same {
			m.different++
			t.Errorf("%s under %s: %s, bare %s\n%s%s", p.name, way, here, bare, difference, here.stderr)
		}
	}
}

// tools runs the commands that look at a driver.
func (m *matrix) tools(t *testing.T) {
	t.Helper()
	env := m.environment(t)
	for _, args := range [][]string{
		{"probe", "--budget", "1s", "--max", "64K"},
		{"fit", "--", fault("hungry"), "-s", "4", "1M"},
	} {
		m.runs++
		if result := run(t, command{args: append([]string{gpumemtop()}, args...), env: env}); result.code != 0 {
			m.different++
			t.Errorf("%s: %s\n%s%s", args[0], result, result.stdout, result.stderr)
		}
	}
	name := fmt.Sprintf("e2edriver%s", m.name[:3])
	w := attach(t, "--comm", name)
	m.runs++
	result := run(t, command{args: []string{called(t, example("leak"), name), "4", "16K"}, env: env})
	w.leave()
	if got := reportOf(t, w.file).DriverCreates; got != 16 || result.code != 0 {
		m.different++
		t.Errorf("attach: %s, %d creates seen of 16", result, got)
	}
}

// Programs do on every driver under every policy what they do without us.
func TestDrivers(t *testing.T) {
	t.Parallel()
	ways := []served{{policy: "futhark"}, {policy: "slab"}}
	if *driversAll {
		ways = append(ways, served{policy: "none"}, served{policy: "pow2"}, served{policy: "buddy"}, served{policy: "ualloc"}, served{policy: "arena"})
	}
	for _, d := range []driver{basic, twoDevices, rusticl, clover, oclgrind, twoPlatforms} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			m := matrix{driver: d}
			env := m.environment(t)
			for _, p := range drivenPrograms(&d) {
				if p.quick || *driversAll {
					m.compare(t, p, ways)
				}
			}
			if f := doctor(t, 0, env...); !f.Usable {
				t.Errorf("doctor: %+v", f)
			}
			if *driversAll {
				m.tools(t)
			}
			fmt.Fprintln(os.Stdout, "driver", &m)
		})
	}
}
