package csv

import (
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
)

// column is one column of a table.
type column[T any] struct {
	name  string
	value func(*T) string
}

func columnNames[T any](columns []column[T]) []string {
	list := make([]string, len(columns))
	for i := range columns {
		list[i] = columns[i].name
	}
	return list
}

func bufferColumns() []column[tables.Buffer] {
	type row = *tables.Buffer
	return []column[tables.Buffer]{
		{"created_s", func(r row) string { return formatSeconds(r.CreatedNS) }},
		{"released_s", func(r row) string { return formatIfKnown(r.ReleasedNS, formatSeconds) }},
		{"lifetime_s", func(r row) string { return formatIfKnown(r.Lifetime, formatSeconds) }},
		{"site", func(r row) string { return safeForSpreadsheets(r.Site) }},
		{"size", func(r row) string { return formatInt(r.Size) }},
		{"granted", func(r row) string { return formatInt(r.Granted) }},
		{"outcome", func(r row) string { return r.Outcome }},
		{"reason", func(r row) string { return r.Reason }},
		{"ending", func(r row) string { return r.Ending }},
		{"leaked", func(r row) string { return formatBool(r.Leaked) }},
		{"memory", func(r row) string { return r.Memory }},
		{"owns", func(r row) string { return formatBool(r.Owns) }},
		{"carried", func(r row) string { return formatBool(r.Carried) }},
		{"created_ns", func(r row) string { return formatInt(r.CreatedNS) }},
		{"released_ns", func(r row) string { return formatIfKnown(r.ReleasedNS, formatInt) }},
		{"lifetime_ns", func(r row) string { return formatIfKnown(r.Lifetime, formatInt) }},
		{"first_use_ns", func(r row) string { return formatIfKnown(r.FirstUse, formatInt) }},
		{"last_use_ns", func(r row) string { return formatIfKnown(r.LastUse, formatInt) }},
		{"idle_since_ns", func(r row) string { return formatIfKnown(r.IdleSince, formatInt) }},
		{"uses", func(r row) string { return formatInt(r.Uses) }},
		{"duration_ns", func(r row) string { return formatInt(r.Duration) }},
		{"cost_ns", func(r row) string { return formatInt(r.Cost) }},
		{"release_cost_ns", func(r row) string { return formatInt(r.ReleaseCost) }},
		{"object", func(r row) string { return formatInt(r.Object) }},
		{"block", func(r row) string { return formatInt(r.Block) }},
		{"parent", func(r row) string { return formatInt(r.Parent) }},
		{"thread", func(r row) string { return formatInt(r.Thread) }},
		{"context", func(r row) string { return formatInt(int64(r.Context)) }},
		{"access", func(r row) string { return formatInt(int64(r.Access)) }},
		{"flags", func(r row) string { return r.Flags }},
		{"tag", func(r row) string { return formatInt(r.Tag) }},
		{"stack", func(r row) string { return safeForSpreadsheets(strings.Join(r.Stack, "; ")) }},
	}
}

func eventColumns() []column[tables.Event] {
	type row = *tables.Event
	return []column[tables.Event]{
		{"time_s", func(r row) string { return formatSeconds(r.TimeNS) }},
		{"time_ns", func(r row) string { return formatInt(r.TimeNS) }},
		{"kind", func(r row) string { return r.Kind }},
		{"op", func(r row) string { return r.Op }},
		{"outcome", func(r row) string { return r.Outcome }},
		{"reason", func(r row) string { return r.Reason }},
		{"site", func(r row) string { return safeForSpreadsheets(r.Site) }},
		{"size", func(r row) string { return formatInt(r.Size) }},
		{"granted", func(r row) string { return formatInt(r.Granted) }},
		{"offset", func(r row) string { return formatIfKnown(r.Offset, formatInt) }},
		{"argument", func(r row) string { return formatIfKnown(r.Argument, formatInt) }},
		{"scattered", func(r row) string { return formatBool(r.Scattered) }},
		{"object", func(r row) string { return formatInt(r.Object) }},
		{"link", func(r row) string { return formatInt(r.Link) }},
		{"duration_ns", func(r row) string { return formatInt(r.Duration) }},
		{"cost_ns", func(r row) string { return formatInt(r.Cost) }},
		{"flags", func(r row) string { return r.Flags }},
		{"carried", func(r row) string { return formatBool(r.Carried) }},
		{"thread", func(r row) string { return formatInt(r.Thread) }},
		{"context", func(r row) string { return formatInt(int64(r.Context)) }},
		{"access", func(r row) string { return formatInt(int64(r.Access)) }},
		{"status", func(r row) string { return formatInt(int64(r.Status)) }},
		{"tag", func(r row) string { return formatInt(r.Tag) }},
		{"text", func(r row) string { return safeForSpreadsheets(r.Text) }},
	}
}

func sampleColumns() []column[tables.Sample] {
	type row = *tables.Sample
	return []column[tables.Sample]{
		{"time_s", func(r row) string { return formatSeconds(r.TimeNS) }},
		{"time_ns", func(r row) string { return formatInt(r.TimeNS) }},
		{"step_ns", func(r row) string { return formatInt(r.Step) }},
		{"in_use", func(r row) string { return formatInt(r.InUse) }},
		{"requested", func(r row) string { return formatInt(r.Requested) }},
		{"peak_in_use", func(r row) string { return formatInt(r.PeakInUse) }},
		{"cached", func(r row) string { return formatInt(r.Cached) }},
		{"cooling", func(r row) string { return formatInt(r.Cooling) }},
		{"slab_free", func(r row) string { return formatInt(r.SlabFree) }},
		{"hits", func(r row) string { return formatInt(r.Hits) }},
		{"misses", func(r row) string { return formatInt(r.Misses) }},
	}
}
