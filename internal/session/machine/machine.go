// Package machine reads what this machine reports of a process's memory: its anonymous resident memory, and what the
// kernel's driver, NVIDIA's library and the control group say of device memory. It does nothing to the process.
//
// gpumemtop asks, never the target. A round costs 18 µs of CPU time per process; the next comes after 400 times that at
// least, so that a thousand processes cost no more. PSS would cost a hundred times as much (smaps_rollup looks at each
// page). Anonymous memory is apart from RSS: files and shared memory have code and our rings in them. Descriptors are
// looked at only where there is a device: 10,000 take 150 ms, then at most every 75 s. NVML is loaded when a process has
// an NVIDIA device open; cgo was there for OpenCL, so no library for calls without it is needed. Growth beside the
// buffers is compared quarter by quarter, since warm-up ends and leaks do not; it must exceed what buffers could explain
// if all of them were touched, because a CPU driver's buffer becomes resident only then.
package machine

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	devicesMax = 64
	clientsMax = 256      // open DRM files of a process that are read
	textMax    = 64 << 10 // bytes read of a file
	keptMax    = 64       // files that stay open
	// scanEvery is how long the list of open devices is used, or scanShare times as long as it took to look at all
	// descriptors, where that is longer: a process may have 10,000 of them.
	scanEvery = 2 * time.Second
	scanShare = 500
)

// Figure is one figure of a process.
type Figure struct {
	Source wire.Machine
	Device uint64 // PCI address: domain << 16 | bus << 8 | device << 3 | function; 0: unknown, or the host
	Bytes  uint64
	Unread int16 // the errno with which it could not be read; 0: it was
}

// Machine is where figures are read. One goroutine at a time uses it and its processes.
type Machine struct {
	proc   string // /proc
	groups string // where control groups of version 2 are mounted
	dev    string // /dev
	sys    string // /sys
	nvml   *nvml
	page   uint64
	now    func() time.Time

	devices    bool             // there is one whose driver says what processes have
	groupsRead map[string]bool  // in this round
	named      map[int][]Figure // what NVIDIA's library said in this round, by pid
	scans      time.Duration    // spent in this round on lists of descriptors

	kept map[string]*os.File // by readBeginning
	text [textMax]byte       // of the file read last
}

// ThisMachine returns this machine.
func ThisMachine() *Machine {
	m := &Machine{
		proc: "/proc", groups: "/sys/fs/cgroup", dev: "/dev", sys: "/sys", nvml: &nvml{library: "libnvidia-ml.so.1"}, page: uint64(os.Getpagesize()), now: time.Now,
		kept: map[string]*os.File{},
	}
	if _, err := os.Stat(m.groups + "/unified/cgroup.controllers"); err == nil {
		m.groups += "/unified" // version 1 is mounted beside it
	}
	return m
}

// BeginRound begins a round: what concerns several processes is read once in each.
func (m *Machine) BeginRound() {
	m.groupsRead, m.named, m.scans = map[string]bool{}, nil, 0
	for _, name := range []string{"dri", "accel", "nvidiactl"} {
		if m.devices {
			return
		}
		_, err := os.Stat(filepath.Join(m.dev, name))
		m.devices = err == nil
	}
}

// DescriptorScanTime returns how long the round has looked for open devices. That bounds its own cost: a process may have any number of
// descriptors.
func (m *Machine) DescriptorScanTime() time.Duration { return m.scans }

// Process is a process whose figures are read.
type Process struct {
	machine *Machine
	pid     int
	root    *os.Root // of /proc/PID: it is that of this process even when another gets its pid
	failed  int16    // the errno with which root could not be opened; 0: it was

	files   []string // descriptors of DRM files
	nvidia  bool     // it has NVIDIA's device open
	unread  int16    // why the descriptors could not be listed
	scanned time.Time
	rest    time.Duration // until they are listed again
	group   string        // file of the control group; empty: it has none

	limited []group // control groups that may bound its memory

	kills       string // file that counts OOM kills in the control group; empty: none does
	killsBefore uint64 // what it counted when the process was opened
}

// OpenProcess begins to read a process. Close ends it.
func (m *Machine) OpenProcess(pid int) *Process {
	p := &Process{machine: m, pid: pid}
	root, err := os.OpenRoot(filepath.Join(m.proc, strconv.Itoa(pid)))
	if err != nil {
		p.failed = errorNumber(err)
		return p
	}
	p.root = root
	text, err := p.readProcessFile("cgroup")
	if err != nil {
		return p
	}
	if path, ok := parseGroupPath(text, "0::/"); ok {
		file := filepath.Join(m.groups, filepath.Clean("/"+path), "dmem.current")
		if _, err := os.Stat(file); err == nil {
			p.group = file
		}
	}
	p.limited = m.limitingGroups(text)
	p.killsBefore, p.kills = m.readGroupOOMKills(text)
	return p
}

// readGroupOOMKills returns how many OOM kills the control group of a process has counted, and the file that says so; empty: none
// does. text is /proc/PID/cgroup. The counter of version 2 is in memory.events, that of version 1 in memory.oom_control (Linux:
// Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst).
func (m *Machine) readGroupOOMKills(text []byte) (uint64, string) {
	for _, way := range []struct{ mark, below, file string }{
		{"0::/", m.groups, "memory.events"},
		{":memory:/", filepath.Join(m.groups, "memory"), "memory.oom_control"},
		{":memory:/", filepath.Join(filepath.Dir(m.groups), "memory"), "memory.oom_control"},
	} {
		path, ok := parseGroupPath(text, way.mark)
		if !ok {
			continue
		}
		file := filepath.Join(way.below, filepath.Clean("/"+path), way.file)
		if n, ok := readOOMKills(file); ok {
			return n, file
		}
	}
	return 0, ""
}

func readOOMKills(name string) (uint64, bool) {
	file, err := os.Open(name)
	if err != nil {
		return 0, false
	}
	defer file.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(file, textMax))
	if err != nil {
		return 0, false
	}
	return parseOOMKills(text)
}

// OOMKills returns how many processes of its control group the kernel has ended for lack of memory since OpenProcess; false: unknown.
// It may be called while another goroutine asks for figures.
func (p *Process) OOMKills() (uint64, bool) {
	if p.kills == "" {
		return 0, false
	}
	now, ok := readOOMKills(p.kills)
	return now - min(p.killsBefore, now), ok
}

// Close gives back what OpenProcess took.
func (p *Process) Close() {
	if p.root != nil {
		_ = p.root.Close()
	}
}

// ReadFigures returns the figures now; none if the process is gone.
func (p *Process) ReadFigures() []Figure {
	if p.root == nil {
		return appendUnreadFigure(nil, wire.MachineRSS, p.failed)
	}
	var list []Figure
	text, err := p.readProcessFile("statm")
	if anonymous, resident, ok := parsePages(text); err == nil && ok {
		list = append(list, Figure{Source: wire.MachineRSS, Bytes: anonymous * p.machine.page},
			Figure{Source: wire.MachineResident, Bytes: resident * p.machine.page})
	} else {
		list = appendUnreadFigure(list, wire.MachineRSS, errorNumber(err))
	}
	if p.machine.devices {
		list = p.appendDRMFigures(list)
	}
	if p.nvidia {
		list = append(list, p.machine.readNVIDIAFigures(p.pid)...)
	}
	return p.appendGroupFigures(list)
}

// appendUnreadFigure adds a figure that could not be read, unless the process is gone.
func appendUnreadFigure(list []Figure, source wire.Machine, why int16) []Figure {
	if why == 0 || unix.Errno(why) == unix.ENOENT || unix.Errno(why) == unix.ESRCH {
		return list
	}
	return append(list, Figure{Source: source, Unread: why})
}

// appendDRMFigures adds up the DRM files of the process by device. A file that was duplicated or inherited counts once.
func (p *Process) appendDRMFigures(list []Figure) []Figure {
	if now := p.machine.now(); now.Sub(p.scanned) >= p.rest {
		p.scanDescriptors()
		took := p.machine.now().Sub(now)
		p.machine.scans += took
		p.scanned, p.rest = now, max(scanEvery, scanShare*took)
	}
	list = appendUnreadFigure(list, wire.MachineDRM, p.unread)
	type key struct {
		device, id uint64
		driver     string
		hasID      bool
	}
	clients := map[key]uint64{}
	for _, file := range p.files {
		text, err := p.readProcessFile(filepath.Join("fdinfo", file))
		c, ok := parseDRMClient(text)
		if err != nil || !ok || !c.measures {
			continue
		}
		k := key{c.device, c.id, c.driver, c.hasID}
		clients[k] = max(clients[k], c.resident)
	}
	devices := map[uint64]uint64{}
	for k, resident := range clients {
		devices[k.device] = saturatingSum(devices[k.device], resident)
	}
	return appendFigures(list, wire.MachineDRM, devices)
}

func appendFigures(list []Figure, source wire.Machine, devices map[uint64]uint64) []Figure {
	for _, device := range slices.Sorted(maps.Keys(devices)) {
		list = append(list, Figure{Source: source, Device: device, Bytes: devices[device]})
	}
	return list
}

// scanDescriptors looks which descriptors are files of DRM or of NVIDIA's driver.
func (p *Process) scanDescriptors() {
	p.files, p.nvidia, p.unread = p.files[:0], false, 0
	folder, err := p.root.Open("fd")
	if err != nil {
		p.unread = errorNumber(err)
		return
	}
	defer folder.Close() //nolint:errcheck // only read
	var target [64]byte
	for {
		names, err := folder.Readdirnames(1024)
		for _, name := range names {
			n, err := unix.Readlinkat(int(folder.Fd()), name, target[:])
			if err != nil {
				continue
			}
			switch path := string(target[:n]); {
			case strings.HasPrefix(path, "/dev/dri/"), strings.HasPrefix(path, "/dev/accel/"):
				if len(p.files) < clientsMax {
					p.files = append(p.files, name)
				}
			case strings.HasPrefix(path, "/dev/nvidia"):
				p.nvidia = true
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.unread = errorNumber(err)
			}
			return
		}
	}
}

// appendGroupFigures adds what the control group has, for the first of its processes in each round.
func (p *Process) appendGroupFigures(list []Figure) []Figure {
	if p.group == "" || p.machine.groupsRead[p.group] {
		return list
	}
	p.machine.groupsRead[p.group] = true
	file, err := os.Open(p.group)
	if err != nil {
		return appendUnreadFigure(list, wire.MachineDMEM, errorNumber(err))
	}
	defer file.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(file, textMax))
	if err != nil {
		return appendUnreadFigure(list, wire.MachineDMEM, errorNumber(err))
	}
	return appendFigures(list, wire.MachineDMEM, parseDeviceMemory(text))
}

// readProcessFile returns the beginning of a file of the process.
func (p *Process) readProcessFile(name string) ([]byte, error) {
	file, err := p.root.Open(name)
	if err != nil {
		return nil, err //nolint:wrapcheck // only its errno counts
	}
	defer file.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(file, textMax))
}

// errorNumber returns the number of a failure, 0 for none.
func errorNumber(err error) int16 {
	var number unix.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &number):
		return int16(number)
	case errors.Is(err, os.ErrPermission):
		return int16(unix.EACCES)
	}
	return int16(unix.EIO)
}
