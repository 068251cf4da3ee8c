package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func draw(t *testing.T, in string) string {
	t.Helper()
	var out bytes.Buffer
	if err := convert(&out, strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestColoursAndText(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"a<b", `xml:space="preserve">a&lt;b</text>`},
		{"\x1b[38;2;1;2;255mx", `fill="#0102ff"`},
		{"\x1b[38;5;196mx", `fill="#ff0000"`},
		{"\x1b[31mx", `fill="` + sixteen[1] + `"`},
		{"\x1b[1mx", `font-weight="bold"`},
		{"\x1b[48;5;232m \x1b[0m", `height="17.00" fill="#080808"`},
		{"\x1b[7mx", `fill="` + ink + `"`},
		{"  ab", `x="26.86"`},
	} {
		if got := draw(t, test.in); !strings.Contains(got, test.want) {
			t.Errorf("%q: no %s in\n%s", test.in, test.want, got)
		}
	}
}

func TestShapesAreNotText(t *testing.T) {
	for r := rune(0x2580); r <= 0x259f; r++ {
		if got := draw(t, string(r)); strings.Contains(got, "<text") || !strings.Contains(got, "<path") {
			t.Errorf("%c: %s", r, got)
		}
	}
	for _, test := range []struct {
		in    string
		boxes int
	}{{"⠁", 1}, {"⣿", 8}, {"⢕", 4}, {"▙", 3}, {"▄", 1}, {"░", 8}, {"▒", 16}, {"▓", 24}, {"┼", 4}} {
		if got := strings.Count(draw(t, test.in)+" ", "z ") + 1; got != test.boxes {
			t.Errorf("%s: %d shapes, want %d", test.in, got, test.boxes)
		}
	}
}

func FuzzConvert(f *testing.F) {
	for _, seed := range []string{"", "\x1b[", "\x1b[38;2m", "\x1b[38;5;999mx", "⣿\x1b]8;;x\x1b\\界", "\xff\xfe", "a\r\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var out bytes.Buffer
		if err := convert(&out, strings.NewReader(in)); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(&out)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}
