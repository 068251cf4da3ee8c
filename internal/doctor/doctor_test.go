package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// machine is an imagined system: files, and what the probe answers.
type machine struct {
	*System
	files  fstest.MapFS
	probes map[string]string // by what is asked; those with "killed" at their end fail
}

func newMachine() *machine {
	m := &machine{files: fstest.MapFS{}, probes: map[string]string{}}
	for path, text := range map[string]string{
		"/etc/OpenCL/vendors/good.icd": "libgood.so\n", "/lib/libOpenCL.so.1": "\x7fELF OPENCL_LAYERS",
	} {
		m.put(path, text)
	}
	m.probes[harmless] = "preloaded\nend\n"
	m.probes["libgood.so"] = "preloaded\nend\n"
	m.probes["opencl"] = "preloaded\nloader\t/lib/libOpenCL.so.1\tICD Loader\t2.3\nplatform\tGood\tOpenCL 3.0\n" +
		"device\tCard\t1.2\tOpenCL 3.0 x\t8589934592\t2147483648\t1024\nend\n"
	m.System = &System{
		Environ:  []string{"TERM=xterm-256color", "LANG=C.UTF-8"},
		ReadFile: func(path string) ([]byte, error) { return m.files.ReadFile(strings.TrimPrefix(path, "/")) },
		Stat:     func(path string) (fs.FileInfo, error) { return m.files.Stat(strings.TrimPrefix(path, "/")) },
		Glob: func(pattern string) ([]string, error) {
			list, err := m.files.Glob(strings.TrimPrefix(pattern, "/"))
			for i := range list {
				list[i] = "/" + list[i]
			}
			return list, err
		},
		Folders: func() []session.Place { return []session.Place{{Path: "/run/user/1"}, {Path: "/tmp"}} },
		Probe:   m.probe,
		Preloaded: func(library string) session.PreloadKind {
			return map[string]session.PreloadKind{"/wraps.so": session.PreloadWrapper, "/loads.so": session.PreloadLoader}[library]
		},
		Memfd:     func() error { return nil },
		OpenFiles: func() uint64 { return 1024 },
		Release:   func() string { return "6.12" },
		Rights: func() *rights.Report {
			return &rights.Report{Features: []rights.Feature{
				{Name: rights.FeatureKernel, State: rights.Yes, Detail: "Linux 6.12", Needed: true},
				{Name: rights.FeatureSettings, State: rights.Unknown, Detail: "cannot be read"},
			}}
		},
		Terminal: func() (int, int, bool) { return 120, 36, true },
	}
	return m
}

func (m *machine) put(path, text string) {
	m.files[strings.TrimPrefix(path, "/")] = &fstest.MapFile{Data: []byte(text)}
}

func (m *machine) probe(what string) (string, error) {
	out, known := m.probes[what]
	if !known {
		return "preloaded\nerror\t" + what + ": cannot open shared object file\nend\n", nil
	}
	if before, killed := strings.CutSuffix(out, "killed"); killed {
		return before, errors.New("signal: segmentation fault")
	}
	return out, nil
}

func options() Options {
	return Options{
		Version: "gpumemtop 1\n", Policies: []string{"none", "futhark"}, Check: func() error { return nil },
		Settings: map[string]string{"GPUMEMTOP_POLICY": "policy", "GPUMEMTOP_MAX_CACHED": "max-cached"},
	}
}

func TestAGoodMachine(t *testing.T) {
	r := ExamineSystem(newMachine().System, options())
	if !r.Usable {
		t.Error("it cannot be used")
	}
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Level == Warning || l.Level == Problem {
			t.Errorf("%+v", *l)
		}
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  ok  device Card (Good): driver 1.2, OpenCL 3.0 x\n      its memory: 8.00 GiB, at most 2.00 GiB in one buffer; sub-buffers are aligned to 128 bytes\n",
		"  ok  /etc/OpenCL/vendors/good.icd: libgood.so loads\n", "loader /lib/libOpenCL.so.1: ICD Loader 2.3\n",
		"  ok  sessions use /run/user/1", "256 colours", "  ok  programs that run already can be watched: gpumemtop attach\n  ok  Linux 6.12\n      cannot be read\n", "\nPrograms can be run under gpumemtop.\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// Each row breaks one thing and wants one line about it.
func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(m *machine)
		level Level
		want  string
	}{
		{"no libraries in this build", func(m *machine) {
			m.Probe = func(string) (string, error) { return "", fmt.Errorf("x: %w", payload.ErrNotBuilt) }
		}, Problem, "built without its libraries"},
		{"not preloaded", func(m *machine) { m.probes[harmless] = "" }, Problem, "does not get into programs"},
		{"preload crashes", func(m *machine) { m.probes[harmless] = "killed" }, Problem, "segmentation fault"},
		{"no loader", func(m *machine) {
			m.probes["opencl"] = "preloaded\nerror\tlibOpenCL.so.1: cannot open shared object file\nend\n"
		}, Problem, "there is no OpenCL"},
		{"no platform", func(m *machine) {
			m.probes["opencl"] = "preloaded\nloader\t/lib/libOpenCL.so.1\t\t\nerror\tclGetPlatformIDs returned -1001\nend\n"
		}, Problem, "no platform, or none with a device"},
		{"no device", func(m *machine) { m.probes["opencl"] = "preloaded\nplatform\tA\tB\nend\n" }, Problem, "no OpenCL device was found"},
		{"driver crashes", func(m *machine) { m.probes["opencl"] = "preloaded\nplatform\tA\tB\nkilled" }, Problem, "segmentation fault"},
		{"second driver crashes", func(m *machine) {
			m.probes["opencl"] = strings.TrimSuffix(m.probes["opencl"], "end\n") + "platform\tA\tB\nkilled"
		}, Warning, "then: signal: segmentation fault"},
		{"driver ends the process", func(m *machine) {
			m.probes["opencl"] = strings.TrimSuffix(m.probes["opencl"], "end\n")
		}, Warning, "ended in the middle"},
		{"old loader", func(m *machine) { m.put("/lib/libOpenCL.so.1", "ELF") }, Warning, "knows no layers"},
		{"silent device", func(m *machine) {
			m.probes["opencl"] = "preloaded\ndevice\tCard\t1\t2\t0\t0\t0\nend\n"
		}, Warning, "does not tell its memory"},
		{"driver is gone", func(m *machine) { m.put("/etc/OpenCL/vendors/old.icd", "libold.so") }, Warning, "old.icd: libold.so does not load: libold.so: cannot open"},
		{"empty file", func(m *machine) { m.put("/etc/OpenCL/vendors/old.icd", "\n") }, Warning, "old.icd names no library"},
		{"no driver", func(m *machine) { delete(m.files, "etc/OpenCL/vendors/good.icd") }, Warning, "no driver is registered in /etc/OpenCL/vendors"},
		{"other vendors", func(m *machine) { m.Environ = append(m.Environ, "OCL_ICD_VENDORS=libmine.so") }, Warning, "libmine.so does not load"},
		{"more drivers", func(m *machine) { m.Environ = append(m.Environ, "OCL_ICD_FILENAMES=liba.so:libgood.so") }, Warning, "liba.so does not load"},
		{"typo", func(m *machine) { m.Environ = append(m.Environ, "GPUMEMTOP_POLICI=pow2") }, Warning, "GPUMEMTOP_POLICI sets nothing"},
		{"in a session", func(m *machine) { m.Environ = append(m.Environ, "GPUMEMTOP_SESSION=/x") }, Warning, "this runs under gpumemtop"},
		{"in a probe", func(m *machine) { m.Environ = append(m.Environ, "GPUMEMTOP_PROBE=opencl") }, Warning, "would be probed"},
		{"preloaded before", func(m *machine) { m.Environ = append(m.Environ, "LD_PRELOAD=/a.so") }, Warning, "LD_PRELOAD is set already, and is kept behind gpumemtop's library: /a.so"},
		{"wrapper before", func(m *machine) { m.Environ = append(m.Environ, "LD_PRELOAD=/a.so:/wraps.so") }, Warning, "kept in front of gpumemtop's library, because it wraps OpenCL: /wraps.so"},
		{"loader before", func(m *machine) { m.Environ = append(m.Environ, "LD_PRELOAD=/loads.so") }, Warning, "may get none of the program's calls under gpumemtop: /loads.so"},
		{"system preload", func(m *machine) { m.put("/etc/ld.so.preload", "/a.so\n/b.so\n") }, Warning, "into every program: /a.so /b.so"},
		{"no folder", func(m *machine) {
			m.Folders = func() []session.Place {
				return []session.Place{{Path: "/tmp", Err: errors.New("/tmp: mounted noexec")}}
			}
		}, Problem, "no place for a session's folder"},
		{"no memfd", func(m *machine) { m.Memfd = func() error { return errors.New("not permitted") } }, Problem, "no memory can be shared"},
		{"few files", func(m *machine) { m.OpenFiles = func() uint64 { return 20 } }, Warning, "20 open files"},
		{"no rights", func(m *machine) {
			m.Rights = func() *rights.Report {
				return &rights.Report{Obstacle: "attach needs CAP_BPF", Advice: "run it through sudo"}
			}
		}, Warning, "programs that run already cannot be watched: attach needs CAP_BPF"},
		{"few rights", func(m *machine) {
			m.Rights = func() *rights.Report {
				return &rights.Report{Features: []rights.Feature{{State: rights.No, Detail: "other users' processes cannot be looked into"}}}
			}
		}, Warning, "other users' processes cannot be looked into"},
		{"no terminal", func(m *machine) { m.Terminal = func() (int, int, bool) { return 0, 0, false } }, Warning, "there is no terminal"},
		{"small terminal", func(m *machine) { m.Terminal = func() (int, int, bool) { return 40, 10, true } }, Warning, "40x10 cells"},
		{"dumb", func(m *machine) { m.Environ = []string{"TERM=dumb", "LANG=C.UTF-8"} }, Warning, `TERM is "dumb"`},
		{"no UTF-8", func(m *machine) { m.Environ = []string{"TERM=xterm", "LC_ALL=C", "LANG=C.UTF-8"} }, Warning, `the locale "C" is not UTF-8`},
		{"no locale", func(m *machine) { m.Environ = []string{"TERM=xterm"} }, Warning, "no locale is set"},
		{"CI", func(m *machine) { m.Environ = append(m.Environ, "CI=true") }, Warning, "CI is set"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine()
			test.spoil(m)
			r := ExamineSystem(m.System, options())
			found := slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Level == test.level && strings.Contains(l.Text, test.want) })
			if !found {
				t.Errorf("no %s with %q in %+v", test.level, test.want, r.Lines)
			}
			if r.Usable == (test.level == Problem) {
				t.Errorf("usable: %v", r.Usable)
			}
		})
	}
}

// Where nothing can be watched, that is the warning; what else is missing is reported with it.
func TestOneWarningForMissingRights(t *testing.T) {
	m := newMachine()
	m.Rights = func() *rights.Report {
		return &rights.Report{Obstacle: "attach needs CAP_BPF", Advice: "run it through sudo", Features: []rights.Feature{
			{State: rights.No, Detail: "CAP_BPF is not held", Needed: true},
			{State: rights.No, Detail: "/proc is mounted with hidepid", Advice: "CAP_SYS_PTRACE shows them"},
		}}
	}
	r := ExamineSystem(m.System, options())
	var got []Line
	for _, l := range r.Lines {
		if l.Area == areaAttaching {
			got = append(got, l)
		}
	}
	want := []Line{
		{areaAttaching, Warning, "programs that run already cannot be watched: attach needs CAP_BPF", "run it through sudo"},
		{areaAttaching, Fact, "CAP_BPF is not held", ""},
		{areaAttaching, Fact, "/proc is mounted with hidepid", "CAP_SYS_PTRACE shows them"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What to do depends on how it came that there is no device.
func TestAdviceOnNoDevice(t *testing.T) {
	for _, test := range []struct{ said, want string }{
		{"preloaded\nerror\tclGetPlatformIDs returned -1001\nend\n", "install or repair a driver"},
		{"preloaded\nplatform\tA\tB\nerror\tclGetDeviceIDs returned -1\nend\n", "groups video and render"},
		{"preloaded\nkilled", "one that crashes"},
	} {
		m := newMachine()
		m.probes["opencl"], m.Root = test.said, false
		r := ExamineSystem(m.System, options())
		if !slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Level == Problem && strings.Contains(l.Advice, test.want) }) {
			t.Errorf("%q: no advice with %q in %+v", test.said, test.want, r.Lines)
		}
	}
}

func TestSettings(t *testing.T) {
	m := newMachine()
	m.Environ = append(m.Environ, "GPUMEMTOP_POLICY=pow2", "GPUMEMTOP_MAX_CACHED=", "GPUMEMTOP_MAXCACHED=1", "GPUMEMTOP_XYZZY_PLUGH=1")
	o := options()
	o.SettingsFile = "/home/u/config.toml"
	o.Check = func() error { return errors.New("no such policy") }
	r := ExamineSystem(m.System, o)
	var got []string
	for _, l := range r.Lines {
		if l.Area == areaSettings {
			got = append(got, string(l.Level)+": "+l.Text+" > "+l.Advice)
		}
	}
	want := []string{
		"fact: /home/u/config.toml is read > ",
		"warning: GPUMEMTOP_MAXCACHED sets nothing: gpumemtop knows no such variable > did you mean GPUMEMTOP_MAX_CACHED?",
		"fact: GPUMEMTOP_MAX_CACHED is empty, and so is not looked at > ",
		"fact: GPUMEMTOP_POLICY sets --policy to pow2 > ",
		"warning: GPUMEMTOP_XYZZY_PLUGH sets nothing: gpumemtop knows no such variable > see the table of settings in gpumemtop --help; or unset GPUMEMTOP_XYZZY_PLUGH",
		"problem: these settings do not work: no such policy > correct or remove it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Usable {
		t.Error("settings that do not work are no problem")
	}
}

func TestJSON(t *testing.T) {
	r := ExamineSystem(newMachine().System, options())
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if !back.Usable || !slices.Equal(back.Lines, r.Lines) {
		t.Errorf("got %+v", back)
	}
}

// TestTerminal: colours and letters are those that the dashboard uses.
func TestTerminal(t *testing.T) {
	for environ, want := range map[string]string{
		"TERM=xterm-kitty": "80x24 cells, 16 million colours", "TERM=tmux-256color TMUX=/tmp/tmux,1,0": "80x24 cells, 16 million colours",
		"TERM=xterm": "80x24 cells, 16 colours", "TERM=xterm-256color NO_COLOR=1": "no colours (NO_COLOR)",
		"TERM=linux": "the dashboard draws with half blocks", "TERM=vt220": "with this TERM the dashboard draws with ASCII", "TERM=xterm LC_CTYPE=C": `the locale "C" is not UTF-8: the dashboard draws with ASCII`,
	} {
		var r Report
		r.checkTerminal(&System{Environ: append(strings.Fields(environ), "LANG=C.UTF-8"), Terminal: func() (int, int, bool) { return 80, 24, true }})
		if text := fmt.Sprint(r); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in %s", environ, want, text)
		}
	}
}
