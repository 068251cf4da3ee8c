package tables

import (
	"strings"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// flagWords are the words for all sets of flags.
var flagWords = sync.OnceValue(func() *[256]string {
	var words [256]string
	names := []string{"out_of_order", "reads", "writes", "would_race", "ordered", "part", "carried", "scattered"}
	for set := range words {
		var list []string
		for bit, name := range names {
			if set&(1<<bit) != 0 {
				list = append(list, name)
			}
		}
		words[set] = strings.Join(list, " ")
	}
	return &words
})

// flagsWithWords returns the flags of an event that have words.
func flagsWithWords(e *wire.Event) uint8 {
	if e.Kind == wire.KindRelease {
		return e.Flags &^ wire.FlagExposed
	}
	return e.Flags
}

// flagsOfCreate returns the flags of the CREATE of an object.
func flagsOfCreate(o *heap.Object) uint8 {
	return wire.CreateFields{
		NeedsBlock: o.NeedsBlock, SubAllocation: o.SubAllocation, CarriedOver: o.CarriedOver,
	}.Event().Flags
}

// wordOfOp returns the word for an event's op, whose meaning depends on the kind.
func wordOfOp(e *wire.Event) string {
	switch e.Kind {
	case wire.KindCreate:
		return wire.Memory(e.Op).String()
	case wire.KindUse:
		return wire.Command(e.Op).String()
	case wire.KindSync:
		return wire.Sync(e.Op).String()
	case wire.KindContext, wire.KindQueue:
		return wire.Life(e.Op).String()
	case wire.KindDiag:
		return wire.Diag(e.Op).String()
	case wire.KindTag:
		return wire.TagMode(e.Op).String()
	case wire.KindMachine:
		return wire.Machine(e.Op).String()
	case wire.KindSpill:
		return wire.Spill(e.Op).String()
	default:
		return ""
	}
}

// wordOfOutcome returns the word for an event's outcome, empty if it has none, as a release that leaves references.
func wordOfOutcome(e *wire.Event) string {
	if e.Kind == wire.KindCreate || e.Kind == wire.KindRelease && e.Granted == 0 {
		return e.Outcome.String()
	}
	return ""
}

func wordOfReason(e *wire.Event) string {
	switch {
	case e.Kind == wire.KindCreate && e.Outcome == wire.OutcomeMiss:
		return wire.Miss(e.Reason).String()
	case e.Kind == wire.KindEvict:
		return wire.Evict(e.Reason).String()
	}
	return ""
}

// tagIsCallSite reports whether an event's tag is a call site.
func tagIsCallSite(e *wire.Event) bool {
	switch e.Kind {
	case wire.KindCreate, wire.KindTag, wire.KindSite, wire.KindTransfer:
		return true
	case wire.KindUse:
		return wire.Command(e.Op) == wire.CommandCopy && e.Tag > 0 // other uses have the tag of their memory, which the object shows already
	case wire.KindDiag:
		return wire.Diag(e.Op).IsFinding() || wire.Diag(e.Op) == wire.DiagCallFailed
	}
	return false
}
