package machine

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSharedDevices reads free memory as amdgpu's sysfs and NVIDIA's library say it.
func TestSharedDevices(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, "testdata/fake_nvml.c").CombinedOutput()
	if err != nil {
		t.Fatalf("build the library: %v\n%s", err, out)
	}
	r := newRecorded(t)
	r.nvml = &nvml{library: library}
	r.write("dev/nvidiactl", "")
	r.write("proc/7/statm", "1 1 1")
	r.descriptor(7, 3, "/dev/nvidia0", "")
	r.write("sys/bus/pci/devices/0000:03:00.0/mem_info_vram_total", "17163091968\n")
	r.write("sys/bus/pci/devices/0000:03:00.0/mem_info_vram_used", "17000000000\n")
	p := r.OpenProcess(7)
	defer p.Close()
	r.BeginRound()
	p.ReadFigures()
	got := p.ReadSharedMemory([]uint64{0, 3 << 8, 1<<16 | 0xc1<<8, 9 << 8}, false)
	want := []Shared{
		{Name: "0000:03:00.0", Total: 17163091968, Free: 163091968},
		{Name: "0001:c1:00.0", Total: 80 << 30, Free: 1 << 30},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSharedOfGroups reads free memory as control groups have it, all regions of a device together; without groups that count, there is
// nothing to read.
func TestSharedOfGroups(t *testing.T) {
	r := newRecorded(t)
	r.write("proc/7/statm", "1 1 1")
	p := r.OpenProcess(7)
	defer p.Close()
	r.BeginRound()
	r.write("cgroup/dmem.capacity", "drm/0000:04:00.0/vram1 1000\ndrm/0000:04:00.0/vram0 3000\ndrm/0000:03:00.0/stolen 50\n")
	if got := p.ReadSharedMemory([]uint64{4 << 8}, false); got != nil {
		t.Errorf("without groups: %+v", got)
	}
	r.write("cgroup/user.slice/dmem.current", "drm/0000:04:00.0/vram1 0\ndrm/0000:04:00.0/vram0 2500\ndrm/0000:03:00.0/stolen 0\n")
	r.write("cgroup/user.slice/user-0.slice/dmem.current", "drm/0000:04:00.0/vram0 2500\n") // a part of the group above
	r.write("cgroup/system.slice/dmem.current", "drm/0000:04:00.0/vram1 300\ndrm/0000:04:00.0/vram0 0\n")
	if diff := cmp.Diff([]Shared{{Name: "0000:04:00.0", Total: 4000, Free: 1200}}, p.ReadSharedMemory([]uint64{4 << 8, 5 << 8}, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDeviceAddress: identities as the shim writes them.
func TestDeviceAddress(t *testing.T) {
	for identity, want := range map[string]uint64{
		"pci 0001:c1:00.2 uuid 00": 1<<16 | 0xc1<<8 | 2, "pci 0000:03:00.0": 3 << 8, "local 1": 0, "uuid 0102": 0, "pci": 0, "pci x": 0, "": 0,
	} {
		if got := DeviceAddress(identity); got != want {
			t.Errorf("%q: %#x, want %#x", identity, got, want)
		}
	}
}

// TestSharedHost reads the host and the control groups that bound a process, each with the lowest of its limits.
func TestSharedHost(t *testing.T) {
	r := newRecorded(t)
	host := Shared{Name: "host", Total: 16 << 30, Free: 4 << 30}
	r.write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1000 kB\nMemAvailable:    4194304 kB\n")
	r.write("proc/7/cgroup", "4:memory:/old\n0::/a/b\n")
	r.write("cgroup/a/b/memory.max", "max\n")
	r.write("cgroup/a/b/memory.high", "1000000\n")
	r.write("cgroup/a/b/memory.current", "990000\n")
	r.write("cgroup/a/b/memory.stat", "anon 5\nactive_file 30000\ninactive_file 10000\n")
	r.write("cgroup/a/b/memory.pressure", "some avg10=1.00 avg60=0.00 avg300=0.00 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n")
	r.write("cgroup/a/memory.max", "2000000\n")
	r.write("cgroup/a/memory.high", "max\n")
	r.write("cgroup/a/memory.current", "3000000\n")
	r.write("cgroup/memory.current", "1\n") // the top has no limit
	r.write("cgroup/memory/old/memory.limit_in_bytes", "500\n")
	r.write("cgroup/memory/old/memory.usage_in_bytes", "300\n")
	r.write("cgroup/memory/old/memory.stat", "active_file 7\ntotal_active_file 100\n")
	r.write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n") // none
	r.write("cgroup/memory/memory.usage_in_bytes", "300\n")
	p := r.OpenProcess(7)
	defer p.Close()
	want := []Shared{
		host,
		{Name: r.groups + "/a/b", Total: 1000000, Free: 50000, Stalled: 4711000},
		{Name: r.groups + "/a", Total: 2000000, Free: 0},
		{Name: r.groups + "/memory/old", Total: 500, Free: 300},
	}
	if diff := cmp.Diff(want, p.ReadSharedMemory(nil, true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := p.ReadSharedMemory(nil, false); got != nil {
		t.Errorf("a device with memory of its own: %+v", got)
	}
	r.write("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    1048576 kB\n") // while the file is open
	r.write("cgroup/a/memory.current", "500000\n")
	want[0].Free, want[2].Free = 1<<30, 1500000
	if diff := cmp.Diff(want, p.ReadSharedMemory(nil, true)); diff != "" {
		t.Errorf("read again: (-want +got):\n%s", diff)
	}
}
