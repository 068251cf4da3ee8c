package read

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// WriteInfo writes what was recorded, where, and how it ended.
func WriteInfo(w io.Writer, path, format string) error {
	if err := CheckFormat(format, TextFormats); err != nil {
		return err
	}
	reader, err := recording.Open(path)
	if err != nil {
		return err
	}
	facts, err := newInfoFacts(path, reader)
	switch {
	case err != nil:
	case format == "json":
		err = console.WriteJSON(w, facts)
	default:
		err = console.WriteText(w, facts.infoText())
	}
	return errors.Join(err, reader.Close())
}

// listMax bounds each of the lists of processes, devices and modules.
const listMax = 4096

// infoFacts is what info shows. Scripts rely on its JSON keys. Sizes are bytes.
type infoFacts struct {
	File    string           `json:"file"`
	ID      string           `json:"id"` // as in tables and lakes; a merged recording has the id of its first part
	Header  recording.Header `json:"header"`
	Bytes   int64            `json:"bytes"`
	Blocks  uint64           `json:"blocks"`
	Events  uint64           `json:"events"`
	Lost    uint64           `json:"lost"` // events, as far as known
	Seconds float64          `json:"seconds"`
	// Ended is how the program ended; null when the recording was cut off. Torn then says what is missing.
	Ended     *infoEnd      `json:"ended"`
	Torn      *infoTorn     `json:"torn,omitempty"`
	Processes []infoProcess `json:"processes"` // that called OpenCL
	Devices   []infoDevice  `json:"devices"`
	Modules   []infoModule  `json:"modules"`
	// More counts processes, devices and modules beyond the first 4096 of each.
	More int `json:"more,omitempty"`
}

type infoEnd struct {
	Status  int    `json:"status"` // -1 when unknown or ended by a signal
	Signal  int    `json:"signal"` // 0: none
	Message string `json:"message,omitempty"`
	Cut     bool   `json:"cut,omitempty"` // the program went on
}

type infoTorn struct {
	Bytes   int64   `json:"bytes"`   // at the end, unreadable
	Seconds float64 `json:"seconds"` // from the start to the last readable event
}

type infoProcess struct {
	Number    uint32   `json:"number"`
	PID       int      `json:"pid"`
	Parent    int      `json:"parent"`
	Program   string   `json:"program"`
	Arguments []string `json:"arguments"`
	Host      string   `json:"host"`
}

type infoDevice struct {
	Host   string `json:"host"`
	Name   string `json:"name"`
	Driver string `json:"driver"`
	Memory uint64 `json:"memory"`
}

type infoModule struct {
	Path    string `json:"path"`
	BuildID string `json:"build_id,omitempty"`
}

func newInfoFacts(file string, reader *recording.Reader) (*infoFacts, error) {
	f := &infoFacts{
		File: file, Header: reader.Header(), Bytes: reader.Size(),
		Processes: []infoProcess{}, Devices: []infoDevice{}, Modules: []infoModule{},
	}
	f.ID, _ = f.Header.RecordingIDOf(1)
	blocks, err := reader.Blocks()
	if err != nil {
		return nil, err
	}
	for i := range blocks {
		f.Blocks += blocks[i].Frames
		f.Events += blocks[i].Events
		f.Lost += blocks[i].Summary.Lost
	}
	if err := f.readEnding(reader); err != nil {
		return nil, err
	}
	return f, f.readDefinitions(reader)
}

// readEnding reads how the recording ended.
func (f *infoFacts) readEnding(reader *recording.Reader) error {
	if footer, whole := reader.Footer(); whole {
		f.Events, f.Lost = footer.Events, footer.Lost
		f.Seconds = f.secondsAfterStart(footer.EndedNS)
		f.Ended = &infoEnd{footer.Status, footer.Signal, footer.Message, footer.Cut}
		return nil
	}
	torn, _, err := reader.LostAtEnd()
	f.Seconds = f.secondsAfterStart(torn.LastNS)
	f.Torn = &infoTorn{torn.Bytes, f.Seconds}
	return err
}

// secondsAfterStart returns the seconds from the start to a time, 0 if that is earlier.
func (f *infoFacts) secondsAfterStart(ns uint64) float64 {
	return time.Duration(ns - min(ns, f.Header.ClockNS)).Seconds()
}

// readDefinitions reads processes, devices and modules from the definitions, each device and module once.
func (f *infoFacts) readDefinitions(reader *recording.Reader) error {
	names := callsite.NewNames()
	var numbers []uint32
	devices, modules := map[infoDevice]bool{}, map[string]int{}
	err := reader.EachDefinition(func(r *wire.Record) error {
		switch r.Kind {
		case wire.KindProcess:
			if takeRoomOrCountMore(&f.More, len(numbers)) && !slices.Contains(numbers, r.Process) {
				numbers = append(numbers, r.Process)
				names.AddRecord(r)
			}
		case wire.KindDevice:
			name, driver, _ := wire.ParseDevice(r.Payload)
			d := infoDevice{f.Header.HostOf(r.Process), units.Clean(name), units.Clean(driver), r.AsDevice().Memory()}
			if !devices[d] && takeRoomOrCountMore(&f.More, len(f.Devices)) {
				devices[d] = true
				f.Devices = append(f.Devices, d)
			}
		case wire.KindModule:
			f.addModule(r, modules)
		default:
		}
		return nil
	})
	for _, number := range numbers {
		p := names.Process(number)
		f.Processes = append(f.Processes, infoProcess{number, p.PID, p.Parent, p.Program, slices.Concat([]string{}, p.Arguments), f.Header.HostOf(number)})
	}
	return err
}

// addModule adds the module of a MODULE record. A module's second record has its build id. at holds the indices of modules by
// path, and by path and build id.
func (f *infoFacts) addModule(r *wire.Record, at map[string]int) {
	name, id := wire.ParseModule(r.Payload)
	m := infoModule{units.Clean(name), units.Clean(id)}
	i, known := at[m.Path]
	if _, same := at[m.Path+"\x00"+m.BuildID]; same {
		return
	}
	switch {
	case !known && takeRoomOrCountMore(&f.More, len(f.Modules)), known && m.BuildID != "" && f.Modules[i].BuildID != "":
		// A new module, or another file of the same name.
		i = len(f.Modules)
		f.Modules = append(f.Modules, m)
	case !known, m.BuildID == "":
		return
	default:
		f.Modules[i].BuildID = m.BuildID
	}
	at[m.Path], at[m.Path+"\x00"+m.BuildID] = i, i
}

// takeRoomOrCountMore reports whether a list has room for one more, and counts it if not.
func takeRoomOrCountMore(more *int, length int) bool {
	if length < listMax {
		return true
	}
	*more++
	return false
}

// commandLine returns the program's command line, or the first process's if the recording names no program.
func (f *infoFacts) commandLine() string {
	words := append([]string{f.Header.Program}, f.Header.Arguments...)
	if f.Header.Program == "" && len(f.Processes) > 0 {
		words = append([]string{f.Processes[0].Program}, f.Processes[0].Arguments...)
	}
	text := strings.Join(words, " ")
	if f.Header.Attached {
		text = "attached to " + text
	}
	return text
}

// endingText describes how the recording ended.
func (f *infoFacts) endingText() string {
	switch {
	case f.Ended != nil && f.Ended.Cut && f.Header.Attached:
		return "detached: the watched programs went on"
	case f.Ended != nil && f.Ended.Status < 0 && f.Ended.Signal == 0:
		return "in order; the exit status is unknown"
	case f.Ended != nil:
		return session.Status{Code: f.Ended.Status, Signal: f.Ended.Signal}.String()
	}
	text := "cut off: the program or gpumemtop was killed, or it is still being written"
	if f.Torn.Bytes > 0 {
		text += fmt.Sprintf("; the last %d bytes, after %.3f s, cannot be read", f.Torn.Bytes, f.Torn.Seconds)
	}
	return text + "; everything before that is intact"
}
