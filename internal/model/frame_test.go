package model

import "testing"

// A frame that is handed out is called what a tag is called whose first it is.
func TestFrameName(t *testing.T) {
	for _, payload := range []string{
		"f\t/a/b.c\t7\tapp+0x10\n", "\t\t\t/usr/bin/x+0x6fc69\n", "g\t\t\tapp+0x10\n", "g\t\t\tapp\n", "f\tb.c\t0\tapp\n",
	} {
		got, want := SiteFrames([]byte(payload), nil)[0], parseSite([]byte(payload))[0]
		if got.Name() != want.name() {
			t.Errorf("%q: %q, as a tag it is %q", payload, got.Name(), want.name())
		}
	}
}
