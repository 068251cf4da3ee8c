package main

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// chooseProcess finds the processes that --process means, and leaves the reader rewound.
func chooseProcess(reader *trace.Reader, want string) (func(uint32) bool, error) {
	names, err := life.ReadNames(reader)
	if err != nil {
		return nil, err
	}
	return matchProcess(names.Processes(), want)
}

// matchProcess finds a process by "#2", its number, or "4711", its process id, or all of a program by its name.
func matchProcess(processes []*life.ProcessNames, want string) (func(uint32) bool, error) {
	matches := func(p *life.ProcessNames) bool { return path.Base(p.Program) == want && p.Program != "" }
	number, isNumber := strings.CutPrefix(want, "#")
	pid, err := strconv.Atoi(want)
	switch {
	case isNumber:
		matches = func(p *life.ProcessNames) bool { return strconv.FormatUint(uint64(p.Number), 10) == number }
	case err == nil:
		matches = func(p *life.ProcessNames) bool { return p.PID == pid && pid != 0 }
	}
	found := map[uint32]bool{}
	var list []*life.ProcessNames
	for _, p := range processes {
		if matches(p) {
			found[p.Number] = true
			list = append(list, p)
		}
	}
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("no process %s in the recording: %s", want, processList(processes))
	case len(list) > 1 && !isNumber && err == nil:
		return nil, fmt.Errorf("%d processes had the id %s: choose one by its number, %s", len(list), want, processList(list))
	}
	return func(number uint32) bool { return found[number] }, nil
}

// processesShown bounds the processes that an error lists.
const processesShown = 8

// processList says which processes there are.
func processList(processes []*life.ProcessNames) string {
	if len(processes) == 0 {
		return "it names none"
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
