// Package wire holds the one definition of what passes between a target process and gpumemtop: events, their
// rings in shared memory, and the few messages on the session's socket. event.h is the source: types_linux.go, enums.go
// and views.go are generated from it. eligible.def is the source of another definition that both sides share: which memory a
// pool may serve. The package reads no clock and does no I/O.
//
// The fields of an Event mean something else in each kind. Code elsewhere reads them through a view, such as
// e.AsCreate().Requested(), writes them as fields, such as CreateFields{Requested: 64}.Event(), and leaves payloads to
// the parser and the writer here that each kind has.
package wire

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

//go:generate go run ./gen

// BeforeAttach is what a SITE calls the tag of memory that a program had before attach.
const BeforeAttach = "unknown before attach"

// Record is one event with its origin and payload, as it travels from a source to recording and model.
type Record struct {
	Event
	Process uint32 // number of the process in its session, from 1
	Thread  uint32 // tid of the thread that wrote it
	Payload []byte // valid until the source is asked for the next record
}

// HasPayload reports whether Size of an event of this kind counts payload bytes.
func (k Kind) HasPayload() bool {
	switch k {
	case KindProcess, KindModule, KindTag, KindSite, KindDevice, KindKernel, KindLimit, KindDiag:
		return true
	}
	return false
}

// IsDefinition reports whether a record defines what others refer to: processes, threads, modules, call sites, devices, contexts, queues,
// kernels, and the places of processes.
func (r *Record) IsDefinition() bool {
	return r.Kind >= KindProcess && r.Kind <= KindKernel || r.Kind == KindDiag && r.AsDiag().Diag() == DiagPlace
}

// IsMadeLater reports whether records of this kind are made by gpumemtop when it has found something out, so that records of
// what happened before their time follow them.
func (k Kind) IsMadeLater() bool { return k == KindModule || k == KindSite || k == KindMachine }

// IsTimed reports whether a record shows that its time has come: not what comes late, nor what gpumemtop adds while older records are on
// their way: PROCESS and the place of a process, when it accepts one that has called OpenCL already, and the messages of an experiment.
func (r *Record) IsTimed() bool {
	if r.Kind == KindDiag {
		d := r.AsDiag().Diag()
		return d != DiagPlace && d != DiagMeasure
	}
	return !r.Kind.IsMadeLater() && r.Kind != KindProcess
}

// JSONKey returns the word for a diagnostic as a key in JSON: "double_release".
func (v Diag) JSONKey() string { return strings.ReplaceAll(v.String(), " ", "_") }

// MarshalText writes Key.
func (v Diag) MarshalText() ([]byte, error) { return []byte(v.JSONKey()), nil }

// UnmarshalText reads what MarshalText writes.
func (v *Diag) UnmarshalText(text []byte) error {
	for code := range Diag(math.MaxUint8) {
		if code.JSONKey() == string(text) {
			*v = code
			return nil
		}
	}
	return fmt.Errorf("no diagnostic is %q", text)
}

// IsFinding reports whether a diagnostic is a mistake of the program.
func (v Diag) IsFinding() bool {
	return v >= DiagUnknownMemory && v <= DiagStaleArgument || v == DiagUseAfterFork
}

// PayloadLen returns how many payload bytes follow the event, at most PayloadMax.
func (e *Event) PayloadLen() int {
	if !e.Kind.HasPayload() {
		return 0
	}
	return int(min(e.Size, PayloadMax))
}

// BytesServing is that of a CREATE.
func (e *Event) BytesServing() uint64 { return e.AsCreate().BytesServing() }

// OffsetInParent is that of a CREATE; false for other kinds.
func (e *Event) OffsetInParent() (uint64, bool) {
	if e.Kind != KindCreate {
		return 0, false
	}
	return e.AsCreate().OffsetInParent()
}

// Sample is one record of the eBPF program. Its slices are valid until the next one is read.
type Sample struct {
	Call
	Copies []byte // CallData bytes, half for each copy of the shape; nil when there are none
	Memory []byte // of the caller's stack, from Sp on
}

// ProgramName returns the name of the program of a SightExec, at most 15 bytes.
func (s *Sample) ProgramName() string {
	var name [commSize]byte
	for i := range name {
		name[i] = byte(s.Argument[i/8] >> (i % 8 * 8))
	}
	text, _, _ := bytes.Cut(name[:], []byte{0})
	return string(text)
}

// CopiedArgument returns what argument number i of the shape's copies pointed to, nil when it could not be read.
func (s *Sample) CopiedArgument(i int) []byte {
	if s.Copied[i] == 0 || s.Copies == nil {
		return nil
	}
	const each = CallData / CallCopies
	return s.Copies[i*each : (i+1)*each]
}
