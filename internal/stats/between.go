package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// queueDevices are the devices of a process's queues, by their places in the contexts.
type queueDevices struct {
	places map[uint64]uint8
	many   bool // some context has several
}

// queueDevicesMax bounds the queues of a process at one time. The devices of further ones are unknown.
const queueDevicesMax = 1 << 16

// noteQueue takes a QUEUE.
func (d *queueDevices) noteQueue(q wire.QueueView) {
	switch {
	case q.Life() == wire.LifeEnd:
		delete(d.places, q.Queue())
	case q.Device() > 0 && q.Device() <= 64 && len(d.places) < queueDevicesMax:
		if d.places == nil {
			d.places = map[uint64]uint8{}
		}
		d.places[q.Queue()] = uint8(q.Device())
		d.many = d.many || q.Device() > 1
	}
}

// validity says which devices of its context have the contents of an object.
type validity struct {
	object  uint64
	process uint32
	valid   uint64 // a bit for each device; none: unknown, or no device
	had     uint64 // devices that had them before
}

// countMovesBetweenDevices counts contents that a command needed on one device when only others had them: the driver copies
// them then, unless the devices share memory. It returns the bytes. A sub-buffer is followed by itself. Shared memory is left out.
func (t *transfers) countMovesBetweenDevices(p *process, u wire.UseView) (moved uint64) {
	o := p.heap.Object(u.Object())
	if o == nil || o.Memory >= wire.MemorySVM {
		return 0
	}
	if o.Parent != 0 { // the parent's contents are in several places
		if parent := p.heap.Object(o.Parent); parent != nil {
			*t.validityOfObject(p, parent) = validity{object: parent.ID, process: p.heap.Number}
		}
	}
	h, place := t.validityOfObject(p, o), p.devicesOf.places[u.Queue()]
	if place == 0 {
		*h = validity{object: o.ID, process: p.heap.Number}
		return 0
	}
	at := uint64(1) << (place - 1)
	if h.valid != 0 && h.valid&at == 0 && needsContentsOnDevice(u) {
		flow := Flow{Calls: 1, Bytes: o.Size}
		moved = o.Size
		t.flows[Between].AddFlow(&flow)
		key := transferKey[*processSite]{t.sites.siteOfTag(p, o.Tag), wire.CommandOther, true}
		t.addFlowToSite(key, &flow)
		if h.had&at != 0 {
			t.addFlowToSite(key, &Flow{Again: 1})
		}
	}
	h.had |= h.valid | at
	h.updateByUse(u, at)
	return moved
}

// needsContentsOnDevice reports whether a command on a device needs the contents there. A migration brings them there itself.
func needsContentsOnDevice(u wire.UseView) bool {
	switch u.Command() {
	case wire.CommandMigrate, wire.CommandUnmap:
		return false
	default:
		return u.Reads() || !u.Writes()
	}
}

// updateByUse takes what a command on a device does to the contents.
func (h *validity) updateByUse(u wire.UseView, at uint64) {
	switch {
	case u.Command() == wire.CommandUnmap:
	case u.Command() == wire.CommandMigrate, u.Reads() && !u.Writes():
		h.valid |= at
	default:
		h.valid = at
	}
}

func (t *transfers) validityOfObject(p *process, o *heap.Object) *validity {
	h := elementAt(&t.validities, o.Place)
	if h.object != o.ID || h.process != p.heap.Number {
		*h = validity{object: o.ID, process: p.heap.Number}
	}
	return h
}
