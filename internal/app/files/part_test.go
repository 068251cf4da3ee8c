package files

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
)

func TestMatchProcess(t *testing.T) {
	processes := []*callsite.ProcessNames{
		{Number: 1, PID: 4711, Program: "/bin/sh"}, {Number: 2, PID: 4711, Program: "./app"}, {Number: 3, PID: 4712, Program: "/opt/app"},
		{Number: 4},
	}
	for _, test := range []struct {
		want, problem string
		numbers       []uint32
	}{
		{want: "#2", numbers: []uint32{2}},
		{want: "#4", numbers: []uint32{4}},
		{want: "4712", numbers: []uint32{3}},
		{want: "app", numbers: []uint32{2, 3}},
		{want: "sh", numbers: []uint32{1}},
		{want: "4711", problem: "2 processes had the id 4711: choose one by number: #1 sh (pid 4711), #2 app (pid 4711)"},
		{want: "9", problem: "no process 9 in the recording: #1 sh (pid 4711), #2 app (pid 4711), #3 app (pid 4712), #4"},
		{want: "0", problem: "no process 0"},
		{want: "#", problem: "no process #"},
		{want: ".", problem: "no process ."},
		{want: "#02", problem: "no process #02"},
	} {
		match, err := processMatcher(processes, test.want)
		if test.problem != "" || err != nil {
			if err == nil || test.problem == "" || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%s: %v, want %q", test.want, err, test.problem)
			}
			continue
		}
		var numbers []uint32
		for n := range uint32(6) {
			if match(n) {
				numbers = append(numbers, n)
			}
		}
		if len(numbers) != len(test.numbers) || numbers[0] != test.numbers[0] {
			t.Errorf("%s means %v, want %v", test.want, numbers, test.numbers)
		}
	}
	many := make([]*callsite.ProcessNames, 100)
	for i := range many {
		many[i] = &callsite.ProcessNames{Number: uint32(i + 1)}
	}
	if _, err := processMatcher(many, "x"); !strings.HasSuffix(err.Error(), "#8 and 92 more") {
		t.Errorf("of many: %v", err)
	}
	if _, err := processMatcher(nil, "x"); !strings.Contains(err.Error(), "it names no processes") {
		t.Errorf("of none: %v", err)
	}
}
