package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ringPatience is how long a thread of the program may wait for room in its ring, in all for one event, before the
// event is dropped and counted; a recording is worth more patience. (A busy machine may let us wait for a processor
// for seconds.)
const (
	ringPatience      = 200 * time.Millisecond
	recordingPatience = 5 * time.Second
)

// copyMin is the size from which a buffer that starts as a copy of host memory is served from the pool: filling a
// recycled block takes a command, and below some megabytes that costs more than a new buffer (docs/RATIONALE.md).
const copyMin = 4 << 20

// plan is what a valid set of settings means.
type plan struct {
	policy   allocator.Policy // that the program begins under
	auto     bool             // it goes over to others
	settings []allocator.Setting
	tags     wire.TagMode
	depth    int
	ungated  bool
	scrub    wire.Scrub
	memory   uint64 // bytes of device memory for each process, 0: what the device has
}

// newPlan checks the settings that decide how the target runs.
func newPlan(c *config) (*plan, error) {
	p := &plan{depth: c.depth, ungated: c.ungated, auto: c.policy == allocator.Auto}
	mode, err := oneOf("tags", c.tags, tagNames())
	if err != nil {
		return nil, err
	}
	p.tags = wire.TagMode(mode)
	if c.depth < 1 || c.depth > wire.StackMax {
		return nil, fmt.Errorf("bad value %d for --stack-depth: want 1 to %d", c.depth, wire.StackMax)
	}
	if c.refresh < 20*time.Millisecond || c.refresh > 10*time.Second {
		return nil, fmt.Errorf("bad value %v for --refresh: want 20ms to 10s", c.refresh)
	}
	if _, known := allocator.Describe(c.policy); !known {
		_, err := allocator.New(c.policy, nil)
		return nil, err
	}
	if c.ungated && c.policy == "none" {
		return nil, errors.New("--unsafe-no-gating needs a policy that pools: none hands nothing out twice")
	}
	if err = p.readMemory(c); err != nil {
		return nil, err
	}
	if p.settings, err = parseLimits(c); err != nil {
		return nil, err
	}
	p.policy, err = allocator.New(c.policy, p.settings)
	return p, err
}

// readMemory reads --scrub and --device-memory.
func (p *plan) readMemory(c *config) error {
	kind, err := oneOf("scrub", c.scrub, scrubNames())
	if err != nil {
		return err
	}
	p.scrub = wire.Scrub(kind)
	if p.scrub != wire.ScrubNone && c.policy == "none" {
		return errors.New("--scrub needs a policy that pools: none recycles nothing")
	}
	if c.deviceMemory == "" {
		return nil
	}
	if p.memory, err = size.Parse(c.deviceMemory); err != nil {
		return fmt.Errorf("--device-memory: %w", err)
	}
	if p.memory == 0 {
		return fmt.Errorf("bad value %q for --device-memory: want more than nothing", c.deviceMemory)
	}
	return nil
}

// scrubNames are the values of --scrub; the place of each is its wire.Scrub.
func scrubNames() []string { return names(wire.ScrubNone, wire.ScrubPoison) }

// tagNames are the values of --tags; the place of each is its wire.TagMode.
func tagNames() []string { return names(wire.TagsNone, wire.TagsThread) }

// names are the words for the values of an enumeration whose first is 0.
func names[T interface {
	~uint8
	String() string
}](first, last T) []string {
	var names []string
	for value := first; value <= last; value++ {
		names = append(names, value.String())
	}
	return names
}

// oneOf returns the place of a flag's value among the words that it takes.
func oneOf(flag, value string, words []string) (int, error) {
	if at := slices.Index(words, value); at >= 0 {
		return at, nil
	}
	return 0, fmt.Errorf("bad value %q for --%s: want one of %s", value, flag, strings.Join(words, ", "))
}

// checkFormat checks the value of --format.
func checkFormat(value string, formats []string) error {
	if !slices.Contains(formats, value) {
		return fmt.Errorf("unknown format %q: want one of %s", value, strings.Join(formats, ", "))
	}
	return nil
}

// config returns the settings in the form that the target reads.
func (p *plan) config(recorded bool) wire.Config {
	texts := make([]string, len(p.settings))
	for i, s := range p.settings {
		texts[i] = s.Name + "=" + s.Value
	}
	patience := ringPatience
	if recorded {
		patience = recordingPatience
	}
	return wire.Config{
		Tags: p.tags, StackDepth: p.depth, Pooling: p.policy.Name() != "none",
		Policy: p.policy.Name(), Limits: strings.Join(texts, ","),
		Wait: patience, Ungated: p.ungated, CopyMin: copyMin, Scrub: p.scrub, DeviceMemory: p.memory,
		// Nothing on the screen needs every use, and they are most of the events.
		Uses: recorded,
	}
}
