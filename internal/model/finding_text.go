package model

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Text says in one line what was wrong and how often. bytes writes a size.
func (f *Finding) Text(bytes func(uint64) string) string {
	text := f.Kind.String() + ": " + f.sentence(bytes)
	if f.Count > 1 {
		text += fmt.Sprintf(" (%d times)", f.Count)
	}
	return text
}

func (f *Finding) sentence(bytes func(uint64) string) string {
	function, memory := f.Function, f.memory(bytes)
	if function == "" {
		function = "a call"
	}
	if f.Kernel != "" && f.Kind != wire.DiagStaleArgument {
		function += " of " + f.Kernel
	}
	switch f.Kind {
	case wire.DiagUnknownMemory:
		if f.Status == 0 {
			return function + " was given something that no create seen here returned, and that the driver accepts"
		}
		return function + " was given something that no create returned"
	case wire.DiagUseAfterRelease:
		return function + " on " + memory + ", after its last release"
	case wire.DiagWrongContext:
		return function + " with " + memory + ", which belongs to another context"
	case wire.DiagStillMapped:
		return function + " of " + memory + " that is still mapped"
	case wire.DiagStaleRead:
		return function + " reads a recycled block before anything wrote it (certain): " + memory
	case wire.DiagStaleArgument:
		if f.Kernel == "" {
			return memory + " given to a kernel that cannot write it, before anything wrote it: the kernel reads it or ignores it"
		}
		return fmt.Sprintf("%s given to kernel %s, which cannot write it, before anything wrote it: %s reads it or ignores it",
			memory, f.Kernel, f.Kernel)
	default: // double release, and whatever a later version finds
		return function + " of " + memory
	}
}

// memory names the memory by what is known of it.
func (f *Finding) memory(bytes func(uint64) string) string {
	text := "a buffer"
	if f.Size > 0 {
		text = "a " + bytes(f.Size) + " buffer"
	}
	if f.Tag != "" {
		text += " created at " + f.Tag
	}
	return text
}
