package callsite

import (
	"strings"
	"testing"
)

func TestFrameName(t *testing.T) {
	for payload, want := range map[string]string{
		"f\t/a/b.c\t7\tapp+0x10\n": "b.c:7 f", "\t\t\t/usr/bin/x+0x6fc69\n": "x+0x6fc69", "g\t\t\tapp+0x10\n": "g app+0x10",
		"g\t\t\tapp\n": "g app", "f\tb.c\t0\tapp\n": "b.c f",
	} {
		if got := Frames([]byte(payload), nil)[0]; got.Name() != want {
			t.Errorf("%q: %q, want %q", payload, got.Name(), want)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1024: "1.0K", 1536: "1.5K", 64 << 20: "64.0M", 1 << 63: "8.0E",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("sizeText(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	if got := len(parse([]byte(strings.Repeat("f\n", 1000)))); got != framesMax {
		t.Errorf("%d frames", got)
	}
}
