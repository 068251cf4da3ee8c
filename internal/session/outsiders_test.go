package session

import (
	"slices"
	"testing"
)

// Answers are kept once each, in words, and no more of them than there is room for; other messages are none.
func TestAnswersOfOutsiders(t *testing.T) {
	s := outsiders{}
	for _, answer := range []string{"4 -1 0", "ffffffff 0 1", "4 -1 0", "", "4", "x y z", "6 0 3", "40 -32 0"} {
		s.noteUnwatchedReason(0, "\x02"+answer)
	}
	want := []string{
		"clGetDeviceIDs(GPU) found no device: CL_DEVICE_NOT_FOUND (-1)", "clGetDeviceIDs(ALL) found 1 device",
		"clGetDeviceIDs(CPU|GPU) found 3 devices", "clGetDeviceIDs(0x40) failed with CL_INVALID_PLATFORM (-32)",
	}
	if !slices.Equal(s.asked, want) || len(s.known) != 0 {
		t.Errorf("%q, and %q", s.asked, s.known)
	}
	for i := range 20 {
		s.noteUnwatchedReason(0, "\x022 0 "+string(rune('0'+i%10)))
	}
	if len(s.asked) != answersMax {
		t.Errorf("%d answers", len(s.asked))
	}
}
