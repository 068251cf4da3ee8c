package machine

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestClients reads what each driver writes. The files in testdata/fdinfo follow the examples and formats of the kernel's
// documentation and sources, named in their first line, which no parser may mind.
func TestClients(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for name, want := range map[string]client{
		"amdgpu-5.19":  {device: 0x0c<<8 | 0<<3, driver: "amdgpu", id: 8, hasID: true, resident: (524816 + 26112) * kib, measures: true},
		"amdgpu-6.13":  {device: 0x03 << 8, driver: "amdgpu", id: 31, hasID: true, resident: (2048 + 18432 + 1310720) * kib, measures: true},
		"i915":         {device: 2 << 3, driver: "i915", id: 7, hasID: true, resident: (60416 + 1024) * kib, measures: true},
		"xe":           {device: 3 << 8, driver: "xe", id: 3, hasID: true, resident: (192 + 23992) * kib, measures: true},
		"panfrost":     {driver: "panfrost", id: 14, hasID: true, resident: 36496 * kib, measures: true},
		"panthor":      {driver: "panthor", id: 10, hasID: true, resident: (9 + 16) * mib, measures: true},
		"msm":          {driver: "msm", id: 4, hasID: true, resident: 118784 * kib, measures: true},
		"total-only":   {driver: "lima", id: 9, hasID: true, resident: 16 * mib, measures: true},
		"units":        {device: 0xabcd<<16 | 0xff<<8 | 0x1f<<3 | 7, driver: "vgem", resident: 4096 + 3*kib + 2*mib, measures: true},
		"out-of-range": {driver: "vgem", id: math.MaxUint64, hasID: true, resident: math.MaxUint64, measures: true},
	} {
		got, ok := parseDRMClient(file(t, "fdinfo", name))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(client{})); diff != "" || !ok {
			t.Errorf("%s: %v (-want +got):\n%s", name, ok, diff)
		}
	}
	// nouveau has no show_fdinfo (Linux 6.12, drivers/gpu/drm/nouveau/nouveau_drm.c), so its file is like any other.
	for _, name := range []string{"nouveau", "eventfd"} {
		if c, ok := parseDRMClient(file(t, "fdinfo", name)); ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func file(t *testing.T, elements ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAnonymous(t *testing.T) {
	for text, want := range map[string]uint64{"1000 300 120 4 0 90 0\n": 180, "1 2 3": 0, "9 9 9 9": 0} {
		if got, _, ok := parsePages([]byte(text)); !ok || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1 2", "1 -2 3", "1 2 x", "0 0 0 0 0 0 0\n", "1 18446744073709551616 0"} {
		if got, _, ok := parsePages([]byte(text)); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]uint64{"0000:03:00.0": 0x300, "00000001:c1:1f.7": 1<<16 | 0xc1<<8 | 0xff, "0:0:0.0": 0} {
		if got, ok := parseAddress(text); !ok || got != want {
			t.Errorf("%q: %x, %v, want %x", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "soc:gpu", "0000:03:00", "0000:100:00.0", "0000:00:20.0", "0000:00:00.8", "0:0:0.0.0", "-1:0:0.0"} {
		if got, ok := parseAddress(text); ok {
			t.Errorf("%q: %x", text, got)
		}
	}
}

func TestDeviceMemory(t *testing.T) {
	want := map[uint64]uint64{0x300: 12550144 + 8650752, 0: 4096}
	if diff := cmp.Diff(want, parseDeviceMemory(file(t, "cgroup", "user.slice", "dmem.current"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGroups(t *testing.T) {
	for text, want := range map[string]string{
		"0::/user.slice/run-1.scope\n":         "user.slice/run-1.scope",
		"12:cpu:/a\n1:name=systemd:/b\n0::/\n": "",
		"4:memory:/x\n0::/a b\n":               "a b",
	} {
		if got, ok := parseGroupPath([]byte(text), "0::/"); !ok || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1:cpu:/a\n", "0::/../outside\n"} {
		if got, ok := parseGroupPath([]byte(text), "0::/"); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestKills(t *testing.T) {
	for text, want := range map[string]uint64{
		"low 0\nhigh 3\nmax 7\noom 2\noom_kill 5\noom_group_kill 1\n": 5, "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n": 3,
	} {
		if n, ok := parseOOMKills([]byte(text)); !ok || n != want {
			t.Errorf("%q: %d, %v, want %d", text, n, ok, want)
		}
	}
	for _, text := range []string{"", "oom_kill_disable 0\n", "oom_kill x\n", "oom_kill -1\n"} {
		if n, ok := parseOOMKills([]byte(text)); ok {
			t.Errorf("%q: %d", text, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"fdinfo/*", "cgroup/*/dmem.current"} {
		names, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(names) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte("1000 300 120 4 0 90 0\n"))
	f.Add([]byte("0::/user.slice\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if anonymous, resident, ok := parsePages(text); !ok && anonymous+resident != 0 {
			t.Errorf("%d and %d pages of nothing", anonymous, resident)
		}
		if c, ok := parseDRMClient(text); ok != (c.driver != "") || !c.measures && c.resident != 0 {
			t.Errorf("%+v, %v", c, ok)
		}
		if devices := parseDeviceMemory(text); len(devices) > devicesMax {
			t.Errorf("%d devices", len(devices))
		}
		parseOOMKills(text)
		if path, ok := parseGroupPath(text, "0::/"); ok && filepath.Join("/a", filepath.Clean("/"+path)) < "/a" {
			t.Errorf("%q leaves its folder", path)
		}
	})
}
