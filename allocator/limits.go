package allocator

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Kind says what values a limit takes.
type Kind uint8

// The kinds of limits, and how their values are written.
const (
	Number  Kind = iota // a decimal number
	Count               // a whole number
	Bytes               // whole, in bytes
	Seconds             // a decimal number
	Switch              // "off", "on"
	Choice              // one of Choices
	Sizes               // ascending sizes in bytes, "1024:4096"
)

// Limit is one setting that a policy obeys.
type Limit struct {
	Name     string
	Kind     Kind
	Text     string   // the value as SetLimit takes it
	Value    float64  // the value as a number: the index among Choices, the number of Sizes
	Min, Max float64  // inclusive; for Sizes of each size
	Choices  []string // for SwitchPolicy and Choice
	Zero     string   // what 0 means, "no limit" or "auto"; empty: 0
	Help     string   // one line
}

// Setting is a requested value of a limit.
type Setting struct {
	Name, Value string
}

// order says which cached blocks go first when memory is short.
type order uint8

const (
	bySlot order = iota
	largestFirst
	oldestFirst
	allAtOnce
)

// limits are the values in force. Sizes are bytes.
type limits struct {
	maxCachedBytes    uint64
	maxCachedFraction float64
	maxPerTag         uint64 // 0: no such limit
	maxPerBucket      uint64 // 0: no such limit
	maxWasteRatio     float64
	minBlock          uint64
	maxAge            int64   // ns, 0: no such limit
	proportion        float64 // 0: no such limit
	outgrown          bool
	drainOrder        order
	rejectNew         bool
	stealOtherTag     bool
	mantissaBits      uint
	bucketSizes       []uint64
	maxPart           uint64 // M of seed 004; 0: derived from the program's requests
	heapBytes         uint64 // H; 0: the most that the program had in use
	slabsPerHeap      uint64 // K
	pageBytes         uint64
}

const (
	tib  = 1 << 40
	most = 1 << 50 // bytes, of any limit
)

// netcl are the buckets of seed 003's PersistentBufferPool: 1 KiB to 256 MiB by factors of 4.
const netcl = "1024:4096:16384:65536:262144:1048576:4194304:16777216:67108864:268435456"

// limitTable defines every limit once. Text is the default of policies without a default of their own.
var limitTable = [...]struct {
	Limit
	field func(*limits) any // *uint64, *float64, *int64 (seconds as ns), *uint, *bool, *order or *[]uint64
}{
	{
		Limit{Name: "max_cached_bytes", Kind: Bytes, Text: "4294967296", Max: most, Help: "most bytes cached in the pool"},
		func(l *limits) any { return &l.maxCachedBytes },
	},
	{
		Limit{Name: "max_cached_fraction", Kind: Number, Text: "1", Max: 1, Help: "the same as a share of the device's memory; the lower limit counts"},
		func(l *limits) any { return &l.maxCachedFraction },
	},
	{
		Limit{Name: "over_limit", Kind: Choice, Text: "evict-old", Choices: []string{"evict-old", "reject-new"}, Help: "which blocks go back to the driver when a freed block would exceed a limit: the oldest, or the new one; always the oldest if the new one lies in a slab in use"},
		func(l *limits) any { return &l.rejectNew },
	},
	{
		Limit{Name: "max_per_tag", Kind: Count, Text: "0", Max: 1e6, Zero: "no limit", Help: "most free blocks of one call site (and class); 0: no limit"},
		func(l *limits) any { return &l.maxPerTag },
	},
	{
		Limit{Name: "max_per_bucket", Kind: Count, Text: "0", Max: 1e6, Zero: "no limit", Help: "most free blocks of one size (and class); 0: no limit"},
		func(l *limits) any { return &l.maxPerBucket },
	},
	{
		Limit{Name: "max_waste_ratio", Kind: Number, Text: "2", Min: 1, Max: 1024, Help: "how many times larger than the request a block may be; for futhark: a block of another call site"},
		func(l *limits) any { return &l.maxWasteRatio },
	},
	{
		Limit{Name: "min_block", Kind: Bytes, Text: "4096", Min: 1, Max: 1 << 30, Help: "smallest block; for futhark: blocks of other call sites below it are never too wasteful"},
		func(l *limits) any { return &l.minBlock },
	},
	{
		Limit{Name: "steal_other_tag", Kind: Switch, Text: "on", Choices: []string{"off", "on"}, Help: "whether blocks of other call sites may serve"},
		func(l *limits) any { return &l.stealOtherTag },
	},
	{
		Limit{Name: "mantissa_bits", Kind: Count, Text: "4", Max: 8, Help: "bits after the leading one that distinguish sizes: more bits waste less and hit less"},
		func(l *limits) any { return &l.mantissaBits },
	},
	{
		Limit{Name: "bucket_sizes", Kind: Sizes, Text: netcl, Min: 1, Max: tib, Help: "sizes of blocks, ascending; powers of two above the last"},
		func(l *limits) any { return &l.bucketSizes },
	},
	{
		Limit{Name: "max_part", Kind: Bytes, Text: "0", Max: tib, Zero: "auto", Help: "largest request that a slab serves; 0: a quarter of the slab size that the program's requests suggest"},
		func(l *limits) any { return &l.maxPart },
	},
	{
		Limit{Name: "heap_bytes", Kind: Bytes, Text: "0", Max: most, Zero: "auto", Help: "memory to divide into slabs; 0: the most that the program had in use"},
		func(l *limits) any { return &l.heapBytes },
	},
	{
		Limit{Name: "slabs_per_heap", Kind: Count, Text: "62", Min: 1, Max: 1e6, Help: "number of slabs that heap_bytes is divided into; each is at least max_part"},
		func(l *limits) any { return &l.slabsPerHeap },
	},
	{
		Limit{Name: "page_bytes", Kind: Bytes, Text: "4096", Min: 256, Max: 1 << 20, Help: "smallest sub-allocation, a power of two; applies to contexts without slabs, and is larger if the device requires it"},
		func(l *limits) any { return &l.pageBytes },
	},
	{
		Limit{Name: "max_age", Kind: Seconds, Text: "0", Max: 1e6, Zero: "no limit", Help: "how long a block may stay cached; 0: forever"},
		func(l *limits) any { return &l.maxAge },
	},
	{
		Limit{Name: "proportion", Kind: Number, Text: "0", Max: 1024, Zero: "no limit", Help: "most memory to hold, as a multiple of the most in use in the last minute, and 32 MiB more; 0: no limit"},
		func(l *limits) any { return &l.proportion },
	},
	{
		Limit{Name: "outgrown", Kind: Switch, Text: "off", Choices: []string{"off", "on"}, Help: "whether a call site's blocks go when it asks for more than any of them has, unless their sizes came back before"},
		func(l *limits) any { return &l.outgrown },
	},
	{
		Limit{Name: "drain_order", Kind: Choice, Text: "oldest-first", Choices: []string{"slot", "largest-first", "oldest-first", "all"}, Help: "which blocks go first when the driver has no memory left or a limit is lowered"},
		func(l *limits) any { return &l.drainOrder },
	},
}

// ParseSettings reads "name=value,name=value"; an empty text has no settings. It checks neither names nor values.
func ParseSettings(text string) ([]Setting, error) {
	if text == "" {
		return nil, nil
	}
	var settings []Setting
	for field := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(field, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("bad limit %q: want NAME=VALUE", field)
		}
		settings = append(settings, Setting{name, value})
	}
	return settings, nil
}

// RecordedLimit returns the value of a limit in a recording whose limits have those values. Versions without the limit
// behaved as if it was off. ok is false if the recording does not show the value.
func RecordedLimit(values map[string]string, name string) (value string, ok bool) {
	if value, ok = values[name]; ok || len(values) == 0 {
		return value, ok
	}
	value, ok = map[string]string{"proportion": "0", "outgrown": "off"}[name]
	return value, ok
}

// limitIndex returns the index of a limit in the table. It is an error if the policy, whose limits are names, does not have
// the limit.
func limitIndex(policy string, names []string, name string) (int, error) {
	for i := range limitTable {
		switch {
		case limitTable[i].Name != name:
		case !slices.Contains(names, name):
			return 0, fmt.Errorf("policy %s has no limit %s: it has %s", policy, name, namesOrNone(names))
		default:
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown limit %q: policy %s has %s", name, policy, namesOrNone(names))
}

// setFromText sets the limit at an index of the table. The error says which values the limit takes.
func (l *limits) setFromText(i int, policy, text string) error {
	limit := &limitTable[i]
	ok := false
	switch field := limit.field(l).(type) {
	case *uint64:
		*field, ok = parseWholeNumber[uint64](text, &limit.Limit)
	case *uint:
		*field, ok = parseWholeNumber[uint](text, &limit.Limit)
	case *float64:
		*field, ok = parseNumber(text, &limit.Limit)
	case *int64:
		var seconds float64
		seconds, ok = parseNumber(text, &limit.Limit)
		*field = int64(math.Round(seconds * 1e9))
		if seconds > 0 {
			*field = max(*field, 1) // 0 means no limit
		}
	case *bool:
		var index int
		index, ok = parseChoice(text, limit.Choices)
		*field = index == 1
	case *order:
		var index int
		index, ok = parseChoice(text, limit.Choices)
		*field = order(index)
	case *[]uint64:
		*field, ok = parseSizes(text, &limit.Limit)
	}
	if !ok {
		return fmt.Errorf("limit %s: %s is out of range: policy %s wants %s", limit.Name, textForError(text), policy,
			limit.ValuesText())
	}
	return nil
}

// limitAt fills in a limit's present value.
func (l *limits) limitAt(i int) Limit {
	limit := limitTable[i].Limit
	switch field := limitTable[i].field(l).(type) {
	case *uint64:
		limit.Value = float64(*field)
	case *uint:
		limit.Value = float64(*field)
	case *float64:
		limit.Value = *field
	case *int64:
		limit.Value = float64(*field) / 1e9
	case *bool:
		if *field {
			limit.Value = 1
		}
	case *order:
		limit.Value = float64(*field)
	case *[]uint64:
		limit.Value = float64(len(*field))
		limit.Text = formatSizes(*field)
		return limit
	}
	limit.Text = formatDecimal(limit.Value)
	if limit.Choices != nil {
		limit.Text = limit.Choices[int(limit.Value)]
	}
	return limit
}

// checkLimitCombination returns an error if limits cannot hold together.
func (l *limits) checkLimitCombination(names []string) error {
	has := func(name string) bool { return slices.Contains(names, name) }
	page := l.pageBytes
	switch {
	case has("page_bytes") && page&(page-1) != 0:
		return fmt.Errorf("limit page_bytes: %d is no power of two: want 256, 512 ... 1048576", page)
	case has("page_bytes") && l.maxPart != 0 && l.maxPart < page:
		return fmt.Errorf("limit max_part: %d is less than page_bytes, %d: want 0 or at least that", l.maxPart, page)
	case has("max_part") && l.heapBytes != 0 && l.maxPart > l.heapBytes:
		return fmt.Errorf("limit max_part: %d is more than heap_bytes, %d: want at most that", l.maxPart, l.heapBytes)
	}
	return nil
}

// exceedsBound reports whether a count exceeds a bound, where 0 means that there is none.
func exceedsBound(count, most uint64) bool { return most != 0 && count > most }
