package files

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
)

// Part selects a part of a recording. The zero Part is all of it.
type Part struct {
	Since, Until time.Duration // after the start; Until 0: to the end
	Process      string        // "#2", "4711" or a program's name; empty: all
}

// Input is a part of a recording as a command reads it.
type Input struct {
	Source  recording.Source // of the part
	Path    string
	Reader  *recording.Reader
	Part    Part
	Extract extract.Options // the part in the recording's terms
}

// ReadRecordingPart opens a recording and lets read read the part. Damage is a warning, not an error.
func ReadRecordingPart(path string, part Part, read func(*Input) error) error {
	if err := part.checkTimesAndProcess(); err != nil {
		return err
	}
	return ReadRecording(path, func(t *Tracked) error {
		options, err := part.extractOptions(t.Reader)
		if err != nil {
			return err
		}
		return read(&Input{Source: extract.CutRange(t, options), Path: path, Reader: t.Reader, Part: part, Extract: options})
	})
}

func (p *Part) checkTimesAndProcess() error {
	for name, value := range map[string]time.Duration{"since": p.Since, "until": p.Until} {
		if value < 0 {
			return fmt.Errorf("bad value %v for --%s: want a time after the start", value, name)
		}
	}
	if p.Until > 0 && p.Until < p.Since {
		return fmt.Errorf("--until %v is before --since %v: nothing lies between", p.Until, p.Since)
	}
	return nil
}

func (p *Part) extractOptions(reader *recording.Reader) (extract.Options, error) {
	var options extract.Options
	start := reader.Header().ClockNS
	if p.Since > 0 {
		options.Since = start + uint64(p.Since)
	}
	if p.Until > 0 {
		options.Until = start + uint64(p.Until)
	}
	if footer, whole := reader.Footer(); whole && options.Since > footer.EndedNS {
		lasts := time.Duration(footer.EndedNS - start).Round(time.Millisecond)
		return options, fmt.Errorf("--since %v is after the end: the recording lasts %v", p.Since, lasts)
	}
	if p.Process == "" {
		return options, nil
	}
	names, err := callsite.ReadNames(reader)
	if err == nil {
		options.Process, err = processMatcher(names.NamedProcesses(), p.Process)
	}
	return options, err
}

// String describes the part; empty: all.
func (p *Part) String() string {
	var texts []string
	if p.Since > 0 {
		texts = append(texts, "from "+p.Since.String())
	}
	if p.Until > 0 {
		texts = append(texts, "to "+p.Until.String())
	}
	if p.Process != "" {
		texts = append(texts, "of process "+p.Process)
	}
	return strings.Join(texts, " ")
}

// processMatcher finds one process by number, "#2", or process id, "4711", or all processes of a program by its name.
func processMatcher(processes []*callsite.ProcessNames, want string) (func(uint32) bool, error) {
	matches := func(p *callsite.ProcessNames) bool { return path.Base(p.Program) == want && p.Program != "" }
	number, isNumber := strings.CutPrefix(want, "#")
	pid, err := strconv.Atoi(want)
	switch {
	case isNumber:
		matches = func(p *callsite.ProcessNames) bool { return strconv.FormatUint(uint64(p.Number), 10) == number }
	case err == nil:
		matches = func(p *callsite.ProcessNames) bool { return p.PID == pid && pid != 0 }
	}
	found := map[uint32]bool{}
	var list []*callsite.ProcessNames
	for _, p := range processes {
		if matches(p) {
			found[p.Number] = true
			list = append(list, p)
		}
	}
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("no process %s in the recording: %s", want, processListText(processes))
	case len(list) > 1 && !isNumber && err == nil:
		return nil, fmt.Errorf("%d processes had the id %s: choose one by number: %s", len(list), want, processListText(list))
	}
	return func(number uint32) bool { return found[number] }, nil
}

// processesShown bounds the processes that an error lists.
const processesShown = 8

// processListText lists the first processes.
func processListText(processes []*callsite.ProcessNames) string {
	if len(processes) == 0 {
		return "it names no processes"
	}
	var texts []string
	for _, p := range processes[:min(len(processes), processesShown)] {
		text := fmt.Sprintf("#%d", p.Number)
		if p.Program != "" {
			text += " " + path.Base(p.Program)
		}
		if p.PID != 0 {
			text += fmt.Sprintf(" (pid %d)", p.PID)
		}
		texts = append(texts, text)
	}
	list := strings.Join(texts, ", ")
	if more := len(processes) - len(texts); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}
