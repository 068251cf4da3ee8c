package merging

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// adviceSentence says in words what to change.
func (a *Advice) adviceSentence() string {
	switch a.Topic {
	case Coalesce:
		return a.coalesceCopySentence()
	case Concat:
		return a.concatSentence()
	case NoOpCopy:
		return fmt.Sprintf("Remove the copy at %s (%s): it puts bytes where they are.", a.Sites[0], countAndBytesText(a.Count, a.Bytes))
	case ShareBlock:
		return fmt.Sprintf("Create one buffer%s for %s: their buffers are never needed at once. It saves %s%s.",
			a.sizeHint(), joinWords(a.Sites), a.peakHint(), createsText(a.Count))
	case CreateOnce:
		return fmt.Sprintf("Keep the buffer of %s%s and use it again: it is never needed twice at once. It saves %s%s.",
			a.Sites[0], a.sizeHint(), a.peakHint(), createsText(a.Count))
	case KeepSeveral:
		return fmt.Sprintf("Keep %d buffers of %s and use them in turn: never more of them are needed at once. It saves %s.",
			a.Blocks, a.Sites[0], createsText(a.Count))
	case InPlace:
		return fmt.Sprintf("The kernel that makes %s reads %s for the last time, and they are of one size (%s): if each "+
			"thread reads only what it writes itself, it could write in place.", a.Sites[1], a.Sites[0], countAndBytesText(a.Count, a.Bytes))
	case HeldEarly:
		if a.Unused {
			return fmt.Sprintf("Do without the buffers of %s that nothing uses: they held %s at the peak.", a.Sites[0],
				units.FormatLong(a.Bytes))
		}
		return fmt.Sprintf("%s the buffers of %s later: at the peak, nothing had used %s of them.", a.insteadHint("Create"), a.Sites[0],
			units.FormatLong(a.Bytes))
	default:
		return fmt.Sprintf("%s the buffers of %s sooner: at the peak, %s of them were no longer used.", a.insteadHint("Release"), a.Sites[0],
			units.FormatLong(a.Bytes))
	}
}

// insteadHint begins a sentence with a verb, after saying what cannot be done as well.
func (a *Advice) insteadHint(verb string) string {
	if !a.Instead {
		return verb
	}
	return "Instead of keeping or sharing them, " + strings.ToLower(verb)
}

// sizeHint says how large a block for buffers of several sizes must be.
func (a *Advice) sizeHint() string {
	if !a.Grows {
		return ""
	}
	return ", as large as the largest,"
}

// peakHint says by how much the peak falls.
func (a *Advice) peakHint() string {
	if a.Bytes == 0 {
		return ""
	}
	return units.FormatLong(a.Bytes) + " at the peak and "
}

func (a *Advice) coalesceCopySentence() string {
	site, src, dst := a.Sites[0], a.Sites[1], a.Sites[2]
	what := fmt.Sprintf("the copy at %s from %s to %s (%s)", site, src, dst, countAndBytesText(a.Count, a.Bytes))
	if a.Verdict == Hinted {
		return fmt.Sprintf("It would do without %s, but another choice saves more.", what)
	}
	if a.Verdict != NearMiss {
		return fmt.Sprintf("Make %s in a sub-buffer of %s and drop %s.%s%s%s", src, dst, what, a.flagsHint(), a.subBufferHint(), a.refillHint())
	}
	return fmt.Sprintf("It would do without %s, if not for %s: %s.%s", what, a.Failed, a.obstacleText(), a.remedyText())
}

// flagsHint says what else must change if contexts or flags differ.
func (a *Advice) flagsHint() string {
	if !a.OtherFlags {
		return ""
	}
	dst, src := a.Sites[0], "its parts"
	if a.Topic == Coalesce {
		dst, src = a.Sites[2], a.Sites[1]
	}
	return fmt.Sprintf(" They differ in their context or flags: %s must then allow what is done to %s.", dst, src)
}

// subBufferHint explains what to do with sub-buffers of a merged buffer.
func (a *Advice) subBufferHint() string {
	if !a.Nested {
		return ""
	}
	return " OpenCL has no sub-buffers of sub-buffers: make those within it of the outermost buffer, too."
}

// refillHint explains how to handle other contents of the source.
func (a *Advice) refillHint() string {
	if !a.Refilled {
		return ""
	}
	return " The source holds several contents, one after the other: each needs memory of its own, a sub-buffer where it is copied."
}

// obstacleText describes the condition that fails.
func (a *Advice) obstacleText() string {
	switch a.Failed {
	case LastUse:
		return "the source is used after the copy"
	case Allocated:
		return "the destination is created after the source is first used"
	case Undisturbed:
		if a.Producer {
			return "the kernel that makes the source uses the destination's bytes too, and nothing else does"
		}
		return "the destination's bytes are used between the source's first use and the copy"
	case OwnMemory:
		return "the source has no plain memory of its own, or its create brings its data"
	case Addressable:
		return "the place in the destination cannot be a sub-buffer made in time"
	case Agreement:
		return "it holds at some times and not at others"
	default:
		return "commands on different queues may be at work at once"
	}
}

func (a *Advice) remedyText() string {
	const when = "before the source is first used: the host reads nothing in between."
	switch a.Hoist {
	case HoistCreate:
		return " To mend that, create the destination " + when
	case HoistFill:
		return " To mend that, fill the destination " + when
	case HoistCreate | HoistFill:
		return " To mend that, create the destination, and fill it, " + when
	}
	if a.Producer {
		return " Let that kernel read from elsewhere what it needs of the destination."
	}
	return ""
}

func (a *Advice) concatSentence() string {
	return fmt.Sprintf("Make the parts of %s where they belong, in sub-buffers of it (%s), and drop the copies at %s (%s).%s%s%s",
		a.Sites[0], a.partOffsetsText(), joinWords(a.Copies), countAndBytesText(a.Count, a.Bytes), a.flagsHint(), a.subBufferHint(), a.refillHint())
}

// partOffsetsText lists the offsets of the parts of a buffer.
func (a *Advice) partOffsetsText() string {
	if len(a.Offsets) == 0 {
		return joinWords(a.Sites[1:]) + ", not always at the same bytes"
	}
	var sources, places []string
	bytes := map[string][]string{}
	for i, offset := range a.Offsets {
		source := a.Sites[i+1]
		if bytes[source] == nil {
			sources = append(sources, source)
		}
		bytes[source] = append(bytes[source], strconv.FormatUint(offset, 10))
	}
	for _, source := range sources {
		word := "bytes"
		if len(bytes[source]) == 1 {
			word = "byte"
		}
		places = append(places, source+" at "+word+" "+joinWords(firstFewWords(bytes[source])))
	}
	return strings.Join(firstFewWords(places), "; ")
}

// firstFewWords returns the first of many words, and how many more there are.
func firstFewWords(words []string) []string {
	if len(words) <= 4 {
		return words
	}
	return append(slices.Clone(words[:3]), fmt.Sprintf("%d more", len(words)-3))
}

// countAndBytesText writes how often something happened, and how many bytes that were.
func countAndBytesText(n int, bytes uint64) string {
	if n == 1 {
		return units.FormatLong(bytes)
	}
	return fmt.Sprintf("%d times, %s", n, units.FormatLong(bytes))
}

func createsText(n int) string {
	if n == 1 {
		return "one create"
	}
	return fmt.Sprintf("%d creates", n)
}

// joinWords writes "a, b and c".
func joinWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
