package machine

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// parsePages reads /proc/PID/statm: the resident pages, and those of them that are neither of a file nor shared. These leave out
// code, the rings of gpumemtop, and buffers of a kernel's driver that the process maps.
func parsePages(statm []byte) (anonymous, resident uint64, ok bool) {
	fields := bytes.Fields(statm)
	if len(fields) < 3 || string(fields[0]) == "0" { // it has ended, and its parent does not know yet
		return 0, 0, false
	}
	resident, err := strconv.ParseUint(string(fields[1]), 10, 64)
	shared, err2 := strconv.ParseUint(string(fields[2]), 10, 64)
	if err != nil || err2 != nil {
		return 0, 0, false
	}
	return resident - min(shared, resident), resident, true
}

// client is one open file of a DRM device, as fdinfo describes it.
type client struct {
	device   uint64 // PCI address, see Figure
	driver   string
	id       uint64
	hasID    bool
	resident uint64
	measures bool // the driver says something of memory
}

// memoryKeys are the keys of memory, the best last. "drm-memory-" is an older name of "drm-resident-"; what "drm-total-"
// counts need not be there yet. Keys that begin with "amd-" name parts of regions.
var memoryKeys = []string{"drm-total-", "drm-memory-", "drm-resident-"}

// panthorKey counts what the kernel allocated itself for a client: queues, heaps. drm-resident- leaves it out (Linux 6.15:
// Documentation/gpu/panthor.rst).
const panthorKey = "panthor-resident-memory"

// parseDRMClient reads /proc/PID/fdinfo/N (Linux: Documentation/gpu/drm-usage-stats.rst). ok is false if it is not a DRM
// file. Each region counts with its best key. Values that make no sense are left out.
func parseDRMClient(fdinfo []byte) (c client, ok bool) {
	regions := map[string]amount{}
	for line := range strings.Lines(string(fdinfo)) {
		key, value, found := strings.Cut(line, ":")
		if !found {
			continue
		}
		value = strings.TrimSpace(value)
		switch key {
		case "drm-driver":
			c.driver = value
			continue
		case "drm-pdev":
			c.device, _ = parseAddress(value)
			continue
		case "drm-client-id":
			id, err := strconv.ParseUint(value, 10, 64)
			c.id, c.hasID = id, err == nil
			continue
		}
		if n, valid := parseAmount(value); key == panthorKey && valid {
			regions[key] = amount{bytes: n}
			continue
		}
		noteRegionAmount(regions, key, value)
	}
	for _, a := range regions {
		c.resident = saturatingSum(c.resident, a.bytes)
	}
	c.measures = len(regions) > 0
	return c, c.driver != ""
}

// amount is what a region has, by the key of a rank.
type amount struct {
	bytes uint64
	rank  int
}

// noteRegionAmount notes what a key says of a region, unless a better one has.
func noteRegionAmount(regions map[string]amount, key, value string) {
	for rank, prefix := range memoryKeys {
		region, is := strings.CutPrefix(key, prefix)
		if !is || strings.HasPrefix(region, "cycles-") { // xe has drm-total-cycles-ENGINE
			continue
		}
		if n, valid := parseAmount(value); valid && rank >= regions[region].rank {
			regions[region] = amount{n, rank}
		}
	}
}

// parseAmount reads "24 KiB", "3 MiB", or bytes without a unit.
func parseAmount(text string) (uint64, bool) {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, false
	}
	factor := uint64(1)
	switch strings.TrimSpace(unit) {
	case "":
	case "KiB":
		factor = 1 << 10
	case "MiB":
		factor = 1 << 20
	default:
		return 0, false
	}
	high, low := bits.Mul64(n, factor)
	return low, high == 0
}

// parseAddress reads a PCI address such as "0000:03:00.0"; NVML writes its domain with eight digits.
func parseAddress(text string) (uint64, bool) {
	var parts [4]uint64
	rest := text
	for i, end := range []string{":", ":", ".", ""} {
		digits := rest
		if end != "" {
			var found bool
			if digits, rest, found = strings.Cut(rest, end); !found {
				return 0, false
			}
		}
		n, err := strconv.ParseUint(digits, 16, []int{32, 8, 5, 3}[i])
		if err != nil {
			return 0, false
		}
		parts[i] = n
	}
	return parts[0]<<16 | parts[1]<<8 | parts[2]<<3 | parts[3], true
}

// DeviceAddress returns the PCI address in the identity of a DEVICE, see Figure; 0: it has none.
func DeviceAddress(identity string) uint64 {
	if words := strings.Fields(identity); len(words) > 1 && words[0] == "pci" {
		address, _ := parseAddress(words[1])
		return address
	}
	return 0
}

// parseDeviceMemory reads dmem.current of a control group (Linux: Documentation/admin-guide/cgroup-v2.rst), whose lines
// are "drm/0000:03:00.0/vram0 12550144", and returns bytes by device.
func parseDeviceMemory(text []byte) map[uint64]uint64 {
	devices := map[uint64]uint64{}
	for line := range strings.Lines(string(text)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		if !found || err != nil {
			continue
		}
		device := uint64(0)
		for part := range strings.SplitSeq(name, "/") {
			if address, ok := parseAddress(part); ok {
				device = address
			}
		}
		if _, known := devices[device]; known || len(devices) < devicesMax {
			devices[device] = saturatingSum(devices[device], n)
		}
	}
	return devices
}

// parseGroupPath reads /proc/PID/cgroup and returns the path behind a mark: "0::/" is that of the version 2 group, ":memory:/"
// that of version 1. It returns false if there is none that we can see.
func parseGroupPath(text []byte, mark string) (string, bool) {
	for line := range strings.Lines(string(text)) {
		before, path, found := strings.Cut(strings.TrimSuffix(line, "\n"), mark)
		if strings.Trim(before, "0123456789") != "" {
			continue
		}
		if found && !strings.HasPrefix(path, "..") && !strings.Contains(path, "\x00") {
			return path, true
		}
	}
	return "", false
}

// parseOOMKills returns the number behind "oom_kill" in memory.events or memory.oom_control.
func parseOOMKills(text []byte) (uint64, bool) {
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "oom_kill "); found {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// saturatingSum returns a sum, or the largest number.
func saturatingSum(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}
