package study

import (
	"strings"
	"testing"
)

func TestTailKeepsTheEnd(t *testing.T) {
	printed, err := newTail(tailMax)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := printed.file.WriteString(strings.Repeat("x", 999) + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := printed.file.WriteString("the end"); err != nil {
		t.Fatal(err)
	}
	if got := printed.lastOutput(); len(got) != tailMax || !strings.HasSuffix(string(got), "x\nthe end") {
		t.Errorf("%d bytes, ending in %q", len(got), got[max(0, len(got)-20):])
	}
}
