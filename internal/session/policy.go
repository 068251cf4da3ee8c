package session

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// setPolicy asks every process for a policy. next numbers the messages; the first number is that of the request.
func (c *collector) setPolicy(name string, settings []allocator.Setting, next func() uint64) (sequence uint64, err error) {
	if _, err := allocator.New(name, settings); err != nil {
		return 0, fmt.Errorf("set policy: %w", err)
	}
	var changes []change
	for i, text := range policyTexts(name, settings) {
		number := next()
		message, err := wire.Control{Sequence: number, Text: text.message}.Encode()
		if err != nil {
			return 0, fmt.Errorf("set policy: %w", err)
		}
		changes = append(changes, change{message: message, number: number})
		if i > 0 {
			changes[i].name = text.limit
		}
	}
	c.queueCall(func() {
		c.model.NotePolicyWanted(name, changes[0].number)
		for _, latest := range changes {
			c.sendChangeToAll(latest)
		}
	})
	return changes[0].number, nil
}

// policyText is one message, and the limit that it sets, if it sets only one.
type policyText struct{ limit, message string }

// policyTexts writes a policy with its limits as messages: the first has the policy and all limits that fit, each further
// message one limit.
func policyTexts(name string, settings []allocator.Setting) []policyText {
	texts := []policyText{{message: "policy " + name}}
	separator := " "
	for _, s := range sortSizesFirst(settings) {
		setting := s.Name + "=" + s.Value
		if first := texts[0].message + separator + setting; len(first) <= wire.ControlMax {
			texts[0].message, separator = first, ","
			continue
		}
		texts = append(texts, policyText{s.Name, "limit " + setting})
	}
	return texts
}

// sizing lists the limits that determine the sizes of blocks. They come first: a policy that gets them late gives up blocks
// that it would have kept; and max_part must lie between page_bytes and heap_bytes.
var sizing = []string{"page_bytes", "heap_bytes", "max_part", "min_block", "mantissa_bits", "bucket_sizes"}

// sortSizesFirst sorts settings: those in sizing come first.
func sortSizesFirst(settings []allocator.Setting) []allocator.Setting {
	rank := func(s allocator.Setting) int {
		if at := slices.Index(sizing, s.Name); at >= 0 {
			return at
		}
		return len(sizing)
	}
	sorted := slices.Clone(settings)
	slices.SortStableFunc(sorted, func(a, b allocator.Setting) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// setPlan gives a process a plan. next numbers the messages.
func (c *collector) setPlan(process uint32, plan *allocator.Layout, next func() uint64) error {
	const verb = "plan "
	var messages [][]byte
	for _, piece := range plan.EncodePieces(wire.ControlMax - len(verb)) {
		message, err := wire.Control{Sequence: next(), Text: verb + piece}.Encode()
		if err != nil {
			return fmt.Errorf("set plan: %w", err)
		}
		messages = append(messages, message)
	}
	c.queueCall(func() {
		for _, p := range slices.Clone(c.peers) { // guard may remove one
			if p.number != process || len(p.outbox)+len(messages) > outboxMax {
				continue
			}
			c.runUnlessProcessFaults(func() {
				for _, message := range messages {
					p.queueMessage(message)
				}
			})
		}
	})
	return nil
}
