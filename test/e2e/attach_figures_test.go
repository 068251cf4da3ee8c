package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// reportFigures are what a report says of a recording, without measurements: times, conclusions from them (temporaries),
// costs and process ids.
type reportFigures struct {
	Creates      uint64        `json:"driver_creates"`
	Releases     uint64        `json:"driver_releases"`
	Misses       uint64        `json:"misses"`
	Requested    uint64        `json:"bytes_requested"`
	Allocated    uint64        `json:"bytes_allocated"`
	InUse        uint64        `json:"in_use"`
	Peak         uint64        `json:"peak_in_use"`
	PeakReserved uint64        `json:"peak_reserved"`
	Lost         uint64        `json:"lost_events"`
	Exit         endFigures    `json:"exit"`
	Processes    []oneFigures  `json:"processes"`
	Tags         []tagFigures  `json:"per_tag"`
	Classes      []partFigures `json:"per_class"`
	Sizes        []partFigures `json:"per_bucket"`
	Findings     []finding     `json:"findings"`
	Leaks        []finding     `json:"leaks"`
	AtPeak       peakFigures   `json:"peak"`
}

type endFigures struct{ Status, Signal int }

type oneFigures struct {
	Arguments []string
	Creates   uint64
	Requested uint64 `json:"bytes_requested"`
	Peak      uint64 `json:"peak_in_use"`
	InUse     uint64 `json:"in_use"`
	Live      uint64 `json:"live_buffers"`
	Exit      endFigures
}

type tagFigures struct {
	Tag     string
	Stack   []string
	Creates uint64
	Misses  uint64
	Peak    uint64 `json:"peak_in_use"`
	InUse   uint64 `json:"in_use"`
	Live    uint64 `json:"live_buffers"`
}

type partFigures struct {
	Class            string
	Smallest         uint64
	Creates, Misses  uint64
	InUse            uint64 `json:"in_use"`
	Requested, Bytes uint64
	Buffers          uint64
	Tag              string
	Stack            []string
}

type finding struct {
	Kind, Function, Tag, Kernel string
	Count, Size                 uint64
	Buffers, Bytes, Creates     uint64
	Certain                     bool
}

type peakFigures struct {
	Buffers uint64
	InUse   uint64        `json:"in_use"`
	Tags    []partFigures `json:"per_tag"`
}

// figuresIn reads the report of a recording.
func figuresIn(t *testing.T, file string, racy bool) reportFigures {
	t.Helper()
	return figuresFrom(t, jsonReport(t, file), racy)
}

// figuresFrom reads a report. Lists are brought into an order of their own: equal ones are numbered as they came, which threads
// make chance. Where threads race so is how much was there at once.
func figuresFrom(t *testing.T, report []byte, racy bool) (f reportFigures) {
	t.Helper()
	if err := json.Unmarshal(report, &f); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(f.Tags, func(a, b tagFigures) int {
		return strings.Compare(a.Tag+strings.Join(a.Stack, ""), b.Tag+strings.Join(b.Stack, ""))
	})
	slices.SortFunc(f.Classes, func(a, b partFigures) int { return strings.Compare(a.Class, b.Class) })
	slices.SortFunc(f.AtPeak.Tags, func(a, b partFigures) int {
		return strings.Compare(a.Tag+strings.Join(a.Stack, ""), b.Tag+strings.Join(b.Stack, ""))
	})
	if racy {
		f.AtPeak, f.Peak, f.PeakReserved = peakFigures{}, 0, 0
		for i := range f.Tags {
			f.Tags[i].Peak, f.Tags[i].Stack = 0, nil // of several stacks that show the same name, the first
		}
		for i := range f.Processes {
			f.Processes[i].Peak = 0
		}
	}
	return f
}
