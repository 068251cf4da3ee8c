package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Shared is memory that a process shares with others: that of a device, of the host, or of a control group.
type Shared struct {
	Name        string // the same for all processes that share it
	Total, Free uint64 // bytes
	// Stalled is for how many ns some process of a control group has waited for memory, since the group was made.
	Stalled uint64
}

// ReadSharedMemory returns the memory of devices, by their PCI addresses, as far as it can be read; and with host that of the host and
// of the control groups that bound the process. amdgpu says it in sysfs, NVIDIA in its library, and for xe the control groups
// add up to it, where they have the controller dmem; i915 says nothing that all may read.
func (p *Process) ReadSharedMemory(devices []uint64, host bool) []Shared {
	var list []Shared
	for _, device := range devices {
		if s, ok := p.machine.readDeviceMemory(device, p.nvidia); ok {
			list = append(list, s)
		}
	}
	if !host {
		return list
	}
	here, known := p.machine.readHostMemory()
	if known {
		list = append(list, here)
	} else {
		here.Total = math.MaxUint64
	}
	for i := range p.limited {
		if s, ok := p.machine.readMemoryLeftOfGroup(&p.limited[i], here.Total); ok {
			list = append(list, s)
		}
	}
	return list
}

// readDeviceMemory reads the memory of the device at a PCI address.
func (m *Machine) readDeviceMemory(device uint64, nvidia bool) (Shared, bool) {
	if device == 0 {
		return Shared{}, false
	}
	name := fmt.Sprintf("%04x:%02x:%02x.%x", device>>16, device>>8&0xff, device>>3&0x1f, device&7)
	folder := filepath.Join(m.sys, "bus/pci/devices", name)
	total, ok := m.readNumberFile(filepath.Join(folder, "mem_info_vram_total"))
	used, ok2 := m.readNumberFile(filepath.Join(folder, "mem_info_vram_used"))
	free := total - min(used, total)
	if nvidia && !ok {
		total, free, ok = m.nvml.readDeviceMemory(device)
		ok2 = ok
	}
	if !ok {
		total, free, ok = m.readGroupsMemory(device)
		ok2 = ok
	}
	return Shared{Name: name, Total: total, Free: free}, ok && ok2
}

// readGroupsMemory reads the memory of a device as the control groups have it: the top says how much there is, and the groups
// below what they use (Linux: Documentation/admin-guide/cgroup-v2.rst). Processes at the top and the kernel itself are not
// counted.
func (m *Machine) readGroupsMemory(device uint64) (total, free uint64, ok bool) {
	total = parseDeviceMemory(m.readBeginning(filepath.Join(m.groups, "dmem.capacity")))[device]
	groups, err := filepath.Glob(filepath.Join(m.groups, "*", "dmem.current"))
	if total == 0 || err != nil || len(groups) == 0 {
		return 0, 0, false
	}
	used := uint64(0)
	for _, file := range groups {
		used = saturatingSum(used, parseDeviceMemory(m.readBeginning(file))[device])
	}
	return total, total - min(used, total), true
}

// readHostMemory reads what is left of this machine's memory.
func (m *Machine) readHostMemory() (Shared, bool) {
	text := m.readBeginning(filepath.Join(m.proc, "meminfo"))
	total, ok := numberAfter(text, "MemTotal:")
	free, ok2 := numberAfter(text, "MemAvailable:")
	return Shared{Name: "host", Total: total << 10, Free: free << 10}, ok && ok2
}

// group is a control group, with the names of its files.
type group struct {
	folder        string
	limits        []string
	now, pressure string
	cached        []string // in memory.stat: what the kernel takes back when memory is short
}

// limitingGroups returns the control groups whose limits of memory hold for a process, each before the one above it. text is
// /proc/PID/cgroup. In a container its path may be that outside: then only the mounted folder is there.
func (m *Machine) limitingGroups(text []byte) (list []group) {
	second := group{
		limits: []string{"memory.max", "memory.high"}, now: "memory.current", pressure: "memory.pressure",
		cached: []string{"active_file", "inactive_file"},
	}
	first := group{
		limits: []string{"memory.limit_in_bytes"}, now: "memory.usage_in_bytes",
		cached: []string{"total_active_file", "total_inactive_file"},
	}
	for _, way := range []struct {
		mark, below string
		files       group
	}{
		{"0::/", m.groups, second},
		{":memory:/", filepath.Join(m.groups, "memory"), first},
		{":memory:/", filepath.Join(filepath.Dir(m.groups), "memory"), first},
	} {
		path, ok := parseGroupPath(text, way.mark)
		if !ok {
			continue
		}
		for folder := filepath.Join(way.below, filepath.Clean("/"+path)); len(folder) >= len(way.below); folder = filepath.Dir(folder) {
			if _, err := os.Stat(filepath.Join(folder, way.files.now)); err == nil {
				g := way.files
				g.folder = folder
				list = append(list, g)
			}
		}
	}
	return list
}

// readMemoryLeftOfGroup reads what a group leaves below the lowest of its limits; false: it has none below a number of bytes.
// The long memory.stat is read only for a group that has one: all this is asked for ten times a second.
func (m *Machine) readMemoryLeftOfGroup(g *group, below uint64) (Shared, bool) {
	total := below
	for _, name := range g.limits {
		if limit, ok := m.readNumberFile(filepath.Join(g.folder, name)); ok { // "max" is no number
			total = min(total, limit)
		}
	}
	if total == below {
		return Shared{}, false
	}
	used, ok := m.readNumberFile(filepath.Join(g.folder, g.now))
	if !ok {
		return Shared{}, false
	}
	stat := m.readBeginning(filepath.Join(g.folder, "memory.stat"))
	for _, name := range g.cached {
		cached, _ := numberAfter(stat, name)
		used -= min(cached, used)
	}
	s := Shared{Name: g.folder, Total: total, Free: total - min(used, total)}
	if g.pressure != "" {
		s.Stalled = parseStalledNS(m.readBeginning(filepath.Join(g.folder, g.pressure)))
	}
	return s, true
}

// parseStalledNS returns the total of a pressure file's first line, in ns: "some avg10=0.00 avg60=0.00 avg300=0.00 total=12"
// says it in µs (Linux: Documentation/accounting/psi.rst).
func parseStalledNS(text []byte) uint64 {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	_, total, found := strings.Cut(string(line), "total=")
	micros, err := strconv.ParseUint(total, 10, 64)
	if !found || err != nil || !strings.HasPrefix(string(line), "some ") || micros > math.MaxUint64/1000 {
		return 0
	}
	return micros * 1000
}

// numberAfter returns the number behind a name at the beginning of a line.
func numberAfter(text []byte, name string) (uint64, bool) {
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == name {
			n, err := strconv.ParseUint(string(fields[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

func (m *Machine) readNumberFile(name string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(string(m.readBeginning(name))), 10, 64)
	return n, err == nil
}

// readBeginning returns the beginning of a file; none if it cannot be read. The file stays open, as the same few are read ten times a
// second, and to open one costs more than to read it. The kernel makes their text at each read, and refuses to read for a group that is gone.
func (m *Machine) readBeginning(name string) []byte {
	file := m.kept[name]
	if file == nil {
		var err error
		if file, err = os.Open(name); err != nil {
			return nil
		}
		if len(m.kept) >= keptMax {
			defer file.Close() //nolint:errcheck // only read
		} else {
			m.kept[name] = file
		}
	}
	n, err := file.ReadAt(m.text[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		delete(m.kept, name)
		_ = file.Close()
		return nil
	}
	return m.text[:n]
}
