package wire

// Start returns when the call began, in ns: Time is when its effect took place.
func (e *Event) Start() uint64 {
	if e.Kind == KindCreate && uint64(e.Duration) <= e.Time {
		return e.Time - uint64(e.Duration)
	}
	return e.Time
}

// End returns when the call ended, in ns. Only CREATE, RETAIN, RELEASE, SYNC, EVICT and SLAB are calls with a duration.
func (e *Event) End() uint64 {
	switch e.Kind {
	case KindRetain, KindRelease, KindSync, KindEvict, KindSlab:
		return e.Time + uint64(e.Duration)
	}
	return e.Time
}

// CarriedOver reports whether the event only describes what was there before the recording began: it counts as
// nothing that happened.
func (e *Event) CarriedOver() bool {
	if e.Flags&FlagCarried == 0 {
		return false
	}
	switch e.Kind {
	case KindCreate, KindRelease, KindSlab, KindObject:
		return true
	}
	return false
}

// ClearCarriedOver takes that mark off an event of any kind.
func (e *Event) ClearCarriedOver() { e.Flags &^= FlagCarried }

// DefinedTag returns the tag that a TAG defines or a SITE names.
func (e *Event) DefinedTag() uint32 { return e.Tag }

// PresentOutcome returns the outcome of a create that the present configuration decided on. What the alternative of an
// experiment served says nothing of the hit rate: its outcome is that of memory that no pool serves.
func (v CreateView) PresentOutcome() Outcome {
	if v.Arm() {
		return OutcomeDriver
	}
	return v.Outcome()
}

// WasPooled reports whether the pool served the request, by a hit or a miss.
func (v CreateView) WasPooled() bool {
	return v.e.Outcome == OutcomeHit || v.e.Outcome == OutcomeMiss
}

// Class is context, shape and flags in one number: blocks of one class cannot serve another.
type Class uint64

// ContextNumber returns the context.
func (c Class) ContextNumber() uint16 { return uint16(c >> 16) }

// MemoryFlags returns the flags.
func (c Class) MemoryFlags() uint16 { return uint16(c) }

// Shape returns what separates the class from others with its context and flags, 0 of buffers.
func (c Class) Shape() int16 { return int16(c >> 32) }

// Class returns the class of the memory.
func (v CreateView) Class() Class { return v.e.classOfShape(v.Shape()) }

// Class returns the class that the program no longer uses, or that of the request that an attempt was for.
func (v OrderView) Class() Class { return v.e.classOfShape(v.Shape()) }

// Start returns when the call began, in ns.
func (v CreateView) Start() uint64 { return v.e.Start() }

func (e *Event) classOfShape(shape int16) Class {
	return Class(uint16(shape))<<32 | Class(e.Scope)<<16 | Class(e.Access)
}

// BytesServing returns the bytes that serve the request: those asked for where the source does not know more, and for a
// sub-buffer, which has its parent's memory.
func (v CreateView) BytesServing() uint64 {
	if granted := v.Granted(); granted != 0 {
		return granted
	}
	return v.e.Size
}

// OffsetInParent returns the offset of a sub-buffer in its parent, in bytes; false when that is unknown. What earlier versions
// carried over has another number in its place.
func (v CreateView) OffsetInParent() (offset uint64, known bool) {
	if n := v.OriginNumber(); n != 0 && !v.CarriedOver() {
		return n - 1, true
	}
	return 0, false
}

// ForgetPlace makes the event say that the place of the bytes in the object is unknown, and the call site of a copy. A use
// by a kernel or native command has neither.
func (v UseView) ForgetPlace() {
	switch v.Command() {
	case CommandKernel, CommandNative:
		return
	case CommandCopy:
		v.e.Tag = 0
	default:
	}
	v.e.Granted = 0
	v.e.Flags |= FlagScattered
}

// KernelArgument returns the index of the kernel argument that is the memory; false when it is none.
func (v UseView) KernelArgument() (index uint32, known bool) {
	return v.e.Duration - 1, v.e.Duration != 0
}
