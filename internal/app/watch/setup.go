package watch

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/planfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// How long a thread of the program may wait in all for room in its ring for one event, before the event is dropped and
// counted. A recording is worth more patience: on a busy machine we may wait seconds for a processor.
const (
	ringPatience      = time.Second
	recordingPatience = 5 * time.Second
)

// copyMin is the size from which the pool serves buffers that start as a copy of host memory. Filling a recycled block
// takes a command, which costs more than a new buffer below some MiB (docs/RATIONALE.md).
const copyMin = 4 << 20

// memoryMin is the least device memory: no program works with less, and a number without a unit counts bytes.
const memoryMin = 1 << 10

// SetupOptions are the settings under which a program runs.
type SetupOptions struct {
	PolicyChoice
	Tags         string
	Depth        int  // frames of a call stack
	Ungated      bool // blocks are reused while commands still use them
	Scrub        string
	DeviceMemory string // a size; empty: what the device has
	Spill        bool   // let the program have more memory than the device: idle objects go to host memory
	Eager        bool   // memory gets its room on the devices when it is created
	AnswerFree   bool   // answer the query for free memory where the driver does not know it
	NoRelief     bool   // neither give other programs idle memory, nor ask for theirs
	HashWrites   bool   // hash all bytes that the program writes, not samples
	MemoryBudget string // a size: what we may take ourselves; empty: the usual
	Measure      MeasureOptions
}

// Setup is a checked SetupOptions.
type Setup struct {
	Policy   *allocator.Pool // the first one
	Auto     bool            // the policy changes during the run
	Settings []allocator.Setting
	Tags     wire.TagMode
	Depth    int
	Ungated  bool
	Scrub    wire.Scrub
	Memory   uint64         // bytes of device memory for each process, 0: what the device has
	Plan     *planfile.Plan // of the program's memory; nil: none is given
	Spill    bool           // idle objects go to host memory when the device has no room
	Eager    bool           // memory gets its room on the devices when it is created
	Free     bool           // answer the query for free memory where the driver does not know it
	NoRelief bool           // neither give other programs idle memory, nor ask for theirs
	Hash     bool           // hash all bytes that the program writes, not samples
	Budget   int64          // what we may take ourselves, in bytes
	nameless *atomic.Uint64 // files with names that the budget has no room for
	Measure  Experiment
}

// NewSetup checks settings.
func NewSetup(o *SetupOptions) (*Setup, error) {
	s := &Setup{Depth: o.Depth, Ungated: o.Ungated, Spill: o.Spill, Eager: o.Eager, Free: o.AnswerFree, NoRelief: o.NoRelief, Hash: o.HashWrites, Auto: o.Policy == allocator.Auto, nameless: new(atomic.Uint64)}
	mode, err := IndexOfFlagValue("tags", o.Tags, TagNames())
	if err != nil {
		return nil, err
	}
	s.Tags = wire.TagMode(mode)
	if o.Depth < 1 || o.Depth > wire.StackMax {
		return nil, fmt.Errorf("bad value %d for --stack-depth: want 1 to %d", o.Depth, wire.StackMax)
	}
	if s.Plan, err = o.ReadPlan(); err != nil {
		return nil, err
	}
	if err := o.checkSpill(); err != nil {
		return nil, err
	}
	if o.Ungated && o.Policy == "none" {
		return nil, errors.New("--unsafe-no-gating needs a policy with a pool: none reuses nothing")
	}
	if s.Policy, s.Settings, err = o.NewPool(); err != nil {
		return nil, err
	}
	if s.Measure, err = o.Measure.NewExperiment(&o.PolicyChoice, o.Spill); err != nil {
		return nil, err
	}
	if err := s.readMemoryBudget(o.MemoryBudget); err != nil {
		return nil, err
	}
	if s.Auto && s.Measure.Never {
		return nil, fmt.Errorf("--measure=off: policy %s decides by what it measures in the program; take another policy, or leave --measure out", allocator.Auto)
	}
	return s, s.readScrubAndDeviceMemory(o)
}

// checkSpill refuses what --spill does not go with: what a pool keeps could not go to host memory.
func (o *SetupOptions) checkSpill() error {
	switch {
	case !o.Spill:
	case o.Plan != "" || o.Policy != "none":
		return errors.New("--spill works without a pool: leave out --policy and --plan, or give --policy none")
	case o.Eager:
		return errors.New("--spill decides itself when memory gets its room: leave out --eager")
	}
	return nil
}

// budgetMin is the least that a session can do with.
const budgetMin = 128 << 20

// readMemoryBudget reads --memory-budget. Half of it is for names, half for what the program holds.
func (s *Setup) readMemoryBudget(text string) error {
	s.Budget = budget.Session
	if text == "" {
		return nil
	}
	size, err := units.ParseSize(text)
	if err != nil {
		return fmt.Errorf("--memory-budget: %w", err)
	}
	if size < budgetMin || size > math.MaxInt64 {
		return fmt.Errorf("bad value %q for --memory-budget: want %s or more", text, units.FormatLong(budgetMin))
	}
	s.Budget = int64(size)
	return nil
}

// namingOptions are the options for finding names. From now on garbage has no more room than the budget leaves.
func (s *Setup) namingOptions(notes *console.Notes) symbol.Options {
	debug.SetMemoryLimit(s.Budget)
	return symbol.Options{Budget: budget.New(s.Budget / 2), Say: func(line string) {
		s.nameless.Add(1)
		notes.Add(line)
	}}
}

// entryBytes is what we take for a buffer or a block of the program, with what counts it.
const entryBytes = 600

// maxHeapEntries is how many buffers and blocks are followed at once.
func (s *Setup) maxHeapEntries() int { return int(s.Budget / 2 / entryBytes) }

// readScrubAndDeviceMemory reads --scrub and --device-memory.
func (s *Setup) readScrubAndDeviceMemory(o *SetupOptions) error {
	kind, err := IndexOfFlagValue("scrub", o.Scrub, ScrubNames())
	if err != nil {
		return err
	}
	s.Scrub = wire.Scrub(kind)
	if s.Scrub != wire.ScrubNone && o.Policy == "none" {
		return errors.New("--scrub needs a policy with a pool: none recycles nothing")
	}
	if o.DeviceMemory == "" {
		return nil
	}
	if s.Memory, err = units.ParseSize(o.DeviceMemory); err != nil {
		return fmt.Errorf("--device-memory: %w", err)
	}
	if s.Memory < memoryMin {
		return fmt.Errorf("bad value %q for --device-memory: want %s or more, for example 512MiB", o.DeviceMemory, units.FormatLong(memoryMin))
	}
	return nil
}

// PoisonRecycled fills recycled memory with bytes that arithmetic notices, as --scrub poison does.
func (s *Setup) PoisonRecycled() { s.Scrub = wire.ScrubPoison }

// Configuration is the policy with its settings.
func (s *Setup) Configuration() replay.Configuration {
	return replay.Configuration{Policy: s.Policy.PolicyName(), Settings: s.Settings}
}

// loadsPoolLibrary reports whether the library that pools is loaded into the program.
func (s *Setup) loadsPoolLibrary() bool { return s.Policy.PolicyName() != "none" || s.Measure.Now }

// WireConfig returns the settings in the form that the program's shim reads. onDemand: where nothing is recorded, the user may
// start that later.
func (s *Setup) WireConfig(recorded, onDemand bool) wire.Config {
	texts := make([]string, len(s.Settings))
	for i, setting := range s.Settings {
		texts[i] = setting.Name + "=" + setting.Value
	}
	transfers := wire.TransfersSampled
	if s.Hash {
		transfers = wire.TransfersHashed
	}
	patience, uses := ringPatience, wire.UsesNever
	if onDemand {
		uses = wire.UsesAsked
	}
	if recorded {
		patience, uses = recordingPatience, wire.UsesAlways
	}
	return wire.Config{
		Tags: s.Tags, StackDepth: s.Depth, Pooling: s.loadsPoolLibrary(), NoRelief: s.NoRelief,
		Policy: s.Policy.PolicyName(), Limits: strings.Join(texts, ","),
		Wait: patience, Ungated: s.Ungated, Spill: s.Spill, Eager: s.Eager, CopyMin: copyMin, Scrub: s.Scrub, DeviceMemory: s.Memory, AnswerFree: s.Free,
		// Most events are uses, and the dashboard needs few of them.
		Uses: uses, Transfers: transfers,
	}
}

// ScrubNames are the values of --scrub; the index of each is its wire.Scrub.
func ScrubNames() []string { return WordsOfEnum(wire.ScrubNone, wire.ScrubAuto) }

// TagNames are the values of --tags; the index of each is its wire.TagMode.
func TagNames() []string { return WordsOfEnum(wire.TagsNone, wire.TagsThread) }

// WordsOfEnum are the words for the values of an enumeration that starts at 0.
func WordsOfEnum[T interface {
	~uint8
	String() string
}](first, last T) []string {
	var names []string
	for value := first; value <= last; value++ {
		names = append(names, value.String())
	}
	return names
}

// IndexOfFlagValue returns the index of a flag's value among the words that it takes.
func IndexOfFlagValue(flag, value string, words []string) (int, error) {
	if at := slices.Index(words, value); at >= 0 {
		return at, nil
	}
	return 0, fmt.Errorf("bad value %q for --%s: want one of %s", value, flag, strings.Join(words, ", "))
}

// A recording keeps the variables that decide which device and driver a program finds and how they behave. It keeps no
// others: they may hold secrets.
var (
	recordedPrefixes = []string{
		"OCL_", "OPENCL_", "POCL_", "CL_", "CUDA_CACHE_", "RUSTICL_", "GPUMEMTOP_",
	}
	recordedNames = []string{
		"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
		"GPU_DEVICE_ORDINAL", "GPU_MAX_ALLOC_PERCENT", "GPU_MAX_HEAP_SIZE", "GPU_SINGLE_ALLOC_PERCENT", "GPU_FORCE_64BIT_PTR",
		"ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR", "LD_LIBRARY_PATH", "OMP_NUM_THREADS",
	}
	// Variables with these words in their names are never kept.
	secretWords = []string{"SECRET", "TOKEN", "PASSW", "CREDENTIAL", "KEY", "AUTH"}
)

const (
	recordedMax      = 256  // variables
	recordedValueMax = 1024 // bytes; longer values are cut
)

// variablesToRecord returns the variables that a recording keeps.
func variablesToRecord(environment []string) map[string]string {
	kept := map[string]string{}
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if !isRecordableVariable(name) || len(kept) == recordedMax || len(name) > recordedValueMax {
			continue
		}
		value = strings.ToValidUTF8(value, "?")
		if len(value) > recordedValueMax {
			const more = "…"
			// ToValidUTF8 drops the rest of a character that was cut through.
			value = strings.ToValidUTF8(value[:recordedValueMax-len(more)], "") + more
		}
		kept[strings.ToValidUTF8(name, "?")] = value
	}
	return kept
}

func isRecordableVariable(name string) bool {
	if slices.Contains(recordedNames, name) {
		return true
	}
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	upper := strings.ToUpper(name)
	hides := func(word string) bool { return strings.Contains(upper, word) }
	return slices.ContainsFunc(recordedPrefixes, begins) && !slices.ContainsFunc(secretWords, hides)
}
