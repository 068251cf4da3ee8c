package convert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
	"codeberg.org/gpumemtop/gpumemtop/internal/flight"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// outliersMost bounds the outliers of a call site that are listed.
const outliersMost = 16

// ReduceOptions are the flags of reduce.
type ReduceOptions struct {
	Output files.Output // Parquet; none without a path
	JSON   bool         // instead of text
	Top    int          // call sites of each program and job in the text; 0: all
}

// reduced is what reduce writes as JSON. Scripts rely on its keys. Sizes are bytes.
type reduced struct {
	Processes int               `json:"processes"`
	Hosts     int               `json:"hosts"`
	Failed    int               `json:"failed"` // processes that ended with a status other than 0, or by a signal
	Failures  map[string]uint64 `json:"create_failures"`
	Findings  map[string]uint64 `json:"findings"`
	Sites     []reducedSite     `json:"sites"`
	Skipped   []flight.Bad      `json:"skipped"`
}

// reducedSite is a call site, and a row in Parquet.
type reducedSite struct {
	Program   string    `json:"program" parquet:"program,dict"`
	Job       string    `json:"job" parquet:"job,dict"`
	Site      string    `json:"site" parquet:"site,dict"`
	Stack     []string  `json:"stack" parquet:"stack,list"`
	Whole     bool      `json:"whole" parquet:"whole"` // the process, not a call site
	Processes int64     `json:"processes" parquet:"processes"`
	Peak      span      `json:"peak" parquet:"peak"`
	InUse     span      `json:"in_use" parquet:"in_use"` // at the end
	Bytes     span      `json:"bytes" parquet:"bytes"`   // of all creates
	Creates   span      `json:"creates" parquet:"creates"`
	Failed    span      `json:"failed" parquet:"failed"`
	Outliers  []outlier `json:"outliers" parquet:"outliers,list"`
}

type span struct {
	Min    int64 `json:"min" parquet:"min"`
	Median int64 `json:"median" parquet:"median"`
	Max    int64 `json:"max" parquet:"max"`
}

type outlier struct {
	Host string `json:"host" parquet:"host,dict"`
	PID  int64  `json:"pid" parquet:"pid"`
	Rank string `json:"rank" parquet:"rank"`
	Peak int64  `json:"peak" parquet:"peak"`
}

// ReduceFlightLogs shows what the processes of flight logs have in common and who differs, and writes it as Parquet.
func ReduceFlightLogs(w io.Writer, dirs []string, o *ReduceOptions) error {
	log, err := flight.ReadFolders(dirs...)
	if err != nil {
		return err
	}
	if len(log.Processes) == 0 && len(log.Bad) == 0 {
		return fmt.Errorf("%s has no records (*%s): programs leave them there with %s=%s and the library preloaded, see gpumemtop library --help",
			strings.Join(dirs, ", "), wire.FlightSuffix, wire.LogEnv, dirs[0])
	}
	if log.Unnamed > 0 {
		console.SayLine("the names of %s were left out: there is no room for more", units.Count(uint64(log.Unnamed), "call site"))
	}
	r := reduceFlightLog(log)
	if o.Output.Path != "" {
		if err := o.Output.Write(w, func(w io.Writer) error { return parquet.WriteRows(w, r.Sites) }); err != nil {
			return err
		}
		if o.Output.Path == "-" {
			return r.incompleteError()
		}
	}
	if o.JSON {
		err = console.WriteJSON(w, r)
	} else {
		err = console.WriteText(w, r.reducedText(o.Top, console.WidthWithin(w, 0)))
	}
	return cmp.Or(err, r.incompleteError())
}

// incompleteError gives status 1 where records were skipped.
func (r *reduced) incompleteError() error {
	if len(r.Skipped) == 0 {
		return nil
	}
	return console.NewSilentExit(1)
}

func reduceFlightLog(log *flight.Log) *reduced {
	r := &reduced{Processes: len(log.Processes), Failures: map[string]uint64{}, Findings: map[string]uint64{}, Sites: []reducedSite{}, Skipped: []flight.Bad{}}
	hosts := map[string]bool{}
	for i := range log.Processes {
		p := &log.Processes[i]
		hosts[p.Host] = true
		if p.Status != 0 {
			r.Failed++
		}
		for status, n := range p.Failures {
			r.Failures[status] += n
		}
		for kind, n := range p.Findings {
			r.Findings[kind] += n
		}
	}
	r.Hosts = len(hosts)
	r.Skipped = append(r.Skipped, log.Bad...)
	for i := range log.Sites {
		r.Sites = append(r.Sites, newReducedSite(log, &log.Sites[i]))
	}
	return r
}

func newReducedSite(log *flight.Log, s *flight.Site) reducedSite {
	of := func(figure func(*wire.FlightCounts) uint64) span {
		x := s.SpreadOfFigure(figure)
		return span{int64(x.Min), int64(x.Median), int64(x.Max)}
	}
	site := reducedSite{
		Program: s.Program, Job: s.Job, Site: s.Name, Stack: append([]string{}, s.Stack...), Whole: s.All, Processes: int64(len(s.Ranks)),
		Peak: of(flight.Peak), InUse: of(flight.InUse), Bytes: of(flight.Bytes), Creates: of(flight.Creates), Failed: of(flight.Failed),
		Outliers: []outlier{},
	}
	far := s.ProcessesFarFromMedian()
	for _, rank := range far[:min(len(far), outliersMost)] {
		p := &log.Processes[rank.Process]
		site.Outliers = append(site.Outliers, outlier{p.Host, int64(p.PID), p.Rank, int64(rank.Counts.Peak)})
	}
	return site
}

func (r *reduced) reducedText(top, width int) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s on %s", units.Plural(uint64(r.Processes), "process", "processes"), units.Count(uint64(r.Hosts), "host"))
	if r.Failed > 0 {
		fmt.Fprintf(&b, "; %d failed", r.Failed)
	}
	b.WriteByte('\n')
	writeCounts(&b, "creates that failed, by status", r.Failures)
	writeCounts(&b, "findings", r.Findings)
	var program, job string
	var table units.Table
	shown := 0
	flush := func() {
		b.WriteString(table.String())
		table = units.Table{Width: width, Least: []string{"PROCESSES", "MIN"}} // OUTLIERS has at least 8 columns, which these leave
	}
	for i := range r.Sites {
		s := &r.Sites[i]
		if s.Whole {
			flush()
			program, job, shown = s.Program, s.Job, 0
			fmt.Fprintf(&b, "\n%s%s: peaks\n", program, cmp.Or(prefixUnlessEmpty(", job ", job), ""))
			table.Add("MIN", "MEDIAN", "MAX", "PROCESSES", "CALL SITE", "OUTLIERS")
		} else if shown++; top > 0 && shown > top {
			continue
		}
		table.Add(units.Format(uint64(s.Peak.Min)), units.Format(uint64(s.Peak.Median)), units.Format(uint64(s.Peak.Max)),
			fmt.Sprint(s.Processes), units.CutName(s.Site, min(60, cmp.Or(width, 100)-40)), outliersText(s.Outliers))
	}
	flush()
	for _, bad := range r.Skipped {
		fmt.Fprintf(&b, "skipped %s: %s\n", units.Clean(bad.File), bad.Reason)
	}
	b.WriteString("\nnext: gpumemtop record shows each call of what stands out\n")
	return b.String()
}

func prefixUnlessEmpty(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func writeCounts(b *bytes.Buffer, label string, counts map[string]uint64) {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, counts[name]))
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "%s: %s\n", label, strings.Join(parts, ", "))
	}
}

func outliersText(list []outlier) string {
	const most = 3
	var parts []string
	for _, o := range list[:min(len(list), most)] {
		name := fmt.Sprintf("%s %d", o.Host, o.PID)
		if o.Rank != "" {
			name = "rank " + o.Rank
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", name, units.Format(uint64(o.Peak))))
	}
	if len(list) > most {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

// WriteLibrary writes the library that goes into programs into a file, for LD_PRELOAD and OPENCL_LAYERS.
func WriteLibrary(output files.Output) error {
	if err := output.RequireOtherFile(); err != nil {
		return err
	}
	shim, err := payload.OpenShim()
	if err != nil {
		return err
	}
	return output.Write(nil, func(w io.Writer) error {
		if w == nil {
			return errors.New("a library is no text: name a file with -o")
		}
		_, err := io.Copy(w, shim)
		return err
	})
}
