package stats

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MachineFigure is the memory of a process, or of all processes together, that the machine reports: from one source, on one
// device.
type MachineFigure struct {
	Source wire.Machine
	Device uint64 // PCI address as a MACHINE record has it; 0: unknown, or the host
	Bytes  uint64 // at Latest; if Unread, when the figure could be read last
	Peak   uint64
	First  uint64 // bytes at Since
	Since  uint64 // when the figure was first known; 0: never
	Latest uint64 // when the figure last changed
	Unread int16  // the errno of the last attempt to read it; 0: it was read
}

// DeviceName writes the PCI address of the device; empty: unknown, or the host.
func (f *MachineFigure) DeviceName() string {
	if f.Device == 0 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", f.Device>>16, f.Device>>8&0xff, f.Device>>3&0x1f, f.Device&7)
}

// SourceWord returns what screens call the source: RSS is what ps shows.
func (f *MachineFigure) SourceWord() string { return MachineWord(f.Source.String()) }

// MachineWord returns what screens call a source, which is given by its key in JSON.
func MachineWord(source string) string {
	switch source {
	case wire.MachineRSS.String():
		return "anonymous"
	case wire.MachineResident.String():
		return "RSS"
	}
	return strings.ToUpper(source)
}

// WhyUnread says why the figure could not be read; empty: it was read.
func (f *MachineFigure) WhyUnread() string {
	if f.Unread == 0 {
		return ""
	}
	return syscall.Errno(f.Unread).Error()
}

// BytesOnDevice returns the memory of processes on devices that the kernel's driver reports or, without that, NVIDIA's library;
// false if neither was read.
func BytesOnDevice(figures []MachineFigure) (bytes uint64, known bool) {
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

// reportedBytes returns the memory of processes on devices. If the machine does not report that, it returns their anonymous memory.
func (m *machine) reportedBytes() uint64 {
	bytes, known := BytesOnDevice(m.figures)
	for i := 0; !known && i < len(m.figures); i++ {
		if f := &m.figures[i]; f.Source == wire.MachineRSS {
			bytes, known = f.Bytes, true
		}
	}
	return bytes
}

// DriversOwnBytes returns the memory of processes on devices beyond what is reserved; false if the machine does not report it.
func DriversOwnBytes(figures []MachineFigure, t *Totals) (uint64, bool) {
	bytes, known := BytesOnDevice(figures)
	return bytes - min(bytes, t.ReservedBytes()), known
}

// machineMax bounds the figures of a process: there is one for each source and device.
const machineMax = 64

// machine keeps the figures that the machine reports of one process, or of all together. The bytes of all are the sums of those
// of the processes that have not left.
type machine struct{ figures []MachineFigure }

// figureOf returns the figure of a source and device. If there is none, it adds one; nil: there is no room.
func (m *machine) figureOf(source wire.Machine, device uint64) *MachineFigure {
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

// noteBytes notes the bytes at a time.
func (f *MachineFigure) noteBytes(time, bytes uint64) {
	if f.Since == 0 {
		f.Since, f.First = time, bytes
	}
	f.Bytes, f.Peak, f.Latest, f.Unread = bytes, max(f.Peak, bytes), time, 0
}

// noteMachineRecord handles MACHINE. If a figure of a process, own, changes, that of all, m, changes by as much.
func (m *machine) noteMachineRecord(own *machine, v wire.MachineView) {
	f := own.figureOf(v.Source(), v.Device())
	all := m.figureOf(v.Source(), v.Device())
	if f == nil || all == nil {
		return
	}
	if f.Unread = v.Unread(); f.Unread != 0 {
		all.Unread = f.Unread
		return
	}
	before := f.Bytes
	f.noteBytes(v.Time(), v.Resident())
	all.noteBytes(v.Time(), all.Bytes-min(before, all.Bytes)+f.Bytes)
}

// subtractProcess takes the figures of a process off the figures of all, m.
func (m *machine) subtractProcess(own *machine) {
	for i := range own.figures {
		f := &own.figures[i]
		if all := m.figureOf(f.Source, f.Device); all != nil {
			all.Bytes -= min(all.Bytes, f.Bytes)
		}
	}
}

// listFigures returns the figures for a snapshot, by source and device.
func (m *machine) listFigures() []MachineFigure {
	list := slices.Clone(m.figures)
	slices.SortFunc(list, func(a, b MachineFigure) int {
		if a.Source != b.Source {
			return int(a.Source) - int(b.Source)
		}
		return int(a.Device) - int(b.Device)
	})
	return list
}
