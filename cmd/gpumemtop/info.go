package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func newInfo() *cobra.Command {
	return command(onInfo, &cobra.Command{
		Use:   "info [flags] FILE",
		Short: "Show what a recording is of",
		Long: "Shows what was recorded, where, and how it ended: from the header, the footer and the definitions, without\n" +
			"reading the events, so it is quick whatever the recording's size.",
		Annotations: map[string]string{usageKey: "gpumemtop info [--format text|json] FILE"},
		Args:        oneFile,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		if err := checkFormat(c.infoFormat, textFormats); err != nil {
			return err
		}
		reader, err := trace.Open(args[0])
		if err != nil {
			return err
		}
		facts, err := newInfoFacts(args[0], reader)
		switch {
		case err != nil:
		case c.infoFormat == "json":
			encoder := json.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent("", "  ")
			err = encoder.Encode(facts)
		default:
			_, err = io.WriteString(cmd.OutOrStdout(), facts.text())
		}
		return errors.Join(err, reader.Close())
	})
}

// listMax bounds the processes, devices and modules that info keeps of each.
const listMax = 4096

// infoFacts is what info tells; its JSON keys are what scripts rely on. Sizes are bytes.
type infoFacts struct {
	File    string       `json:"file"`
	Header  trace.Header `json:"header"`
	Bytes   int64        `json:"bytes"`
	Blocks  uint64       `json:"blocks"`
	Events  uint64       `json:"events"`
	Lost    uint64       `json:"lost"` // events, where that is known
	Seconds float64      `json:"seconds"`
	// Ended is how the program did, null when the recording was cut off; then Torn says what is missing.
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
	Signal  int    `json:"signal"` // 0 when it was none
	Message string `json:"message,omitempty"`
	Cut     bool   `json:"cut,omitempty"` // the run went on
}

type infoTorn struct {
	Bytes   int64   `json:"bytes"`   // at the end that cannot be read
	Seconds float64 `json:"seconds"` // after the start, of the last event before
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

func newInfoFacts(file string, reader *trace.Reader) (*infoFacts, error) {
	f := &infoFacts{
		File: file, Header: reader.Header(), Bytes: reader.Size(),
		Processes: []infoProcess{}, Devices: []infoDevice{}, Modules: []infoModule{},
	}
	blocks, err := reader.Blocks()
	if err != nil {
		return nil, err
	}
	for i := range blocks {
		f.Blocks += blocks[i].Frames
		f.Events += blocks[i].Events
		f.Lost += blocks[i].Summary.Lost
	}
	if err := f.end(reader); err != nil {
		return nil, err
	}
	return f, f.define(reader)
}

// end says how it ended.
func (f *infoFacts) end(reader *trace.Reader) error {
	if footer, whole := reader.Footer(); whole {
		f.Events, f.Lost = footer.Events, footer.Lost
		f.Seconds = f.since(footer.EndedNS)
		f.Ended = &infoEnd{footer.Status, footer.Signal, footer.Message, footer.Cut}
		return nil
	}
	torn, _, err := reader.Torn()
	f.Seconds = f.since(torn.LastNS)
	f.Torn = &infoTorn{torn.Bytes, f.Seconds}
	return err
}

// since returns the seconds from the start to a time, 0 when that is earlier.
func (f *infoFacts) since(ns uint64) float64 {
	return time.Duration(ns - min(ns, f.Header.ClockNS)).Seconds()
}

// define takes processes, devices and modules from the definitions: each device and module once, however many
// processes have it.
func (f *infoFacts) define(reader *trace.Reader) error {
	names := life.NewNames()
	var numbers []uint32
	devices, modules := map[infoDevice]bool{}, map[string]int{}
	err := reader.Definitions(func(r *wire.Record) error {
		switch r.Kind {
		case wire.KindProcess:
			if keep(&f.More, len(numbers)) && !slices.Contains(numbers, r.Process) {
				numbers = append(numbers, r.Process)
				names.Add(r)
			}
		case wire.KindDevice:
			name, driver, _ := bytes.Cut(bytes.TrimRight(r.Payload, "\x00"), []byte{0})
			d := infoDevice{f.Header.HostOf(r.Process), model.Clean(name), model.Clean(driver), r.Granted}
			if !devices[d] && keep(&f.More, len(f.Devices)) {
				devices[d] = true
				f.Devices = append(f.Devices, d)
			}
		case wire.KindModule:
			f.module(r, modules)
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

// module takes a MODULE record; the second one of a module has its build id. at is where modules are listed, by path
// and by path and build id.
func (f *infoFacts) module(r *wire.Record, at map[string]int) {
	name, id, _ := bytes.Cut(bytes.TrimRight(r.Payload, "\x00"), []byte{0})
	m := infoModule{model.Clean(name), model.Clean(id)}
	i, known := at[m.Path]
	if _, same := at[m.Path+"\x00"+m.BuildID]; same {
		return
	}
	switch {
	case !known && keep(&f.More, len(f.Modules)), known && m.BuildID != "" && f.Modules[i].BuildID != "":
		// New, or another file of the same name.
		i = len(f.Modules)
		f.Modules = append(f.Modules, m)
	case !known, m.BuildID == "":
		return
	default:
		f.Modules[i].BuildID = m.BuildID
	}
	at[m.Path], at[m.Path+"\x00"+m.BuildID] = i, i
}

// keep reports whether there is room for another in a list, and counts it when there is not.
func keep(more *int, length int) bool {
	if length < listMax {
		return true
	}
	*more++
	return false
}

// command is the program's command line; of a recording that names none, the first process's.
func (f *infoFacts) command() string {
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

// ending says how the recording ended.
func (f *infoFacts) ending() string {
	switch {
	case f.Ended != nil && f.Ended.Cut && f.Header.Attached:
		return "detached: what was watched went on"
	case f.Ended != nil && f.Ended.Status < 0 && f.Ended.Signal == 0:
		return "in order; the exit status is not known"
	case f.Ended != nil:
		return session.Status{Code: f.Ended.Status, Signal: f.Ended.Signal}.String()
	}
	text := "cut off: the program or gpumemtop was killed, or it is still being written"
	if f.Torn.Bytes > 0 {
		text += fmt.Sprintf("; the last %d bytes, after %.3f s, cannot be read", f.Torn.Bytes, f.Torn.Seconds)
	}
	return text + "; everything before is whole"
}
