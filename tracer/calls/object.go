package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// object is the common part of contexts, queues, kernels, samplers and programs.
type object struct {
	number     uint64
	references uint32
	carried    bool // existed before we attached: its references are unknown
	firstCall  firstCall
	counts     *counts
}

// dropReference drops a reference and reports whether the object has ended. A carried object may have had more references than
// we know of.
func (o *object) dropReference() bool {
	if o.references > 1 {
		o.references--
		return false
	}
	return !o.carried
}

// isFromNestedCall reports whether a call inside s has reported the object already.
func (o *object) isFromNestedCall(s *wire.Sample) bool { return !o.carried && o.firstCall.isNested(s) }

// carriedObject returns an object that existed before we attached.
func carriedObject(s *wire.Sample, number uint64) object {
	return object{number: number, references: 1, carried: true, firstCall: firstCallOf(s)}
}

func newObject(s *wire.Sample, number uint64) object {
	return object{number: number, references: 1, firstCall: firstCallOf(s)}
}

// firstCall is the call by which we came to know an object.
type firstCall struct {
	entered, time uint64
	thread        uint32
	function      uint16
}

func firstCallOf(s *wire.Sample) firstCall { return firstCall{s.Entered, s.Time, s.Tid, s.Function} }

// isNested reports whether a call inside s, of another function, has returned the object already.
func (o firstCall) isNested(s *wire.Sample) bool {
	return o.function != s.Function && o.wasSeenDuring(s)
}

// wasSeenDuring reports whether the thread of s saw the object first while s ran.
func (o firstCall) wasSeenDuring(s *wire.Sample) bool {
	return o.thread == s.Tid && s.Entered <= o.entered && o.time <= s.Time
}
