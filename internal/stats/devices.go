package stats

import (
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// devicesMax bounds the devices of a process.
const devicesMax = 16

// device is a device that a process has described.
type device struct {
	number  uint64
	unified bool // its memory is the host's
	// identity is the same for contexts on one device, in all processes unless it begins with local; empty: unknown.
	identity string
	Device
}

// devices are the devices of a process, and which of them each context uses.
type devices struct {
	list   []device
	scopes map[uint16]uint64 // the number of the device of each context, by the context's number
	first  uint64            // the number of the device of the first context, once there is a context
	latest placedScope
}

// placedScope is the context of the last create, with the place of its device in the shares.
type placedScope struct {
	known bool
	scope uint16
	place uint8
}

// addDevice adds a device.
func (ds *devices) addDevice(d device) {
	if len(ds.list) < devicesMax {
		ds.list = append(ds.list, d)
		ds.latest = placedScope{}
	}
}

// noteContext notes which device a context uses.
func (ds *devices) noteContext(c wire.ContextView) {
	if ds.scopes == nil {
		ds.scopes, ds.first = map[uint16]uint64{}, c.Device()
	}
	ds.scopes[c.Scope()] = c.Device()
	ds.latest = placedScope{}
}

// deviceOfContext returns the device of a context. If that is not known, it returns the first device; nil: no device is known.
func (ds *devices) deviceOfContext(scope uint16) *device {
	if number, known := ds.scopes[scope]; known {
		if d := ds.deviceNumbered(number); d != nil {
			return d
		}
	}
	if len(ds.list) > 0 {
		return &ds.list[0]
	}
	return nil
}

// deviceOfFirstContext returns the device of the first context, or else the first device; nil: no device is known.
func (ds *devices) deviceOfFirstContext() *device {
	d := ds.deviceNumbered(ds.first)
	if d == nil && len(ds.list) > 0 {
		return &ds.list[0]
	}
	return d
}

// deviceNumbered returns the device with a number; nil: the device is not described.
func (ds *devices) deviceNumbered(number uint64) *device {
	if i := slices.IndexFunc(ds.list, func(d device) bool { return d.number == number }); i >= 0 {
		return &ds.list[i]
	}
	return nil
}

// shownDeviceOf returns the device of a context as snapshots show it.
func (ds *devices) shownDeviceOf(scope uint16) Device {
	if d := ds.deviceOfContext(scope); d != nil {
		return d.Device
	}
	return Device{}
}

// hasUnifiedMemory reports whether memory of some device is the host's.
func (ds *devices) hasUnifiedMemory() bool {
	return slices.ContainsFunc(ds.list, func(d device) bool { return d.unified })
}

// deviceTitle returns the name of a context's device; empty: unknown. If a process has several devices of that name, title adds the PCI
// address, or a number.
func (ds *devices) deviceTitle(scope uint16) string {
	d := ds.deviceOfContext(scope)
	if d == nil {
		return ""
	}
	own, same := 0, []string{}
	for i := range ds.list {
		if o := &ds.list[i]; o.Name == d.Name && (o.identity == "" || !slices.Contains(same, o.identity)) {
			same = append(same, o.identity)
			if o == d || o.identity != "" && o.identity == d.identity {
				own = len(same)
			}
		}
	}
	if len(same) < 2 {
		return d.Name
	}
	if address, known := strings.CutPrefix(d.identity, "pci "); known {
		return d.Name + " at " + address
	}
	return fmt.Sprintf("%s #%d", d.Name, own)
}

// countDevices returns how many devices the contexts are surely on.
func (ds *devices) countDevices() int {
	var known []string
	most := 0
	for _, number := range ds.scopes {
		d := ds.deviceNumbered(number)
		if d == nil {
			continue
		}
		most = max(most, d.Devices)
		if d.identity != "" && !slices.Contains(known, d.identity) {
			known = append(known, d.identity)
		}
	}
	return max(most, len(known))
}

// areSurelyDifferent reports whether the first devices of two processes are surely not one.
func (ds *devices) areSurelyDifferent(other *devices) bool {
	d, o := ds.deviceOfFirstContext(), other.deviceOfFirstContext()
	return d != nil && o != nil && d.isSurelyDifferent(o)
}

// isSurelyDifferent reports whether two devices of different processes are surely not one.
func (d *device) isSurelyDifferent(o *device) bool {
	return d.Name != o.Name || d.hasGlobalIdentity() && o.hasGlobalIdentity() && d.identity != o.identity
}

// hasGlobalIdentity reports whether the identity is the same in all processes.
func (d *device) hasGlobalIdentity() bool {
	return d.identity != "" && !strings.HasPrefix(d.identity, "local")
}

// shownDevice is the device that snapshots show: the device of the first context. Before the first context, it is the first
// device that was described.
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
	deviceGuessed        // the first device that was described
	deviceAwaited        // a context was made for a device that is not described yet
	deviceChosen
)

func (s *shownDevice) setShownDevice(d *device, how choice) { s.Device, s.choice = d.Device, how }

// noteDevice handles DEVICE.
func (s *shownDevice) noteDevice(p *process, r *wire.Record) {
	e := r.AsDevice()
	name, driver, identity := wire.ParseDevice(r.Payload)
	d := device{number: e.Device(), unified: e.Unified(), identity: callsite.CleanText(identity), Device: Device{
		Name: callsite.CleanText(name), Driver: callsite.CleanText(driver), Global: e.Memory(), Largest: e.LargestAlloc(), Devices: int(e.Devices()),
	}}
	p.devices.addDevice(d)
	switch {
	case s.choice == deviceUnknown:
		s.setShownDevice(&d, deviceGuessed)
	case s.choice == deviceAwaited && s.awaited.process == p && s.awaited.number == d.number:
		s.setShownDevice(&d, deviceChosen)
	}
}

// noteContext handles CONTEXT.
func (s *shownDevice) noteContext(p *process, c wire.ContextView) {
	if c.Life() != wire.LifeCreate {
		return
	}
	p.devices.noteContext(c)
	if s.choice == deviceAwaited || s.choice == deviceChosen {
		return
	}
	s.choice, s.awaited.process, s.awaited.number = deviceAwaited, p, c.Device()
	if d := p.devices.deviceNumbered(c.Device()); d != nil {
		s.setShownDevice(d, deviceChosen)
	}
}
