package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recorded makes a machine out of files: processes with descriptors, and control groups.
type recorded struct {
	*Machine
	t      *testing.T
	folder string
}

func newRecorded(t *testing.T) *recorded {
	folder := t.TempDir()
	m := &Machine{
		proc: filepath.Join(folder, "proc"), groups: filepath.Join(folder, "cgroup"), dev: filepath.Join(folder, "dev"), sys: filepath.Join(folder, "sys"),
		nvml: &nvml{library: "no such library"}, page: 4096, now: time.Now,
		kept: map[string]*os.File{},
	}
	return &recorded{m, t, folder}
}

func (r *recorded) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// descriptor gives a process an open file, with what one in testdata says of it.
func (r *recorded) descriptor(pid, number int, target, fdinfo string) {
	r.t.Helper()
	folder := filepath.Join(r.folder, "proc", fmt.Sprint(pid), "fd")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(folder, fmt.Sprint(number))); err != nil {
		r.t.Fatal(err)
	}
	if fdinfo != "" {
		r.write(fmt.Sprintf("proc/%d/fdinfo/%d", pid, number), string(file(r.t, "fdinfo", fdinfo)))
	}
}

// figures reads one process once.
func (r *recorded) figures(pid int) []Figure {
	p := r.OpenProcess(pid)
	defer p.Close()
	r.BeginRound()
	return withoutRSS(p.ReadFigures())
}

// withoutRSS leaves out what each list has, see TestRSS.
func withoutRSS(list []Figure) []Figure {
	return slices.DeleteFunc(list, func(f Figure) bool { return f.Source == wire.MachineResident })
}

// TestRSS: what ps calls RSS has files and shared memory, too.
func TestRSS(t *testing.T) {
	r := newRecorded(t)
	r.write("proc/7/statm", "1000 300 120 4 0 90 0\n")
	p := r.OpenProcess(7)
	defer p.Close()
	r.BeginRound()
	want := []Figure{{Source: wire.MachineRSS, Bytes: 180 * 4096}, {Source: wire.MachineResident, Bytes: 300 * 4096}}
	if diff := cmp.Diff(want, p.ReadFigures()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func (r *recorded) want(pid int, want ...Figure) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.figures(pid)); diff != "" {
		r.t.Errorf("process %d (-want +got):\n%s", pid, diff)
	}
}

// TestClientCountsOnce: a client counts once, however many descriptors it has; devices are apart; other files do not count.
func TestClientCountsOnce(t *testing.T) {
	r := newRecorded(t)
	r.write("dev/dri/renderD128", "")
	r.write("proc/7/statm", "1000 300 120 4 0 90 0\n")
	rss := Figure{Source: wire.MachineRSS, Bytes: 180 * 4096}
	r.descriptor(7, 0, "/dev/null", "")
	r.want(7, rss)
	r.descriptor(7, 3, "/dev/dri/renderD128", "amdgpu-5.19")
	r.descriptor(7, 4, "/dev/dri/renderD128", "amdgpu-5.19") // a duplicate
	r.descriptor(7, 5, "/dev/dri/renderD129", "xe")
	r.descriptor(7, 6, "/dev/dri/card1", "amdgpu-6.13")
	r.descriptor(7, 8, "socket:[1]", "i915")
	r.descriptor(7, 9, "/dev/dri/renderD130", "panfrost")
	r.descriptor(7, 10, "/dev/dri/renderD131", "nouveau")
	r.want(7, rss,
		Figure{Source: wire.MachineDRM, Bytes: 36496 << 10},
		Figure{Source: wire.MachineDRM, Device: 0x300, Bytes: (2048 + 18432 + 1310720 + 192 + 23992) << 10},
		Figure{Source: wire.MachineDRM, Device: 0xc00, Bytes: (524816 + 26112) << 10})
}

// TestNewDescriptors: those that a process opens later are found once the list of descriptors is old enough; a list that
// takes long to make is kept long.
func TestNewDescriptors(t *testing.T) {
	r := newRecorded(t)
	now, step := time.Unix(1000, 0), time.Duration(0)
	r.now = func() time.Time { now = now.Add(step); return now }
	r.write("dev/dri/card0", "")
	r.write("proc/7/statm", "1 1 1")
	r.descriptor(7, 0, "/dev/null", "")
	p := r.OpenProcess(7)
	defer p.Close()
	count := func() int { r.BeginRound(); return len(p.ReadFigures()) }
	count()
	r.descriptor(7, 3, "/dev/dri/renderD128", "i915")
	now = now.Add(scanEvery - 1)
	if n := count(); n != 2 {
		t.Errorf("%d figures before the next scan", n)
	}
	now, step = now.Add(1), 10*time.Millisecond
	if n := count(); n != 3 || r.DescriptorScanTime() < step {
		t.Errorf("%d figures after the scan, which took %v", n, r.DescriptorScanTime())
	}
	if p.rest != scanShare*step {
		t.Errorf("the next scan after %v", p.rest)
	}
}

// TestUnreadableSaysSo: what may not be read says so, what is gone says nothing.
func TestUnreadableSaysSo(t *testing.T) {
	r := newRecorded(t)
	r.want(99)
	r.write("dev/dri/card0", "")
	r.write("proc/7/statm", "1 1 1")
	r.write("proc/7/fd", "") // not a folder
	list := r.figures(7)
	if len(list) != 2 || list[1].Source != wire.MachineDRM || unix.Errno(list[1].Unread) != unix.ENOTDIR {
		t.Errorf("without descriptors: %+v", list)
	}
	if got := errorNumber(&os.PathError{Err: unix.EACCES}); unix.Errno(got) != unix.EACCES {
		t.Errorf("no permission is %v", unix.Errno(got))
	}
	list = appendUnreadFigure(nil, wire.MachineRSS, int16(unix.EPERM))
	if want := []Figure{{Source: wire.MachineRSS, Unread: int16(unix.EPERM)}}; !cmp.Equal(list, want) {
		t.Errorf("no permission: %+v", list)
	}
}

// TestGroupsCountOnce: two processes of one control group have its memory once in each round.
func TestGroupsCountOnce(t *testing.T) {
	r := newRecorded(t)
	r.write("cgroup/user.slice/dmem.current", string(file(t, "cgroup", "user.slice", "dmem.current")))
	for _, pid := range []int{7, 8} {
		r.write(fmt.Sprintf("proc/%d/statm", pid), "1 1 1")
		r.write(fmt.Sprintf("proc/%d/cgroup", pid), "0::/user.slice\n")
	}
	r.write("proc/9/statm", "1 1 1")
	r.write("proc/9/cgroup", "0::/other.slice\n")
	rss := Figure{Source: wire.MachineRSS}
	whole := []Figure{rss, {Source: wire.MachineDMEM, Bytes: 4096}, {Source: wire.MachineDMEM, Device: 0x300, Bytes: 12550144 + 8650752}}
	seven, eight := r.OpenProcess(7), r.OpenProcess(8)
	for range 2 {
		r.BeginRound()
		if diff := cmp.Diff(whole, withoutRSS(seven.ReadFigures())); diff != "" {
			t.Errorf("the first (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]Figure{rss}, withoutRSS(eight.ReadFigures())); diff != "" {
			t.Errorf("the second (-want +got):\n%s", diff)
		}
	}
	r.want(9, rss)
}

// TestNVML asks a library that answers as NVIDIA's does.
func TestNVML(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, "testdata/fake_nvml.c").CombinedOutput()
	if err != nil {
		t.Fatalf("build the library: %v\n%s", err, out)
	}
	r := newRecorded(t)
	r.write("dev/nvidiactl", "")
	for _, pid := range []int{7, 8, 9} {
		r.write(fmt.Sprintf("proc/%d/statm", pid), "1 1 1")
		r.descriptor(pid, 3, "/dev/nvidia0", "")
	}
	rss := Figure{Source: wire.MachineRSS}
	r.want(7, rss, Figure{Source: wire.MachineNVML, Unread: int16(unix.ENOENT)})
	r.nvml = &nvml{library: library}
	r.want(7, rss,
		Figure{Source: wire.MachineNVML, Device: 0x4100, Bytes: 512 << 20},
		Figure{Source: wire.MachineNVML, Device: 1<<16 | 0xc1<<8, Bytes: 64 << 20})
	r.want(8, rss, Figure{Source: wire.MachineNVML, Device: 0x4100, Unread: int16(unix.ENODATA)})
	r.want(9, rss) // the library does not know it
	t.Setenv("FAKE_NVML_STATUS", "4")
	r.want(7, rss, Figure{Source: wire.MachineNVML, Unread: int16(unix.EACCES)})
}

// TestHere reads this process: memory that is touched counts, and memory that is only reserved does not.
func TestHere(t *testing.T) {
	const size = 64 << 20
	m := ThisMachine()
	p := m.OpenProcess(os.Getpid())
	defer p.Close()
	resident := func() uint64 {
		m.BeginRound()
		list := p.ReadFigures()
		if len(list) == 0 || list[0].Source != wire.MachineRSS || list[0].Unread != 0 {
			t.Fatalf("figures %+v", list)
		}
		return list[0].Bytes
	}
	before := resident()
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory) //nolint:errcheck // the test is over
	if now := resident(); now > before+size/2 {
		t.Errorf("untouched: %d bytes, then %d", before, now)
	}
	for i := 0; i < size; i += 4096 {
		memory[i] = 1
	}
	if now := resident(); now < before+size/2 || now > before+2*size {
		t.Errorf("touched: %d bytes, then %d", before, now)
	}
}

// BenchmarkRound is what a round costs for a process with many descriptors, one a device.
func BenchmarkRound(b *testing.B) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 10_100 {
		b.Skip("needs 10,000 descriptors: ", limit.Cur, err)
	}
	m := ThisMachine()
	m.devices = true
	for range 10_000 {
		f, err := os.Open("/dev/null")
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // only there
	}
	p := m.OpenProcess(os.Getpid())
	defer p.Close()
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			p.scanDescriptors()
		}
	})
	b.Run("figures", func(b *testing.B) {
		for b.Loop() {
			m.BeginRound()
			if len(p.ReadFigures()) == 0 {
				b.Fatal("no figures")
			}
		}
	})
}

// TestNamesOfMemory keeps the keys in the order of their rank.
func TestNamesOfMemory(t *testing.T) {
	text := "drm-driver: a\ndrm-resident-x: 1\ndrm-total-x: 100\ndrm-memory-x: 10\n"
	for _, order := range []string{text, strings.Replace(text, "drm-resident-x: 1\n", "", 1) + "drm-resident-x: 1\n"} {
		if c, ok := parseDRMClient([]byte(order)); !ok || c.resident != 1 {
			t.Errorf("%q: %+v", order, c)
		}
	}
}

// TestOOMKills: kills since the process was opened count, with version 2 of control groups and with version 1.
func TestOOMKills(t *testing.T) {
	for name, way := range map[string]struct{ group, file, other string }{
		"version 2": {"0::/a/b\n", "cgroup/a/b/memory.events", "oom_group_kill 9\n"}, "version 1": {"4:memory:/a\n0::/\n", "cgroup/memory/a/memory.oom_control", "under_oom 0\n"},
		"hybrid": {"4:memory:/a\n0::/\n", "memory/a/memory.oom_control", ""},
	} {
		m := newRecorded(t)
		m.write("proc/7/cgroup", way.group)
		m.write(way.file, way.other+"oom_kill 2\n")
		p := m.OpenProcess(7)
		if n, known := p.OOMKills(); n != 0 || !known {
			t.Errorf("%s: %d, %v before any", name, n, known)
		}
		m.write(way.file, way.other+"oom_kill 3\n")
		if n, known := p.OOMKills(); n != 1 || !known {
			t.Errorf("%s: %d, %v, want 1", name, n, known)
		}
		if err := os.RemoveAll(filepath.Join(m.folder, filepath.Dir(way.file))); err != nil {
			t.Fatal(err)
		}
		if n, known := p.OOMKills(); known {
			t.Errorf("%s: %d of a group that is gone", name, n)
		}
		p.Close()
	}
	m := newRecorded(t)
	m.write("proc/7/cgroup", "0::/a/b\n")
	p := m.OpenProcess(7)
	defer p.Close()
	if _, known := p.OOMKills(); known {
		t.Error("known without a group")
	}
}
