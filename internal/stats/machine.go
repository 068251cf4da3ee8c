package stats

import (
	"fmt"
	"slices"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MachineFigure is what the machine reports of memory, from one source and of one device: of a process, or of all together.
type MachineFigure struct {
	Source wire.Machine
	Device uint64 // PCI address as a MACHINE record has it; 0: unknown, or the host
	Bytes  uint64 // at Latest; while Unread, when it could be read last
	Peak   uint64
	First  uint64 // bytes at Since
	Since  uint64 // when it was first known; 0: never
	Latest uint64 // when it last changed
	Unread int16  // the errno with which it could not be read; 0: it was
}

// DeviceName writes the PCI address of the device; empty: unknown, or the host.
func (f *MachineFigure) DeviceName() string {
	if f.Device == 0 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", f.Device>>16, f.Device>>8&0xff, f.Device>>3&0x1f, f.Device&7)
}

// Why says why the figure could not be read; empty: it was.
func (f *MachineFigure) Why() string {
	if f.Unread == 0 {
		return ""
	}
	return syscall.Errno(f.Unread).Error()
}

// OnDevice returns what processes have on devices as the kernel's driver says or, without that, NVIDIA's library; false
// if neither was read.
func OnDevice(figures []MachineFigure) (bytes uint64, known bool) {
	for _, source := range []wire.Machine{wire.MachineDRM, wire.MachineNVML} {
		for i := range figures {
			if f := &figures[i]; f.Source == source && f.Since != 0 && f.Unread == 0 {
				bytes, known = bytes+f.Bytes, true
			}
		}
		if known {
			break
		}
	}
	return bytes, known
}

// reported returns what processes have on devices or, if the machine does not say, as RSS.
func (m *machine) reported() uint64 {
	bytes, known := OnDevice(m.figures)
	for i := 0; !known && i < len(m.figures); i++ {
		if f := &m.figures[i]; f.Source == wire.MachineRSS {
			bytes, known = f.Bytes, true
		}
	}
	return bytes
}

// DriversOwn returns what processes have on devices beyond what is reserved; false if the machine does not say.
func DriversOwn(figures []MachineFigure, t *Totals) (uint64, bool) {
	bytes, known := OnDevice(figures)
	return bytes - min(bytes, t.Reserved()), known
}

// machineMax bounds the figures that are kept of a process: devices of four sources.
const machineMax = 64

// machine keeps figures.
type machine struct{ figures []MachineFigure }

// figure returns that of a source and device, which it adds if there is room; otherwise nil.
func (m *machine) figure(source wire.Machine, device uint64) *MachineFigure {
	for i := range m.figures {
		if f := &m.figures[i]; f.Source == source && f.Device == device {
			return f
		}
	}
	if len(m.figures) == machineMax {
		return nil
	}
	m.figures = append(m.figures, MachineFigure{Source: source, Device: device})
	return &m.figures[len(m.figures)-1]
}

// set notes a figure of a time.
func (f *MachineFigure) set(time, bytes uint64) {
	if f.Since == 0 {
		f.Since, f.First = time, bytes
	}
	f.Bytes, f.Peak, f.Latest, f.Unread = bytes, max(f.Peak, bytes), time, 0
}

// report handles MACHINE: a figure of a process changes that of all, m, by as much.
func (m *machine) report(own *machine, v wire.MachineView) {
	f := own.figure(v.Source(), v.Device())
	all := m.figure(v.Source(), v.Device())
	if f == nil || all == nil {
		return
	}
	if f.Unread = v.Unread(); f.Unread != 0 {
		all.Unread = f.Unread
		return
	}
	before := f.Bytes
	f.set(v.Time(), v.Resident())
	all.set(v.Time(), all.Bytes-min(before, all.Bytes)+f.Bytes)
}

// leave takes what a process had off that of all.
func (m *machine) leave(own *machine) {
	for i := range own.figures {
		f := &own.figures[i]
		if all := m.figure(f.Source, f.Device); all != nil {
			all.Bytes -= min(all.Bytes, f.Bytes)
		}
	}
}

// list returns the figures for a snapshot, by source and device.
func (m *machine) list() []MachineFigure {
	list := slices.Clone(m.figures)
	slices.SortFunc(list, func(a, b MachineFigure) int {
		if a.Source != b.Source {
			return int(a.Source) - int(b.Source)
		}
		return int(a.Device) - int(b.Device)
	})
	return list
}
