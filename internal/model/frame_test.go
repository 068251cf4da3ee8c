package model
import "testing"
func TestFrameName(t *testing.T) {
	for _, payload := range []string{"f\t/a/b.c\t7\tapp+0x10\n", "\t\t\t/usr/bin/x+0x6fc69\n", "g\t\t\tapp+0x10\n", "g\t\t\tapp\n", "f\tb.c\t0\tapp\n"} {
		frames := SiteFrames([]byte(payload), nil)
		parsed := parseSite([]byte(payload))
		if got, want := frames[0].Name(), parsed[0].name(); got != want {
			t.Errorf("%q: %q, as a tag it is %q", payload, got, want)
		}
	}
}
