// Code generated from event.h by internal/wire/gen; DO NOT EDIT.

package wire

import "math"

// ProcessView reads a PROCESS event: a process joined the session.
// Payload: program NUL argument NUL argument ....
type ProcessView struct{ e *Event }

// AsProcess reads e as a PROCESS event; the caller has checked its kind.
func (e *Event) AsProcess() ProcessView { return ProcessView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v ProcessView) Time() uint64 { return v.e.Time }

// PID: of the process.
func (v ProcessView) PID() uint64 { return v.e.Object }

// Parent: of its parent.
func (v ProcessView) Parent() uint64 { return v.e.Link }

// RankNumber: 1 + its rank in its job; 0: unknown.
func (v ProcessView) RankNumber() uint64 { return v.e.Granted }

// ProcessFields are the fields of a PROCESS event.
type ProcessFields struct {
	Time       uint64 // ns
	PID        uint64 // of the process
	Parent     uint64 // of its parent
	RankNumber uint64 // 1 + its rank in its job; 0: unknown
}

// Record returns the PROCESS event with these fields and a payload; Process and Thread are the caller's to set.
func (f ProcessFields) Record(payload []byte) Record {
	e := Event{Time: f.Time, Kind: KindProcess, Object: f.PID, Link: f.Parent, Granted: f.RankNumber, Size: uint64(len(payload))}
	return Record{Event: e, Payload: payload}
}

// Fields returns all fields of the event.
func (v ProcessView) Fields() ProcessFields {
	return ProcessFields{Time: v.e.Time, PID: v.PID(), Parent: v.Parent(), RankNumber: v.RankNumber()}
}

// ThreadView reads a THREAD event: another thread writes this ring from here on.
type ThreadView struct{ e *Event }

// AsThread reads e as a THREAD event; the caller has checked its kind.
func (e *Event) AsThread() ThreadView { return ThreadView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v ThreadView) Time() uint64 { return v.e.Time }

// TID: of the thread that writes this ring from here on.
func (v ThreadView) TID() uint64 { return v.e.Object }

// ThreadFields are the fields of a THREAD event.
type ThreadFields struct {
	Time uint64 // ns
	TID  uint64 // of the thread that writes this ring from here on
}

// Event returns the THREAD event with these fields.
func (f ThreadFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindThread, Object: f.TID}
	return e
}

// Fields returns all fields of the event.
func (v ThreadView) Fields() ThreadFields {
	return ThreadFields{Time: v.e.Time, TID: v.TID()}
}

// ModuleView reads a MODULE event: a file that the process runs code of.
// Payload: path; the session writes a second event with path NUL build id in hexadecimal. Of a function: file NUL name.
type ModuleView struct{ e *Event }

// AsModule reads e as a MODULE event; the caller has checked its kind.
func (e *Event) AsModule() ModuleView { return ModuleView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v ModuleView) Time() uint64 { return v.e.Time }

// Module: of the module, from 1.
func (v ModuleView) Module() uint64 { return v.e.Object }

// Script: it is a function of Python: offsets in it are lines; not recorded, its name goes into the SITE.
func (v ModuleView) Script() bool { return v.e.Flags&FlagScript != 0 }

// ModuleFields are the fields of a MODULE event.
type ModuleFields struct {
	Time   uint64 // ns
	Module uint64 // of the module, from 1
	Script bool   // it is a function of Python: offsets in it are lines; not recorded, its name goes into the SITE
}

// Record returns the MODULE event with these fields and a payload; Process and Thread are the caller's to set.
func (f ModuleFields) Record(payload []byte) Record {
	e := Event{Time: f.Time, Kind: KindModule, Object: f.Module, Size: uint64(len(payload))}
	if f.Script {
		e.Flags |= FlagScript
	}
	return Record{Event: e, Payload: payload}
}

// Fields returns all fields of the event.
func (v ModuleView) Fields() ModuleFields {
	return ModuleFields{Time: v.e.Time, Module: v.Module(), Script: v.Script()}
}

// TagView reads a TAG event: defines a tag.
// Payload: struct gmtframe ..., innermost first.
type TagView struct{ e *Event }

// AsTag reads e as a TAG event; the caller has checked its kind.
func (e *Event) AsTag() TagView { return TagView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v TagView) Time() uint64 { return v.e.Time }

// Mode: what the tag is made of.
func (v TagView) Mode() TagMode { return TagMode(v.e.Op) }

// Tag: that this event defines.
func (v TagView) Tag() uint32 { return v.e.Tag }

// Value: the size class or thread, where the tag is made of that.
func (v TagView) Value() uint64 { return v.e.Link }

// TagFields are the fields of a TAG event.
type TagFields struct {
	Time  uint64  // ns
	Mode  TagMode // what the tag is made of
	Tag   uint32  // that this event defines
	Value uint64  // the size class or thread, where the tag is made of that
}

// Record returns the TAG event with these fields and a payload; Process and Thread are the caller's to set.
func (f TagFields) Record(payload []byte) Record {
	e := Event{Time: f.Time, Kind: KindTag, Op: uint8(f.Mode), Tag: f.Tag, Link: f.Value, Size: uint64(len(payload))}
	return Record{Event: e, Payload: payload}
}

// Fields returns all fields of the event.
func (v TagView) Fields() TagFields {
	return TagFields{Time: v.e.Time, Mode: v.Mode(), Tag: v.Tag(), Value: v.Value()}
}

// SiteView reads a SITE event: the call site that a tag stands for, with names; written by the session.
// Payload: a line per frame, innermost first: function TAB file TAB line TAB module+offset.
type SiteView struct{ e *Event }

// AsSite reads e as a SITE event; the caller has checked its kind.
func (e *Event) AsSite() SiteView { return SiteView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v SiteView) Time() uint64 { return v.e.Time }

// Tag: that this event names.
func (v SiteView) Tag() uint32 { return v.e.Tag }

// SiteFields are the fields of a SITE event.
type SiteFields struct {
	Time uint64 // ns
	Tag  uint32 // that this event names
}

// Record returns the SITE event with these fields and a payload; Process and Thread are the caller's to set.
func (f SiteFields) Record(payload []byte) Record {
	e := Event{Time: f.Time, Kind: KindSite, Tag: f.Tag, Size: uint64(len(payload))}
	return Record{Event: e, Payload: payload}
}

// Fields returns all fields of the event.
func (v SiteView) Fields() SiteFields {
	return SiteFields{Time: v.e.Time, Tag: v.Tag()}
}

// DeviceView reads a DEVICE event: a device of a context.
// Of several devices of a context the smallest figure of each, but the largest LargestAlloc.
// Payload: name NUL driver NUL identity of the first: PCI address, UUID or both, or "local N", which holds in its process; empty: unknown.
type DeviceView struct{ e *Event }

// AsDevice reads e as a DEVICE event; the caller has checked its kind.
func (e *Event) AsDevice() DeviceView { return DeviceView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v DeviceView) Time() uint64 { return v.e.Time }

// Unified: its memory is the host's; of several devices: that of each is.
func (v DeviceView) Unified() bool { return v.e.Flags&FlagUnified != 0 }

// Devices: how many devices the context has; 0: unknown.
func (v DeviceView) Devices() uint16 { return v.e.Scope }

// Device: the device.
func (v DeviceView) Device() uint64 { return v.e.Object }

// Memory: bytes of global memory.
func (v DeviceView) Memory() uint64 { return v.e.Granted }

// LargestAlloc: bytes of one allocation at most.
func (v DeviceView) LargestAlloc() uint64 { return v.e.Link }

// Align: bytes alignment of sub-buffers.
func (v DeviceView) Align() uint32 { return v.e.Tag }

// Constant: bytes of one __constant argument at most; 0: unknown.
func (v DeviceView) Constant() uint64 { return uint64(v.e.Duration)<<32 | uint64(v.e.Cost) }

// DeviceFields are the fields of a DEVICE event.
type DeviceFields struct {
	Time         uint64 // ns
	Unified      bool   // its memory is the host's; of several devices: that of each is
	Devices      uint16 // how many devices the context has; 0: unknown
	Device       uint64 // the device
	Memory       uint64 // bytes of global memory
	LargestAlloc uint64 // bytes of one allocation at most
	Align        uint32 // bytes alignment of sub-buffers
	Constant     uint64 // bytes of one __constant argument at most; 0: unknown
}

// Record returns the DEVICE event with these fields and a payload; Process and Thread are the caller's to set.
func (f DeviceFields) Record(payload []byte) Record {
	e := Event{Time: f.Time, Kind: KindDevice, Scope: f.Devices, Object: f.Device, Granted: f.Memory, Link: f.LargestAlloc, Tag: f.Align, Duration: uint32(f.Constant >> 32), Cost: uint32(f.Constant), Size: uint64(len(payload))}
	if f.Unified {
		e.Flags |= FlagUnified
	}
	return Record{Event: e, Payload: payload}
}

// Fields returns all fields of the event.
func (v DeviceView) Fields() DeviceFields {
	return DeviceFields{Time: v.e.Time, Unified: v.Unified(), Devices: v.Devices(), Device: v.Device(), Memory: v.Memory(), LargestAlloc: v.LargestAlloc(), Align: v.Align(), Constant: v.Constant()}
}

// ContextView reads a CONTEXT event: a context was created, retained or released.
type ContextView struct{ e *Event }

// AsContext reads e as a CONTEXT event; the caller has checked its kind.
func (e *Event) AsContext() ContextView { return ContextView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v ContextView) Time() uint64 { return v.e.Time }

// Life: what happened.
func (v ContextView) Life() Life { return Life(v.e.Op) }

// CarriedOver: it was there before the recording began.
func (v ContextView) CarriedOver() bool { return v.e.Flags&FlagCarried != 0 }

// Scope: of the context.
func (v ContextView) Scope() uint16 { return v.e.Scope }

// Context: the context.
func (v ContextView) Context() uint64 { return v.e.Object }

// Device: its first device.
func (v ContextView) Device() uint64 { return v.e.Link }

// ContextFields are the fields of a CONTEXT event.
type ContextFields struct {
	Time        uint64 // ns
	Life        Life   // what happened
	CarriedOver bool   // it was there before the recording began
	Scope       uint16 // of the context
	Context     uint64 // the context
	Device      uint64 // its first device
}

// Event returns the CONTEXT event with these fields.
func (f ContextFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindContext, Op: uint8(f.Life), Scope: f.Scope, Object: f.Context, Link: f.Device}
	if f.CarriedOver {
		e.Flags |= FlagCarried
	}
	return e
}

// Fields returns all fields of the event.
func (v ContextView) Fields() ContextFields {
	return ContextFields{Time: v.e.Time, Life: v.Life(), CarriedOver: v.CarriedOver(), Scope: v.Scope(), Context: v.Context(), Device: v.Device()}
}

// QueueView reads a QUEUE event: a command queue was created, retained or released.
type QueueView struct{ e *Event }

// AsQueue reads e as a QUEUE event; the caller has checked its kind.
func (e *Event) AsQueue() QueueView { return QueueView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v QueueView) Time() uint64 { return v.e.Time }

// Life: what happened.
func (v QueueView) Life() Life { return Life(v.e.Op) }

// OutOfOrder: its commands may run in any order.
func (v QueueView) OutOfOrder() bool { return v.e.Flags&FlagOutOfOrder != 0 }

// CarriedOver: it was there before the recording began.
func (v QueueView) CarriedOver() bool { return v.e.Flags&FlagCarried != 0 }

// Scope: of its context.
func (v QueueView) Scope() uint16 { return v.e.Scope }

// Queue: the queue.
func (v QueueView) Queue() uint64 { return v.e.Object }

// Device: 1 + the place of its device in its context; a part of a device counts as the device; 0: unknown.
func (v QueueView) Device() uint64 { return v.e.Link }

// QueueFields are the fields of a QUEUE event.
type QueueFields struct {
	Time        uint64 // ns
	Life        Life   // what happened
	OutOfOrder  bool   // its commands may run in any order
	CarriedOver bool   // it was there before the recording began
	Scope       uint16 // of its context
	Queue       uint64 // the queue
	Device      uint64 // 1 + the place of its device in its context; a part of a device counts as the device; 0: unknown
}

// Event returns the QUEUE event with these fields.
func (f QueueFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindQueue, Op: uint8(f.Life), Scope: f.Scope, Object: f.Queue, Link: f.Device}
	if f.OutOfOrder {
		e.Flags |= FlagOutOfOrder
	}
	if f.CarriedOver {
		e.Flags |= FlagCarried
	}
	return e
}

// Fields returns all fields of the event.
func (v QueueView) Fields() QueueFields {
	return QueueFields{Time: v.e.Time, Life: v.Life(), OutOfOrder: v.OutOfOrder(), CarriedOver: v.CarriedOver(), Scope: v.Scope(), Queue: v.Queue(), Device: v.Device()}
}

// KernelView reads a KERNEL event: a kernel was created.
// Payload: name.
type KernelView struct{ e *Event }

// AsKernel reads e as a KERNEL event; the caller has checked its kind.
func (e *Event) AsKernel() KernelView { return KernelView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v KernelView) Time() uint64 { return v.e.Time }

// CarriedOver: it was there before the recording began.
func (v KernelView) CarriedOver() bool { return v.e.Flags&FlagCarried != 0 }

// Kernel: the kernel.
func (v KernelView) Kernel() uint64 { return v.e.Object }

// KernelFields are the fields of a KERNEL event.
type KernelFields struct {
	Time        uint64 // ns
	CarriedOver bool   // it was there before the recording began
	Kernel      uint64 // the kernel
}

// Record returns the KERNEL event with these fields and a payload; Process and Thread are the caller's to set.
func (f KernelFields) Record(payload []byte) Record {
	e := Event{Time: f.Time, Kind: KindKernel, Object: f.Kernel, Size: uint64(len(payload))}
	if f.CarriedOver {
		e.Flags |= FlagCarried
	}
	return Record{Event: e, Payload: payload}
}

// Fields returns all fields of the event.
func (v KernelView) Fields() KernelFields {
	return KernelFields{Time: v.e.Time, CarriedOver: v.CarriedOver(), Kernel: v.Kernel()}
}

// CreateView reads a CREATE event: the program asked for memory.
type CreateView struct{ e *Event }

// AsCreate reads e as a CREATE event; the caller has checked its kind.
func (e *Event) AsCreate() CreateView { return CreateView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v CreateView) Time() uint64 { return v.e.Time }

// Duration: ns of the whole call, saturating; 0: not measured.
func (v CreateView) Duration() uint32 { return v.e.Duration }

// Cost: ns of these inside the driver.
func (v CreateView) Cost() uint32 { return v.e.Cost }

// Memory: what the call made.
func (v CreateView) Memory() Memory { return Memory(v.e.Op) }

// Outcome: how it was served.
func (v CreateView) Outcome() Outcome { return v.e.Outcome }

// Reason: why a poolable request missed.
func (v CreateView) Reason() Miss { return Miss(v.e.Reason) }

// NeedsBlock: no sub-allocation could have served it, whatever the policy.
func (v CreateView) NeedsBlock() bool { return v.e.Flags&FlagWhole != 0 }

// SubAllocation: the block is a piece of a slab, and ends with its buffer.
func (v CreateView) SubAllocation() bool { return v.e.Flags&FlagSubAlloc != 0 }

// CarriedOver: it was there before the recording began; nothing happened now.
func (v CreateView) CarriedOver() bool { return v.e.Flags&FlagCarried != 0 }

// Route: whether a plan served it.
func (v CreateView) Route() Route { return Route(v.e.Flags & FlagRoute / (FlagRoute & -FlagRoute)) }

// OffPage: it is a buffer in memory of the program that begins at no multiple of GMT_PAGE.
func (v CreateView) OffPage() bool {
	return (v.e.Outcome != OutcomeHit && v.e.Outcome != OutcomeMiss) && v.e.Flags&FlagOffPage != 0
}

// Arm: the alternative of an experiment decided, and not the present configuration.
func (v CreateView) Arm() bool {
	return (v.e.Outcome == OutcomeHit || v.e.Outcome == OutcomeMiss) && v.e.Flags&FlagArm != 0
}

// Scope: of its context; with Access and Shape it makes the class.
func (v CreateView) Scope() uint16 { return v.e.Scope }

// Access: the lowest 16 bits of its cl_mem_flags.
func (v CreateView) Access() uint16 { return v.e.Access }

// Status: what the call returned, saturating.
func (v CreateView) Status() int16 {
	if v.e.Outcome != OutcomeHit && v.e.Outcome != OutcomeMiss {
		return v.e.Status
	}
	return 0
}

// Shape: what else makes the class, in each context: images from 1 up, SVM and USM from -1 down; 0: a buffer.
func (v CreateView) Shape() int16 {
	if v.e.Outcome == OutcomeHit || v.e.Outcome == OutcomeMiss {
		return v.e.Status
	}
	return 0
}

// Tag: its call site; 0: none.
func (v CreateView) Tag() uint32 { return v.e.Tag }

// Object: the new object; 0: none.
func (v CreateView) Object() uint64 { return v.e.Object }

// Requested: bytes that the program asked for.
func (v CreateView) Requested() uint64 { return v.e.Size }

// Granted: bytes of the memory that serves it; 0: unknown.
func (v CreateView) Granted() uint64 {
	if Memory(v.e.Op) != MemorySubBuffer {
		return v.e.Granted
	}
	return 0
}

// OriginNumber: 1 + its offset in the parent in bytes; 0 or carried over: unknown.
func (v CreateView) OriginNumber() uint64 {
	if Memory(v.e.Op) == MemorySubBuffer {
		return v.e.Granted
	}
	return 0
}

// Block: the block that serves it.
func (v CreateView) Block() uint64 {
	if v.e.Outcome == OutcomeHit || v.e.Outcome == OutcomeMiss {
		return v.e.Link
	}
	return 0
}

// Parent: of a sub-buffer, or an image of a buffer; 0: none.
func (v CreateView) Parent() uint64 {
	if v.e.Outcome != OutcomeHit && v.e.Outcome != OutcomeMiss {
		return v.e.Link
	}
	return 0
}

// CreateFields are the fields of a CREATE event.
type CreateFields struct {
	Time          uint64  // ns
	Duration      uint32  // ns of the whole call, saturating; 0: not measured
	Cost          uint32  // ns of these inside the driver
	Memory        Memory  // what the call made
	Outcome       Outcome // how it was served
	Reason        Miss    // why a poolable request missed
	NeedsBlock    bool    // no sub-allocation could have served it, whatever the policy
	SubAllocation bool    // the block is a piece of a slab, and ends with its buffer
	CarriedOver   bool    // it was there before the recording began; nothing happened now
	Route         Route   // whether a plan served it
	OffPage       bool    // it is a buffer in memory of the program that begins at no multiple of GMT_PAGE
	Arm           bool    // the alternative of an experiment decided, and not the present configuration
	Scope         uint16  // of its context; with Access and Shape it makes the class
	Access        uint16  // the lowest 16 bits of its cl_mem_flags
	Status        int16   // what the call returned, saturating
	Shape         int16   // what else makes the class, in each context: images from 1 up, SVM and USM from -1 down; 0: a buffer
	Tag           uint32  // its call site; 0: none
	Object        uint64  // the new object; 0: none
	Requested     uint64  // bytes that the program asked for
	Granted       uint64  // bytes of the memory that serves it; 0: unknown
	OriginNumber  uint64  // 1 + its offset in the parent in bytes; 0 or carried over: unknown
	Block         uint64  // the block that serves it
	Parent        uint64  // of a sub-buffer, or an image of a buffer; 0: none
}

// Event returns the CREATE event with these fields.
func (f CreateFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindCreate, Duration: f.Duration, Cost: f.Cost, Op: uint8(f.Memory), Outcome: f.Outcome, Reason: uint8(f.Reason), Scope: f.Scope, Access: f.Access, Status: f.Status | f.Shape, Tag: f.Tag, Object: f.Object, Size: f.Requested, Granted: f.Granted | f.OriginNumber, Link: f.Block | f.Parent}
	if f.NeedsBlock {
		e.Flags |= FlagWhole
	}
	if f.SubAllocation {
		e.Flags |= FlagSubAlloc
	}
	if f.CarriedOver {
		e.Flags |= FlagCarried
	}
	e.Flags |= uint8(f.Route) * (FlagRoute & -FlagRoute) & FlagRoute
	if f.OffPage {
		e.Flags |= FlagOffPage
	}
	if f.Arm {
		e.Flags |= FlagArm
	}
	return e
}

// Fields returns all fields of the event.
func (v CreateView) Fields() CreateFields {
	return CreateFields{Time: v.e.Time, Duration: v.Duration(), Cost: v.Cost(), Memory: v.Memory(), Outcome: v.Outcome(), Reason: v.Reason(), NeedsBlock: v.NeedsBlock(), SubAllocation: v.SubAllocation(), CarriedOver: v.CarriedOver(), Route: v.Route(), OffPage: v.OffPage(), Arm: v.Arm(), Scope: v.Scope(), Access: v.Access(), Status: v.Status(), Shape: v.Shape(), Tag: v.Tag(), Object: v.Object(), Requested: v.Requested(), Granted: v.Granted(), OriginNumber: v.OriginNumber(), Block: v.Block(), Parent: v.Parent()}
}

// RetainView reads a RETAIN event: the program took another reference to memory.
type RetainView struct{ e *Event }

// AsRetain reads e as a RETAIN event; the caller has checked its kind.
func (e *Event) AsRetain() RetainView { return RetainView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v RetainView) Time() uint64 { return v.e.Time }

// Duration: ns of the whole call, saturating.
func (v RetainView) Duration() uint32 { return v.e.Duration }

// Site: call site of the retain; 0: unknown.
func (v RetainView) Site() uint32 { return v.e.Cost }

// Memory: what the object is.
func (v RetainView) Memory() Memory { return Memory(v.e.Op) }

// Scope: of its context.
func (v RetainView) Scope() uint16 { return v.e.Scope }

// Status: what the call returned.
func (v RetainView) Status() int16 { return v.e.Status }

// Tag: the call site of its create.
func (v RetainView) Tag() uint32 { return v.e.Tag }

// Object: the object; 0: unknown.
func (v RetainView) Object() uint64 { return v.e.Object }

// Requested: bytes of the object.
func (v RetainView) Requested() uint64 { return v.e.Size }

// References: count that the program holds afterwards.
func (v RetainView) References() uint64 { return v.e.Granted }

// Block: that serves it.
func (v RetainView) Block() uint64 { return v.e.Link }

// RetainFields are the fields of a RETAIN event.
type RetainFields struct {
	Time       uint64 // ns
	Duration   uint32 // ns of the whole call, saturating
	Site       uint32 // call site of the retain; 0: unknown
	Memory     Memory // what the object is
	Scope      uint16 // of its context
	Status     int16  // what the call returned
	Tag        uint32 // the call site of its create
	Object     uint64 // the object; 0: unknown
	Requested  uint64 // bytes of the object
	References uint64 // count that the program holds afterwards
	Block      uint64 // that serves it
}

// Event returns the RETAIN event with these fields.
func (f RetainFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindRetain, Duration: f.Duration, Cost: f.Site, Op: uint8(f.Memory), Scope: f.Scope, Status: f.Status, Tag: f.Tag, Object: f.Object, Size: f.Requested, Granted: f.References, Link: f.Block}
	return e
}

// Fields returns all fields of the event.
func (v RetainView) Fields() RetainFields {
	return RetainFields{Time: v.e.Time, Duration: v.Duration(), Site: v.Site(), Memory: v.Memory(), Scope: v.Scope(), Status: v.Status(), Tag: v.Tag(), Object: v.Object(), Requested: v.Requested(), References: v.References(), Block: v.Block()}
}

// ReleaseView reads a RELEASE event: the program gave up a reference to memory.
type ReleaseView struct{ e *Event }

// AsRelease reads e as a RELEASE event; the caller has checked its kind.
func (e *Event) AsRelease() ReleaseView { return ReleaseView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v ReleaseView) Time() uint64 { return v.e.Time }

// Duration: ns of the whole call, saturating; 0: not measured.
func (v ReleaseView) Duration() uint32 { return v.e.Duration }

// Cost: ns of these inside the driver.
func (v ReleaseView) Cost() uint32 { return v.e.Cost }

// Memory: what the object is.
func (v ReleaseView) Memory() Memory { return Memory(v.e.Op) }

// Outcome: what became of the memory; valid with References 0.
func (v ReleaseView) Outcome() Outcome { return v.e.Outcome }

// WouldRace: an ungated pool could have handed the block out while it was in use.
func (v ReleaseView) WouldRace() bool { return v.e.Flags&FlagWouldRace != 0 }

// Ordered: still in use, but every later use is ordered behind it.
func (v ReleaseView) Ordered() bool { return v.e.Flags&FlagOrdered != 0 }

// SubAllocation: the block is a piece of a slab, and ends now.
func (v ReleaseView) SubAllocation() bool { return v.e.Flags&FlagSubAlloc != 0 }

// CarriedOver: it was released before the recording began; nothing happened now.
func (v ReleaseView) CarriedOver() bool { return v.e.Flags&FlagCarried != 0 }

// Exposed: whether a kernel may have read what the block's earlier owner left.
func (v ReleaseView) Exposed() Exposed {
	return Exposed(v.e.Flags & FlagExposed / (FlagExposed & -FlagExposed))
}

// Scope: of its context.
func (v ReleaseView) Scope() uint16 { return v.e.Scope }

// Status: what the call returned.
func (v ReleaseView) Status() int16 { return v.e.Status }

// Tag: the call site of its create.
func (v ReleaseView) Tag() uint32 { return v.e.Tag }

// Object: the object; 0: unknown.
func (v ReleaseView) Object() uint64 { return v.e.Object }

// Requested: bytes of the object.
func (v ReleaseView) Requested() uint64 { return v.e.Size }

// References: count that the program still holds.
func (v ReleaseView) References() uint64 { return v.e.Granted }

// Block: that served it; 0: none.
func (v ReleaseView) Block() uint64 { return v.e.Link }

// ReleaseFields are the fields of a RELEASE event.
type ReleaseFields struct {
	Time          uint64  // ns
	Duration      uint32  // ns of the whole call, saturating; 0: not measured
	Cost          uint32  // ns of these inside the driver
	Memory        Memory  // what the object is
	Outcome       Outcome // what became of the memory; valid with References 0
	WouldRace     bool    // an ungated pool could have handed the block out while it was in use
	Ordered       bool    // still in use, but every later use is ordered behind it
	SubAllocation bool    // the block is a piece of a slab, and ends now
	CarriedOver   bool    // it was released before the recording began; nothing happened now
	Exposed       Exposed // whether a kernel may have read what the block's earlier owner left
	Scope         uint16  // of its context
	Status        int16   // what the call returned
	Tag           uint32  // the call site of its create
	Object        uint64  // the object; 0: unknown
	Requested     uint64  // bytes of the object
	References    uint64  // count that the program still holds
	Block         uint64  // that served it; 0: none
}

// Event returns the RELEASE event with these fields.
func (f ReleaseFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindRelease, Duration: f.Duration, Cost: f.Cost, Op: uint8(f.Memory), Outcome: f.Outcome, Scope: f.Scope, Status: f.Status, Tag: f.Tag, Object: f.Object, Size: f.Requested, Granted: f.References, Link: f.Block}
	if f.WouldRace {
		e.Flags |= FlagWouldRace
	}
	if f.Ordered {
		e.Flags |= FlagOrdered
	}
	if f.SubAllocation {
		e.Flags |= FlagSubAlloc
	}
	if f.CarriedOver {
		e.Flags |= FlagCarried
	}
	e.Flags |= uint8(f.Exposed) * (FlagExposed & -FlagExposed) & FlagExposed
	return e
}

// Fields returns all fields of the event.
func (v ReleaseView) Fields() ReleaseFields {
	return ReleaseFields{Time: v.e.Time, Duration: v.Duration(), Cost: v.Cost(), Memory: v.Memory(), Outcome: v.Outcome(), WouldRace: v.WouldRace(), Ordered: v.Ordered(), SubAllocation: v.SubAllocation(), CarriedOver: v.CarriedOver(), Exposed: v.Exposed(), Scope: v.Scope(), Status: v.Status(), Tag: v.Tag(), Object: v.Object(), Requested: v.Requested(), References: v.References(), Block: v.Block()}
}

// UseView reads a USE event: a command uses memory.
type UseView struct{ e *Event }

// AsUse reads e as a USE event; the caller has checked its kind.
func (e *Event) AsUse() UseView { return UseView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v UseView) Time() uint64 { return v.e.Time }

// ArgumentNumber: 1 + the index of the kernel argument that is the memory; 0: none.
func (v UseView) ArgumentNumber() uint32 { return v.e.Duration }

// Duration: ns of the call of a blocking command, saturating; 0: not measured, or it does not block.
func (v UseView) Duration() uint32 { return v.e.Cost }

// Command: what uses the memory.
func (v UseView) Command() Command { return Command(v.e.Op) }

// Reads: it reads the object.
func (v UseView) Reads() bool { return v.e.Flags&FlagReads != 0 }

// Writes: it writes the object; neither flag: unknown.
func (v UseView) Writes() bool { return v.e.Flags&FlagWrites != 0 }

// Scattered: the bytes do not lie in one piece, or Offset is 0 because it is unknown.
func (v UseView) Scattered() bool { return v.e.Flags&FlagScattered != 0 }

// Scope: of its context.
func (v UseView) Scope() uint16 { return v.e.Scope }

// Tag: of a COPY its own call site, of others that of the memory's create.
func (v UseView) Tag() uint32 { return v.e.Tag }

// Object: the memory; 0: memory that we cannot know.
func (v UseView) Object() uint64 { return v.e.Object }

// Bytes: bytes touched; 0: unknown.
func (v UseView) Bytes() uint64 { return v.e.Size }

// Kernel: the kernel.
func (v UseView) Kernel() uint64 {
	if Command(v.e.Op) == CommandKernel {
		return v.e.Granted
	}
	return 0
}

// Offset: bytes of the first byte touched within the object.
func (v UseView) Offset() uint64 {
	if Command(v.e.Op) != CommandKernel && Command(v.e.Op) != CommandNative {
		return v.e.Granted
	}
	return 0
}

// Queue: the queue.
func (v UseView) Queue() uint64 { return v.e.Link }

// UseFields are the fields of a USE event.
type UseFields struct {
	Time           uint64  // ns
	ArgumentNumber uint32  // 1 + the index of the kernel argument that is the memory; 0: none
	Duration       uint32  // ns of the call of a blocking command, saturating; 0: not measured, or it does not block
	Command        Command // what uses the memory
	Reads          bool    // it reads the object
	Writes         bool    // it writes the object; neither flag: unknown
	Scattered      bool    // the bytes do not lie in one piece, or Offset is 0 because it is unknown
	Scope          uint16  // of its context
	Tag            uint32  // of a COPY its own call site, of others that of the memory's create
	Object         uint64  // the memory; 0: memory that we cannot know
	Bytes          uint64  // bytes touched; 0: unknown
	Kernel         uint64  // the kernel
	Offset         uint64  // bytes of the first byte touched within the object
	Queue          uint64  // the queue
}

// Event returns the USE event with these fields.
func (f UseFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindUse, Duration: f.ArgumentNumber, Cost: f.Duration, Op: uint8(f.Command), Scope: f.Scope, Tag: f.Tag, Object: f.Object, Size: f.Bytes, Granted: f.Kernel | f.Offset, Link: f.Queue}
	if f.Reads {
		e.Flags |= FlagReads
	}
	if f.Writes {
		e.Flags |= FlagWrites
	}
	if f.Scattered {
		e.Flags |= FlagScattered
	}
	return e
}

// Fields returns all fields of the event.
func (v UseView) Fields() UseFields {
	return UseFields{Time: v.e.Time, ArgumentNumber: v.ArgumentNumber(), Duration: v.Duration(), Command: v.Command(), Reads: v.Reads(), Writes: v.Writes(), Scattered: v.Scattered(), Scope: v.Scope(), Tag: v.Tag(), Object: v.Object(), Bytes: v.Bytes(), Kernel: v.Kernel(), Offset: v.Offset(), Queue: v.Queue()}
}

// SyncView reads a SYNC event: a synchronisation point.
type SyncView struct{ e *Event }

// AsSync reads e as a SYNC event; the caller has checked its kind.
func (e *Event) AsSync() SyncView { return SyncView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v SyncView) Time() uint64 { return v.e.Time }

// Duration: ns of the whole call, saturating.
func (v SyncView) Duration() uint32 { return v.e.Duration }

// Sync: how the thread synchronised.
func (v SyncView) Sync() Sync { return Sync(v.e.Op) }

// Scope: of the queue's context.
func (v SyncView) Scope() uint16 { return v.e.Scope }

// Queue: the queue; 0: several.
func (v SyncView) Queue() uint64 { return v.e.Link }

// SyncFields are the fields of a SYNC event.
type SyncFields struct {
	Time     uint64 // ns
	Duration uint32 // ns of the whole call, saturating
	Sync     Sync   // how the thread synchronised
	Scope    uint16 // of the queue's context
	Queue    uint64 // the queue; 0: several
}

// Event returns the SYNC event with these fields.
func (f SyncFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindSync, Duration: f.Duration, Op: uint8(f.Sync), Scope: f.Scope, Link: f.Queue}
	return e
}

// Fields returns all fields of the event.
func (v SyncView) Fields() SyncFields {
	return SyncFields{Time: v.e.Time, Duration: v.Duration(), Sync: v.Sync(), Scope: v.Scope(), Queue: v.Queue()}
}

// CooledView reads a COOLED event: a cooling block became free.
type CooledView struct{ e *Event }

// AsCooled reads e as a COOLED event; the caller has checked its kind.
func (e *Event) AsCooled() CooledView { return CooledView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v CooledView) Time() uint64 { return v.e.Time }

// SubAllocation: the block is a piece of a slab, and ends now.
func (v CooledView) SubAllocation() bool { return v.e.Flags&FlagSubAlloc != 0 }

// Tag: the call site that had it last.
func (v CooledView) Tag() uint32 { return v.e.Tag }

// Bytes: bytes of the block.
func (v CooledView) Bytes() uint64 { return v.e.Granted }

// Block: the block.
func (v CooledView) Block() uint64 { return v.e.Link }

// CooledFields are the fields of a COOLED event.
type CooledFields struct {
	Time          uint64 // ns
	SubAllocation bool   // the block is a piece of a slab, and ends now
	Tag           uint32 // the call site that had it last
	Bytes         uint64 // bytes of the block
	Block         uint64 // the block
}

// Event returns the COOLED event with these fields.
func (f CooledFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindCooled, Tag: f.Tag, Granted: f.Bytes, Link: f.Block}
	if f.SubAllocation {
		e.Flags |= FlagSubAlloc
	}
	return e
}

// Fields returns all fields of the event.
func (v CooledView) Fields() CooledFields {
	return CooledFields{Time: v.e.Time, SubAllocation: v.SubAllocation(), Tag: v.Tag(), Bytes: v.Bytes(), Block: v.Block()}
}

// EvictView reads a EVICT event: a pooled block went back to the driver.
type EvictView struct{ e *Event }

// AsEvict reads e as a EVICT event; the caller has checked its kind.
func (e *Event) AsEvict() EvictView { return EvictView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v EvictView) Time() uint64 { return v.e.Time }

// Duration: ns of the driver's call, saturating.
func (v EvictView) Duration() uint32 { return v.e.Duration }

// Cost: ns of the driver's call.
func (v EvictView) Cost() uint32 { return v.e.Cost }

// Reason: why.
func (v EvictView) Reason() Evict { return Evict(v.e.Reason) }

// SubAllocation: the block is a piece of a slab: the driver gets nothing.
func (v EvictView) SubAllocation() bool { return v.e.Flags&FlagSubAlloc != 0 }

// Status: what the driver returned.
func (v EvictView) Status() int16 { return v.e.Status }

// Tag: the call site that had it last.
func (v EvictView) Tag() uint32 { return v.e.Tag }

// Bytes: bytes of the block.
func (v EvictView) Bytes() uint64 { return v.e.Granted }

// Block: the block.
func (v EvictView) Block() uint64 { return v.e.Link }

// EvictFields are the fields of a EVICT event.
type EvictFields struct {
	Time          uint64 // ns
	Duration      uint32 // ns of the driver's call, saturating
	Cost          uint32 // ns of the driver's call
	Reason        Evict  // why
	SubAllocation bool   // the block is a piece of a slab: the driver gets nothing
	Status        int16  // what the driver returned
	Tag           uint32 // the call site that had it last
	Bytes         uint64 // bytes of the block
	Block         uint64 // the block
}

// Event returns the EVICT event with these fields.
func (f EvictFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindEvict, Duration: f.Duration, Cost: f.Cost, Reason: uint8(f.Reason), Status: f.Status, Tag: f.Tag, Granted: f.Bytes, Link: f.Block}
	if f.SubAllocation {
		e.Flags |= FlagSubAlloc
	}
	return e
}

// Fields returns all fields of the event.
func (v EvictView) Fields() EvictFields {
	return EvictFields{Time: v.e.Time, Duration: v.Duration(), Cost: v.Cost(), Reason: v.Reason(), SubAllocation: v.SubAllocation(), Status: v.Status(), Tag: v.Tag(), Bytes: v.Bytes(), Block: v.Block()}
}

// LimitView reads a LIMIT event: the process answers a control message.
// Payload: "name=value", "policy=name[,name=value...]", "relieve=asked given why", of experiments what intercept/broker/control.go says, or the error.
type LimitView struct{ e *Event }

// AsLimit reads e as a LIMIT event; the caller has checked its kind.
func (e *Event) AsLimit() LimitView { return LimitView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v LimitView) Time() uint64 { return v.e.Time }

// Status: 0: the change holds; -1: refused.
func (v LimitView) Status() int16 { return v.e.Status }

// Sequence: of the control message.
func (v LimitView) Sequence() uint64 { return v.e.Object }

// LimitFields are the fields of a LIMIT event.
type LimitFields struct {
	Time     uint64 // ns
	Status   int16  // 0: the change holds; -1: refused
	Sequence uint64 // of the control message
}

// Record returns the LIMIT event with these fields and a payload; Process and Thread are the caller's to set.
func (f LimitFields) Record(payload []byte) Record {
	e := Event{Time: f.Time, Kind: KindLimit, Status: f.Status, Object: f.Sequence, Size: uint64(len(payload))}
	return Record{Event: e, Payload: payload}
}

// Fields returns all fields of the event.
func (v LimitView) Fields() LimitFields {
	return LimitFields{Time: v.e.Time, Status: v.Status(), Sequence: v.Sequence()}
}

// DiagView reads a DIAG event: a diagnostic of the shim, or a mistake of the program.
// A mistake of the program and OUT_OF_MEMORY have all of these, CALL_FAILED Diag, Status and Tag, another diagnostic only Diag and the text.
// Payload: the OpenCL function of a mistake, of OUT_OF_MEMORY or of CALL_FAILED, otherwise a text.
type DiagView struct{ e *Event }

// AsDiag reads e as a DIAG event; the caller has checked its kind.
func (e *Event) AsDiag() DiagView { return DiagView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v DiagView) Time() uint64 { return v.e.Time }

// Diag: what the shim noticed.
func (v DiagView) Diag() Diag { return Diag(v.e.Op) }

// Scope: of the memory's context.
func (v DiagView) Scope() uint16 { return v.e.Scope }

// Status: what the call returned.
func (v DiagView) Status() int16 { return v.e.Status }

// Tag: the call site that created the memory, or of the call; 0: unknown.
func (v DiagView) Tag() uint32 { return v.e.Tag }

// Object: the memory; 0: unknown.
func (v DiagView) Object() uint64 { return v.e.Object }

// Bytes: bytes of the memory; 0: unknown.
func (v DiagView) Bytes() uint64 { return v.e.Granted }

// Kernel: where a kernel is concerned.
func (v DiagView) Kernel() uint64 { return v.e.Link }

// DiagFields are the fields of a DIAG event.
type DiagFields struct {
	Time   uint64 // ns
	Diag   Diag   // what the shim noticed
	Scope  uint16 // of the memory's context
	Status int16  // what the call returned
	Tag    uint32 // the call site that created the memory, or of the call; 0: unknown
	Object uint64 // the memory; 0: unknown
	Bytes  uint64 // bytes of the memory; 0: unknown
	Kernel uint64 // where a kernel is concerned
}

// Record returns the DIAG event with these fields and a payload; Process and Thread are the caller's to set.
func (f DiagFields) Record(payload []byte) Record {
	e := Event{Time: f.Time, Kind: KindDiag, Op: uint8(f.Diag), Scope: f.Scope, Status: f.Status, Tag: f.Tag, Object: f.Object, Granted: f.Bytes, Link: f.Kernel, Size: uint64(len(payload))}
	return Record{Event: e, Payload: payload}
}

// Fields returns all fields of the event.
func (v DiagView) Fields() DiagFields {
	return DiagFields{Time: v.e.Time, Diag: v.Diag(), Scope: v.Scope(), Status: v.Status(), Tag: v.Tag(), Object: v.Object(), Bytes: v.Bytes(), Kernel: v.Kernel()}
}

// ExitView reads a EXIT event: the process runs its exit handlers, or is gone.
// From the process itself when its exit handlers run; from the session (thread 0) when the process is gone.
type ExitView struct{ e *Event }

// AsExit reads e as a EXIT event; the caller has checked its kind.
func (e *Event) AsExit() ExitView { return ExitView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v ExitView) Time() uint64 { return v.e.Time }

// Status: exit status; -1: unknown. From the process itself: what it called exit() with.
func (v ExitView) Status() int16 { return v.e.Status }

// Signal: that ended it; 0: none, or unknown.
func (v ExitView) Signal() uint64 { return v.e.Object }

// OOMKillsNumber: 1 + the processes of its control group that the kernel ended for lack of memory while it ran; 0: unknown.
func (v ExitView) OOMKillsNumber() uint64 { return v.e.Size }

// ExitFields are the fields of a EXIT event.
type ExitFields struct {
	Time           uint64 // ns
	Status         int16  // exit status; -1: unknown. From the process itself: what it called exit() with
	Signal         uint64 // that ended it; 0: none, or unknown
	OOMKillsNumber uint64 // 1 + the processes of its control group that the kernel ended for lack of memory while it ran; 0: unknown
}

// Event returns the EXIT event with these fields.
func (f ExitFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindExit, Status: f.Status, Object: f.Signal, Size: f.OOMKillsNumber}
	return e
}

// Fields returns all fields of the event.
func (v ExitView) Fields() ExitFields {
	return ExitFields{Time: v.e.Time, Status: v.Status(), Signal: v.Signal(), OOMKillsNumber: v.OOMKillsNumber()}
}

// LostView reads a LOST event: events were lost; written by the session.
type LostView struct{ e *Event }

// AsLost reads e as a LOST event; the caller has checked its kind.
func (e *Event) AsLost() LostView { return LostView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v LostView) Time() uint64 { return v.e.Time }

// Events: count lost since the last such event.
func (v LostView) Events() uint64 { return v.e.Size }

// Uses: count of these, USE events.
func (v LostView) Uses() uint64 { return v.e.Granted }

// LostFields are the fields of a LOST event.
type LostFields struct {
	Time   uint64 // ns
	Events uint64 // count lost since the last such event
	Uses   uint64 // count of these, USE events
}

// Event returns the LOST event with these fields.
func (f LostFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindLost, Size: f.Events, Granted: f.Uses}
	return e
}

// Fields returns all fields of the event.
func (v LostView) Fields() LostFields {
	return LostFields{Time: v.e.Time, Events: v.Events(), Uses: v.Uses()}
}

// SlabView reads a SLAB event: the driver created a slab, or refused to.
type SlabView struct{ e *Event }

// AsSlab reads e as a SLAB event; the caller has checked its kind.
func (e *Event) AsSlab() SlabView { return SlabView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v SlabView) Time() uint64 { return v.e.Time }

// Duration: ns of the driver's call, saturating.
func (v SlabView) Duration() uint32 { return v.e.Duration }

// Cost: ns of the driver's call.
func (v SlabView) Cost() uint32 { return v.e.Cost }

// CarriedOver: it was there before the recording began; nothing happened now.
func (v SlabView) CarriedOver() bool { return v.e.Flags&FlagCarried != 0 }

// Scope: of its context; with Access it makes the class.
func (v SlabView) Scope() uint16 { return v.e.Scope }

// Access: the lowest 16 bits of its cl_mem_flags.
func (v SlabView) Access() uint16 { return v.e.Access }

// Status: what the driver returned; other than 0: there is no slab.
func (v SlabView) Status() int16 { return v.e.Status }

// Tag: the call site of the request that needed it.
func (v SlabView) Tag() uint32 { return v.e.Tag }

// Bytes: bytes of the slab.
func (v SlabView) Bytes() uint64 { return v.e.Granted }

// Block: the slab.
func (v SlabView) Block() uint64 { return v.e.Link }

// SlabFields are the fields of a SLAB event.
type SlabFields struct {
	Time        uint64 // ns
	Duration    uint32 // ns of the driver's call, saturating
	Cost        uint32 // ns of the driver's call
	CarriedOver bool   // it was there before the recording began; nothing happened now
	Scope       uint16 // of its context; with Access it makes the class
	Access      uint16 // the lowest 16 bits of its cl_mem_flags
	Status      int16  // what the driver returned; other than 0: there is no slab
	Tag         uint32 // the call site of the request that needed it
	Bytes       uint64 // bytes of the slab
	Block       uint64 // the slab
}

// Event returns the SLAB event with these fields.
func (f SlabFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindSlab, Duration: f.Duration, Cost: f.Cost, Scope: f.Scope, Access: f.Access, Status: f.Status, Tag: f.Tag, Granted: f.Bytes, Link: f.Block}
	if f.CarriedOver {
		e.Flags |= FlagCarried
	}
	return e
}

// Fields returns all fields of the event.
func (v SlabView) Fields() SlabFields {
	return SlabFields{Time: v.e.Time, Duration: v.Duration(), Cost: v.Cost(), CarriedOver: v.CarriedOver(), Scope: v.Scope(), Access: v.Access(), Status: v.Status(), Tag: v.Tag(), Bytes: v.Bytes(), Block: v.Block()}
}

// GaugeView reads a GAUGE event: free memory in slabs, as the policy sees it.
type GaugeView struct{ e *Event }

// AsGauge reads e as a GAUGE event; the caller has checked its kind.
func (e *Event) AsGauge() GaugeView { return GaugeView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v GaugeView) Time() uint64 { return v.e.Time }

// Ranges: count free ranges in slabs.
func (v GaugeView) Ranges() uint64 { return v.e.Object }

// Largest: bytes of the largest free range.
func (v GaugeView) Largest() uint64 { return v.e.Size }

// Free: bytes of all free ranges.
func (v GaugeView) Free() uint64 { return v.e.Granted }

// Squares: the sum of the squares of their sizes.
func (v GaugeView) Squares() float64 { return math.Float64frombits(v.e.Link) }

// GaugeFields are the fields of a GAUGE event.
type GaugeFields struct {
	Time    uint64  // ns
	Ranges  uint64  // count free ranges in slabs
	Largest uint64  // bytes of the largest free range
	Free    uint64  // bytes of all free ranges
	Squares float64 // the sum of the squares of their sizes
}

// Event returns the GAUGE event with these fields.
func (f GaugeFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindGauge, Object: f.Ranges, Size: f.Largest, Granted: f.Free, Link: math.Float64bits(f.Squares)}
	return e
}

// Fields returns all fields of the event.
func (v GaugeView) Fields() GaugeFields {
	return GaugeFields{Time: v.e.Time, Ranges: v.Ranges(), Largest: v.Largest(), Free: v.Free(), Squares: v.Squares()}
}

// OrderView reads a ORDER event: where the policy's next decision stands in the order of all.
type OrderView struct{ e *Event }

// AsOrder reads e as a ORDER event; the caller has checked its kind.
func (e *Event) AsOrder() OrderView { return OrderView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v OrderView) Time() uint64 { return v.e.Time }

// Order: what happened besides.
func (v OrderView) Order() Order { return Order(v.e.Op) }

// Scope: DROP, ABORT, RETURN: of the class.
func (v OrderView) Scope() uint16 { return v.e.Scope }

// Access: DROP, ABORT, RETURN: of the class.
func (v OrderView) Access() uint16 { return v.e.Access }

// Shape: DROP, ABORT, RETURN: of the class.
func (v OrderView) Shape() int16 { return v.e.Status }

// Number: of the decision.
func (v OrderView) Number() uint64 { return v.e.Object }

// Previous: the thread's decision before it; 0: none.
func (v OrderView) Previous() uint64 { return v.e.Link }

// Decision: the decision that had planned for, or found a block for, the CREATE that follows.
func (v OrderView) Decision() uint64 {
	if Order(v.e.Op) == OrderAbort || Order(v.e.Op) == OrderReturn {
		return v.e.Size
	}
	return 0
}

// Bytes: bytes that the policy was asked to make room for.
func (v OrderView) Bytes() uint64 {
	if Order(v.e.Op) == OrderDrain {
		return v.e.Size
	}
	return 0
}

// Slab: the decision with which its slab was there (ABORT), or it was in use (RETURN); 0: none.
func (v OrderView) Slab() uint64 { return v.e.Granted }

// OrderFields are the fields of a ORDER event.
type OrderFields struct {
	Time     uint64 // ns
	Order    Order  // what happened besides
	Scope    uint16 // DROP, ABORT, RETURN: of the class
	Access   uint16 // DROP, ABORT, RETURN: of the class
	Shape    int16  // DROP, ABORT, RETURN: of the class
	Number   uint64 // of the decision
	Previous uint64 // the thread's decision before it; 0: none
	Decision uint64 // the decision that had planned for, or found a block for, the CREATE that follows
	Bytes    uint64 // bytes that the policy was asked to make room for
	Slab     uint64 // the decision with which its slab was there (ABORT), or it was in use (RETURN); 0: none
}

// Event returns the ORDER event with these fields.
func (f OrderFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindOrder, Op: uint8(f.Order), Scope: f.Scope, Access: f.Access, Status: f.Shape, Object: f.Number, Link: f.Previous, Size: f.Decision | f.Bytes, Granted: f.Slab}
	return e
}

// Fields returns all fields of the event.
func (v OrderView) Fields() OrderFields {
	return OrderFields{Time: v.e.Time, Order: v.Order(), Scope: v.Scope(), Access: v.Access(), Shape: v.Shape(), Number: v.Number(), Previous: v.Previous(), Decision: v.Decision(), Bytes: v.Bytes(), Slab: v.Slab()}
}

// AwaitView reads a AWAIT event: a command waits for another.
type AwaitView struct{ e *Event }

// AsAwait reads e as a AWAIT event; the caller has checked its kind.
func (e *Event) AsAwait() AwaitView { return AwaitView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v AwaitView) Time() uint64 { return v.e.Time }

// Await: what has ended when the awaited command has.
func (v AwaitView) Await() Await { return Await(v.e.Op) }

// Scope: of the waiting queue's context.
func (v AwaitView) Scope() uint16 { return v.e.Scope }

// AwaitedQueue: the queue of the awaited command.
func (v AwaitView) AwaitedQueue() uint64 { return v.e.Object }

// AwaitedTime: of the awaited command or marker.
func (v AwaitView) AwaitedTime() uint64 { return v.e.Size }

// Queue: of the thread's command or marker with the same time, which waits; 0: the thread itself waits, in the SYNC with the same time.
func (v AwaitView) Queue() uint64 { return v.e.Link }

// AwaitFields are the fields of a AWAIT event.
type AwaitFields struct {
	Time         uint64 // ns
	Await        Await  // what has ended when the awaited command has
	Scope        uint16 // of the waiting queue's context
	AwaitedQueue uint64 // the queue of the awaited command
	AwaitedTime  uint64 // of the awaited command or marker
	Queue        uint64 // of the thread's command or marker with the same time, which waits; 0: the thread itself waits, in the SYNC with the same time
}

// Event returns the AWAIT event with these fields.
func (f AwaitFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindAwait, Op: uint8(f.Await), Scope: f.Scope, Object: f.AwaitedQueue, Size: f.AwaitedTime, Link: f.Queue}
	return e
}

// Fields returns all fields of the event.
func (v AwaitView) Fields() AwaitFields {
	return AwaitFields{Time: v.e.Time, Await: v.Await(), Scope: v.Scope(), AwaitedQueue: v.AwaitedQueue(), AwaitedTime: v.AwaitedTime(), Queue: v.Queue()}
}

// ObjectView reads a OBJECT event: how many objects of a type a call site has created, and how many of these were released.
// Counts since the process started, so that a lost one does no harm: the next says the same and more.
type ObjectView struct{ e *Event }

// AsObject reads e as a OBJECT event; the caller has checked its kind.
func (e *Event) AsObject() ObjectView { return ObjectView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v ObjectView) Time() uint64 { return v.e.Time }

// Held: what is counted.
func (v ObjectView) Held() Held { return Held(v.e.Op) }

// CarriedOver: the counts are those at the beginning of the recording.
func (v ObjectView) CarriedOver() bool { return v.e.Flags&FlagCarried != 0 }

// Tag: the call site.
func (v ObjectView) Tag() uint32 { return v.e.Tag }

// Created: count objects that it created.
func (v ObjectView) Created() uint64 { return v.e.Object }

// Released: count of these, whose last reference the program gave up.
func (v ObjectView) Released() uint64 { return v.e.Size }

// Most: count the most that it held since the record before, or now.
func (v ObjectView) Most() uint64 { return v.e.Granted }

// Untracked: count objects that it created beyond these, while as many as are tracked were held: more may be.
func (v ObjectView) Untracked() uint64 { return v.e.Link }

// ObjectFields are the fields of a OBJECT event.
type ObjectFields struct {
	Time        uint64 // ns
	Held        Held   // what is counted
	CarriedOver bool   // the counts are those at the beginning of the recording
	Tag         uint32 // the call site
	Created     uint64 // count objects that it created
	Released    uint64 // count of these, whose last reference the program gave up
	Most        uint64 // count the most that it held since the record before, or now
	Untracked   uint64 // count objects that it created beyond these, while as many as are tracked were held: more may be
}

// Event returns the OBJECT event with these fields.
func (f ObjectFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindObject, Op: uint8(f.Held), Tag: f.Tag, Object: f.Created, Size: f.Released, Granted: f.Most, Link: f.Untracked}
	if f.CarriedOver {
		e.Flags |= FlagCarried
	}
	return e
}

// Fields returns all fields of the event.
func (v ObjectView) Fields() ObjectFields {
	return ObjectFields{Time: v.e.Time, Held: v.Held(), CarriedOver: v.CarriedOver(), Tag: v.Tag(), Created: v.Created(), Released: v.Released(), Most: v.Most(), Untracked: v.Untracked()}
}

// TransferView reads a TRANSFER event: more about a command that moves memory.
// Comes before the USE events of its thread with the same time, and adds to their command. Neither Pinned nor Pageable: the command has no host side. With Profiled it comes alone, when a command that did not block has completed, and has Site, Moved and Took only.
type TransferView struct{ e *Event }

// AsTransfer reads e as a TRANSFER event; the caller has checked its kind.
func (e *Event) AsTransfer() TransferView { return TransferView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v TransferView) Time() uint64 { return v.e.Time }

// Pages: count pages of the host's side that were looked at before the command; 0: none.
func (v TransferView) Pages() uint32 { return v.e.Duration }

// Cold: count of these, not in memory: the first touch of each takes time.
func (v TransferView) Cold() uint32 { return v.e.Cost }

// Pinned: the host's side is memory of the driver: a mapping, USE_HOST_PTR, or USM of the host.
func (v TransferView) Pinned() bool { return v.e.Flags&FlagPinned != 0 }

// Pageable: it is not, as far as we know.
func (v TransferView) Pageable() bool { return v.e.Flags&FlagPageable != 0 }

// Profiled: that has completed; OTHER: none.
func (v TransferView) Profiled() Command { return Command(v.e.Op) }

// Site: call site of the command; 0: unknown.
func (v TransferView) Site() uint32 { return v.e.Tag }

// Moved: bytes by the completed command.
func (v TransferView) Moved() uint64 { return v.e.Object }

// Took: ns from its start to its end, as the device's profiling says.
func (v TransferView) Took() uint64 { return v.e.Granted }

// Hashed: bytes of a write's source that Hash is made of; 0: none, all of them: it is certain.
func (v TransferView) Hashed() uint64 { return v.e.Size }

// Hash: equal for equal bytes.
func (v TransferView) Hash() uint64 { return v.e.Link }

// TransferFields are the fields of a TRANSFER event.
type TransferFields struct {
	Time     uint64  // ns
	Pages    uint32  // count pages of the host's side that were looked at before the command; 0: none
	Cold     uint32  // count of these, not in memory: the first touch of each takes time
	Pinned   bool    // the host's side is memory of the driver: a mapping, USE_HOST_PTR, or USM of the host
	Pageable bool    // it is not, as far as we know
	Profiled Command // that has completed; OTHER: none
	Site     uint32  // call site of the command; 0: unknown
	Moved    uint64  // bytes by the completed command
	Took     uint64  // ns from its start to its end, as the device's profiling says
	Hashed   uint64  // bytes of a write's source that Hash is made of; 0: none, all of them: it is certain
	Hash     uint64  // equal for equal bytes
}

// Event returns the TRANSFER event with these fields.
func (f TransferFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindTransfer, Duration: f.Pages, Cost: f.Cold, Op: uint8(f.Profiled), Tag: f.Site, Object: f.Moved, Granted: f.Took, Size: f.Hashed, Link: f.Hash}
	if f.Pinned {
		e.Flags |= FlagPinned
	}
	if f.Pageable {
		e.Flags |= FlagPageable
	}
	return e
}

// Fields returns all fields of the event.
func (v TransferView) Fields() TransferFields {
	return TransferFields{Time: v.e.Time, Pages: v.Pages(), Cold: v.Cold(), Pinned: v.Pinned(), Pageable: v.Pageable(), Profiled: v.Profiled(), Site: v.Site(), Moved: v.Moved(), Took: v.Took(), Hashed: v.Hashed(), Hash: v.Hash()}
}

// MachineView reads a MACHINE event: what the machine reports of a process's memory; written by the session.
type MachineView struct{ e *Event }

// AsMachine reads e as a MACHINE event; the caller has checked its kind.
func (e *Event) AsMachine() MachineView { return MachineView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v MachineView) Time() uint64 { return v.e.Time }

// Source: where the figure is from.
func (v MachineView) Source() Machine { return Machine(v.e.Op) }

// Unread: the errno with which it could not be read; 0: it was.
func (v MachineView) Unread() int16 { return v.e.Status }

// Device: PCI address: domain << 16 | bus << 8 | device << 3 | function; 0: unknown, or the host.
func (v MachineView) Device() uint64 { return v.e.Object }

// Resident: bytes in memory; 0 where it could not be read.
func (v MachineView) Resident() uint64 { return v.e.Granted }

// MachineFields are the fields of a MACHINE event.
type MachineFields struct {
	Time     uint64  // ns
	Source   Machine // where the figure is from
	Unread   int16   // the errno with which it could not be read; 0: it was
	Device   uint64  // PCI address: domain << 16 | bus << 8 | device << 3 | function; 0: unknown, or the host
	Resident uint64  // bytes in memory; 0 where it could not be read
}

// Event returns the MACHINE event with these fields.
func (f MachineFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindMachine, Op: uint8(f.Source), Status: f.Unread, Object: f.Device, Granted: f.Resident}
	return e
}

// Fields returns all fields of the event.
func (v MachineView) Fields() MachineFields {
	return MachineFields{Time: v.e.Time, Source: v.Source(), Unread: v.Unread(), Device: v.Device(), Resident: v.Resident()}
}

// SpillView reads a SPILL event: --spill gave a buffer memory of the device or took it away, or a call waited for that.
type SpillView struct{ e *Event }

// AsSpill reads e as a SPILL event; the caller has checked its kind.
func (e *Event) AsSpill() SpillView { return SpillView{e} }

// Time is when it took effect: CLOCK_MONOTONIC in ns.
func (v SpillView) Time() uint64 { return v.e.Time }

// Duration: ns of the move, or of the wait, saturating.
func (v SpillView) Duration() uint32 { return v.e.Duration }

// Spill: what happened.
func (v SpillView) Spill() Spill { return Spill(v.e.Op) }

// Tag: the call site that created the buffer; 0: unknown.
func (v SpillView) Tag() uint32 { return v.e.Tag }

// Object: the buffer; 0: unknown. Of a STALL: the largest that the call needs.
func (v SpillView) Object() uint64 { return v.e.Object }

// Bytes: bytes of the buffer. Of a STALL: that the call needs at once.
func (v SpillView) Bytes() uint64 { return v.e.Size }

// Resident: bytes of buffers with memory of the device, in the process, afterwards.
func (v SpillView) Resident() uint64 { return v.e.Granted }

// Spilled: bytes of buffers whose contents only the host has, in the process, afterwards.
func (v SpillView) Spilled() uint64 { return v.e.Link }

// SpillFields are the fields of a SPILL event.
type SpillFields struct {
	Time     uint64 // ns
	Duration uint32 // ns of the move, or of the wait, saturating
	Spill    Spill  // what happened
	Tag      uint32 // the call site that created the buffer; 0: unknown
	Object   uint64 // the buffer; 0: unknown. Of a STALL: the largest that the call needs
	Bytes    uint64 // bytes of the buffer. Of a STALL: that the call needs at once
	Resident uint64 // bytes of buffers with memory of the device, in the process, afterwards
	Spilled  uint64 // bytes of buffers whose contents only the host has, in the process, afterwards
}

// Event returns the SPILL event with these fields.
func (f SpillFields) Event() Event {
	e := Event{Time: f.Time, Kind: KindSpill, Duration: f.Duration, Op: uint8(f.Spill), Tag: f.Tag, Object: f.Object, Size: f.Bytes, Granted: f.Resident, Link: f.Spilled}
	return e
}

// Fields returns all fields of the event.
func (v SpillView) Fields() SpillFields {
	return SpillFields{Time: v.e.Time, Duration: v.Duration(), Spill: v.Spill(), Tag: v.Tag(), Object: v.Object(), Bytes: v.Bytes(), Resident: v.Resident(), Spilled: v.Spilled()}
}
