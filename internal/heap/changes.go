package heap

// noteHoldOver notes that the program's hold on an object is over.
func (h *Heap) noteHoldOver(p *Process, o *Object, how How) {
	if o.Released {
		return
	}
	o.Released = true
	p.Live--
	h.Live--
	for _, x := range h.observers {
		x.ObjectReleased(p, o, how)
	}
}

// endObjectUse ends the program's use of an object's memory.
func (h *Heap) endObjectUse(p *Process, o *Object, how How) {
	if o.freed {
		return
	}
	o.freed = true
	h.changeGaugesByObject(p, o, -1)
	for _, x := range h.observers {
		x.MemoryFreed(p, o, how)
	}
}

// abandonObject ends an object whose end was not recorded, with its block.
func (h *Heap) abandonObject(p *Process, o *Object, how How) {
	b := p.blockOfObject(o)
	h.endObjectUse(p, o, how)
	h.noteHoldOver(p, o, how)
	if b != nil {
		h.endBlock(p, b, how)
	}
	h.forgetObject(p, o)
}

// forgetObject forgets an object.
func (h *Heap) forgetObject(p *Process, o *Object) {
	p.objects.Remove(o.ID)
	h.objects.ReturnPlace(o.Place)
}

// blockOfObject returns the block that an object has, nil when it is unknown or another object's.
func (p *Process) blockOfObject(o *Object) *Block {
	if o.Block == 0 || !o.Owns {
		return nil
	}
	b := p.heap.blocks.At(o.at)
	if b.ID == o.Block && b.State == InUse && b.Owner == o.ID && b.process == p.Number && !b.gone {
		return b
	}
	return nil
}

// endMemoryOfBlockOwner ends the memory of the object that has a block.
func (h *Heap) endMemoryOfBlockOwner(p *Process, b *Block) {
	if b.State != InUse {
		return
	}
	if o := p.Object(b.Owner); o != nil && o.Owns && o.Block == b.ID {
		h.endObjectUse(p, o, Released)
		o.Owns = false
		h.expectRelease(p, o)
	}
}

// overtaken are the latest objects whose block served another request before their release was recorded, by another thread.
type overtaken struct {
	latest [overtakenMax]overtakenObject
	turn   int
}

type overtakenObject struct {
	process *Process
	id      uint64
}

const overtakenMax = 1024

// expectRelease notes an object whose release must still come. If it has not come by the time that the ring is full, it was
// lost, and await abandons the object: otherwise lost events would add objects for as long as a program runs.
func (h *Heap) expectRelease(p *Process, o *Object) {
	note := &h.overtaken.latest[h.overtaken.turn]
	h.overtaken.turn = (h.overtaken.turn + 1) % overtakenMax
	h.abandonOvertaken(note)
	note.process, note.id = p, o.ID
}

// abandonOvertaken abandons the object of a note, unless its release has come.
func (h *Heap) abandonOvertaken(note *overtakenObject) {
	if note.process != nil {
		if lost := note.process.Object(note.id); lost != nil {
			h.abandonObject(note.process, lost, Unknown)
		}
	}
	*note = overtakenObject{}
}

// endBlockUse ends the present use of a block.
func (h *Heap) endBlockUse(p *Process, b *Block, how How) {
	h.endMemoryOfBlockOwner(p, b)
	h.endPoolStay(p, b, how)
	h.changeSlabRoom(p, b, 1)
}

// endBlock ends a block.
func (h *Heap) endBlock(p *Process, b *Block, how How) {
	h.endPoolStay(p, b, how)
	h.changeSlabRoom(p, b, 1)
	for _, x := range h.observers {
		x.BlockGone(p, b)
	}
	p.blocks.Remove(b.ID)
	b.gone = true
	h.blocks.ReturnPlace(b.Place)
}

// beginPoolStay begins a stay in the pool, or a slab. A stay that was carried over began at its time, any other stay begins now.
func (h *Heap) beginPoolStay(p *Process, b *Block, carriedOver bool, time uint64) {
	h.serial++
	b.Freed, b.Serial, b.Shown = h.now, h.serial, false
	if carriedOver {
		b.Freed = time
	}
	h.changeGaugesByBlock(p, b, 1)
	for _, x := range h.observers {
		x.BlockPooled(p, b)
	}
}

// endPoolStay ends a stay in the pool, or a slab.
func (h *Heap) endPoolStay(p *Process, b *Block, how How) {
	if b.State != Cached && b.State != Cooling && b.State != Slab {
		return
	}
	h.changeGaugesByBlock(p, b, -1)
	for _, x := range h.observers {
		x.BlockUnpooled(p, b, how)
	}
	b.State = InUse
}

// changeGaugesByObject adds the memory of an object to the gauges, or takes it off.
func (h *Heap) changeGaugesByObject(p *Process, o *Object, sign int64) {
	if !o.Owns {
		return
	}
	granted, requested := sign*int64(o.Granted), sign*int64(o.Size)
	p.InUse += granted
	h.InUse += granted
	p.Requested += requested
	h.Requested += requested
}

// changeGaugesByBlock adds a free block or a slab to the gauges, or takes it off.
func (h *Heap) changeGaugesByBlock(p *Process, b *Block, sign int64) {
	bytes := sign * int64(b.Size)
	switch b.State {
	case Cached:
		p.Cached += bytes
		h.Cached += bytes
		p.CachedBlocks += sign
		h.CachedBlocks += sign
	case Cooling:
		p.Cooling += bytes
		h.Cooling += bytes
	case Slab:
		p.Room += bytes
		h.Room += bytes
		for _, n := range [2]*Population{&p.Population, &h.Population} {
			n.Slabs += sign
			n.SlabBytes += bytes
		}
		if p.slabs == nil {
			p.slabs = map[uint32]int{}
		}
		p.slabs[b.classKey()] += int(sign)
	default: // its object counts
	}
}

// changeSlabRoom adds the bytes of a sub-allocation to the free bytes of its slab, or takes them off.
func (h *Heap) changeSlabRoom(p *Process, b *Block, sign int64) {
	if b.SubAllocation {
		p.Room += sign * int64(b.Size)
		h.Room += sign * int64(b.Size)
	}
}
