package stats

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// devicesMax bounds the devices of a process.
const devicesMax = 16

// device is one that a process has described.
type device struct {
	number  uint64
	unified bool // its memory is the host's
	Device
}

// devices are those of a process, and which of them each context uses.
type devices struct {
	list   []device
	scopes map[uint16]uint64 // the number of the device of each context, by the context's number
	latest placedScope
}

// placedScope is the context that a create was in last, with the place of its device in the shares.
type placedScope struct {
	known bool
	scope uint16
	place uint8
}

// describe adds a device.
func (ds *devices) describe(d device) {
	if len(ds.list) < devicesMax {
		ds.list = append(ds.list, d)
		ds.latest = placedScope{}
	}
}

// use notes that a context is one of a device.
func (ds *devices) use(c wire.ContextView) {
	if ds.scopes == nil {
		ds.scopes = map[uint16]uint64{}
	}
	ds.scopes[c.Scope()] = c.Device()
	ds.latest = placedScope{}
}

// of returns the device of a context, or the first one where that is not known; nil: none is known.
func (ds *devices) of(scope uint16) *device {
	if number, known := ds.scopes[scope]; known {
		if d := ds.numbered(number); d != nil {
			return d
		}
	}
	if len(ds.list) > 0 {
		return &ds.list[0]
	}
	return nil
}

// numbered returns the device with a number, nil: it is not described.
func (ds *devices) numbered(number uint64) *device {
	if i := slices.IndexFunc(ds.list, func(d device) bool { return d.number == number }); i >= 0 {
		return &ds.list[i]
	}
	return nil
}

// describedOf is of, as snapshots show it.
func (ds *devices) describedOf(scope uint16) Device {
	if d := ds.of(scope); d != nil {
		return d.Device
	}
	return Device{}
}

// unified reports whether memory of some device is the host's.
func (ds *devices) unified() bool {
	return slices.ContainsFunc(ds.list, func(d device) bool { return d.unified })
}

// title returns the name of a context's device, with a number where the process has several of that name; empty: unknown.
func (ds *devices) title(scope uint16) string {
	d := ds.of(scope)
	if d == nil {
		return ""
	}
	same, own := 0, 0
	for i := range ds.list {
		if ds.list[i].Name == d.Name {
			if same++; &ds.list[i] == d {
				own = same
			}
		}
	}
	if same < 2 {
		return d.Name
	}
	return fmt.Sprintf("%s #%d", d.Name, own)
}

// shownDevice is the device that snapshots show: that of the first context, and before one is made the first device described.
type shownDevice struct {
	Device
	choice  choice
	awaited struct {
		process *process
		number  uint64
	}
}

// choice says how far the device to show is known.
type choice uint8

const (
	deviceUnknown choice = iota
	deviceGuessed        // the first one that was described
	deviceAwaited        // a context was made for one that is not described yet
	deviceChosen
)

func (s *shownDevice) show(d *device, how choice) { s.Device, s.choice = d.Device, how }

// describe handles DEVICE.
func (s *shownDevice) describe(p *process, r *wire.Record) {
	e := r.AsDevice()
	name, driver := wire.ParseDevice(r.Payload)
	d := device{number: e.Device(), unified: e.Unified(), Device: Device{
		Name: callsite.Clean(name), Driver: callsite.Clean(driver), Global: e.Memory(), Largest: e.LargestAlloc(),
	}}
	p.devices.describe(d)
	switch {
	case s.choice == deviceUnknown:
		s.show(&d, deviceGuessed)
	case s.choice == deviceAwaited && s.awaited.process == p && s.awaited.number == d.number:
		s.show(&d, deviceChosen)
	}
}

// use handles CONTEXT.
func (s *shownDevice) use(p *process, c wire.ContextView) {
	if c.Life() != wire.LifeCreate {
		return
	}
	p.devices.use(c)
	if s.choice == deviceAwaited || s.choice == deviceChosen {
		return
	}
	s.choice, s.awaited.process, s.awaited.number = deviceAwaited, p, c.Device()
	if d := p.devices.numbered(c.Device()); d != nil {
		s.show(d, deviceChosen)
	}
}
