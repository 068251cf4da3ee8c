package duckdb

import (
	"cmp"
	"slices"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	step   = 5_000_000 // ns of a sample in runs of 1 to 5 s
	second = 1_000_000_000
)

// gauge is what a process holds at the end of a step, and the most within it.
type gauge struct{ inUse, peak int64 }

// steps returns the steps of a process from its first record to its last.
func steps(records []wire.Record, process uint32) (first int64, list []gauge) {
	granted := map[uint64]int64{}
	var now gauge
	for i := range records {
		e := &records[i]
		if e.Process != process {
			continue
		}
		at := int64(e.Time-randomrun.Start) / step
		if list == nil {
			first, list = at, []gauge{{}}
		}
		for int64(len(list)) <= at-first {
			list = append(list, gauge{now.inUse, now.inUse})
		}
		switch {
		case e.Kind == wire.KindCreate && e.Outcome != wire.OutcomeFailed && e.Op != uint8(wire.MemorySubBuffer):
			granted[e.Object] = int64(e.Granted)
			now.inUse += int64(e.Granted)
		case e.Kind == wire.KindRelease:
			now.inUse -= granted[e.Object]
		}
		last := &list[len(list)-1]
		last.inUse, last.peak = now.inUse, max(last.peak, now.inUse)
	}
	return first, list
}

// bySecond adds up, for each second and host, what the processes held at the end of the last step that ended in it.
func bySecond(runs []run) []string {
	type row struct {
		host          string
		second        int64
		inUse, atMost int64
	}
	var rows []*row
	find := func(host string, second int64) *row {
		for _, r := range rows {
			if r.host == host && r.second == second {
				return r
			}
		}
		rows = append(rows, &row{host: host, second: second})
		return rows[len(rows)-1]
	}
	for _, r := range runs {
		for i := range r.snapshot.Processes {
			first, list := steps(r.records, r.snapshot.Processes[i].Number)
			seconds := map[int64]gauge{}
			for i, g := range list {
				at := (first + int64(i) + 1) * step / second
				seconds[at] = gauge{g.inUse, max(seconds[at].peak, g.peak)}
			}
			for at, g := range seconds {
				row := find(r.host, at)
				row.inUse, row.atMost = row.inUse+g.inUse, row.atMost+g.peak
			}
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Or(cmp.Compare(a.second, b.second), cmp.Compare(a.host, b.host)) })
	var lines []string
	for _, r := range rows {
		lines = append(lines, line(r.host, created.Add(time.Duration(r.second)*time.Second), r.inUse, r.atMost))
	}
	return lines
}
