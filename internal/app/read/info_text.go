package read

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// shownMax bounds each of the lists of processes, devices and modules in the text.
const shownMax = 20

// infoText returns the facts for people.
func (f *infoFacts) infoText() string {
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "%-10s%s\n", name, units.Clean(text)) }
	h := &f.Header
	row("command", f.commandLine())
	row("id", f.ID)
	row("recorded", h.Created.Format(time.RFC3339)+onHostText(h.Host))
	policy := h.Policy
	if h.Auto {
		policy = "auto: " + policy
	}
	row("policy", strings.TrimSpace(policy+" "+limitsText(h.Limits)))
	row("tags", h.Tags)
	if h.Scrub != "" {
		row("scrub", h.Scrub)
	}
	if h.DeviceMemory > 0 {
		row("memory", units.FormatLong(h.DeviceMemory)+" of device memory for each process")
	}
	row("format", fmt.Sprintf("version %d", h.Version))
	row("size", units.FormatLong(uint64(f.Bytes)))
	row("events", fmt.Sprintf("%d, %d lost", f.Events, f.Lost))
	if f.Events > 0 {
		row("blocks", fmt.Sprintf("%d, %.1f bytes per event", f.Blocks, float64(f.Bytes)/float64(f.Events)))
	}
	row("duration", time.Duration(f.Seconds*1e9).Round(time.Millisecond).String())
	row("ended", f.endingText())
	if f.Torn != nil {
		row("", "gpumemtop trim "+f.File+" -o NEW writes an intact one")
	}
	if f.Ended != nil && f.Ended.Message != "" {
		row("message", f.Ended.Message)
	}
	f.writeLists(&b)
	return b.String()
}

// writeLists writes the lists of facts.
func (f *infoFacts) writeLists(b *strings.Builder) {
	origins := make([]string, len(f.Header.Merged))
	for i := range origins {
		o := &f.Header.Merged[i]
		origins[i] = fmt.Sprintf("%s%s, processes %d to %d", strings.Join(append([]string{o.Program}, o.Arguments...), " "), onHostText(o.Host), o.First, o.Last)
	}
	writeInfoList(b, "merged", origins)
	processes := make([]string, len(f.Processes))
	for i := range processes {
		p := &f.Processes[i]
		processes[i] = fmt.Sprintf("#%d pid %d%s: %s", p.Number, p.PID, onHostText(p.Host), strings.Join(append([]string{p.Program}, p.Arguments...), " "))
	}
	writeInfoList(b, "process", processes)
	devices := make([]string, len(f.Devices))
	for i := range devices {
		d := &f.Devices[i]
		devices[i] = d.Name + onHostText(d.Host) + ", " + units.FormatLong(d.Memory) + ", driver " + d.Driver
	}
	writeInfoList(b, "device", devices)
	modules := make([]string, len(f.Modules))
	for i, m := range f.Modules {
		modules[i] = m.Path
		if m.BuildID != "" {
			modules[i] += " " + m.BuildID
		}
	}
	writeInfoList(b, "module", modules)
	var variables []string
	for _, name := range slices.Sorted(maps.Keys(f.Header.Environment)) {
		variables = append(variables, name+"="+f.Header.Environment[name])
	}
	writeInfoList(b, "variable", variables)
	writeInfoList(b, "run", identityTexts(&f.Header.Identity))
}

// writeInfoList writes the first texts, one in each row.
func writeInfoList(b *strings.Builder, name string, texts []string) {
	for i, text := range texts {
		if i == shownMax {
			fmt.Fprintf(b, "%-10s… and %d more\n", "", len(texts)-shownMax)
			return
		}
		fmt.Fprintf(b, "%-10s%s\n", name, units.Clean(text))
	}
}

// identityTexts are what is known of a run's identity.
func identityTexts(id *recording.Identity) (texts []string) {
	for _, x := range [][2]string{{"user", id.User}, {"job", id.Job}, {"step", id.Step}, {"rank", id.Rank}, {"revision", id.Revision}} {
		if x[1] != "" {
			texts = append(texts, x[0]+" "+x[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(id.Labels)) {
		texts = append(texts, "label "+name+"="+id.Labels[name])
	}
	return texts
}

func onHostText(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}

func limitsText(limits recording.Limits) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		texts = append(texts, name+"="+limits[name])
	}
	return strings.Join(texts, " ")
}
