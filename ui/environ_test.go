package ui

import "testing"

func TestASCIIOnly(t *testing.T) {
	for _, test := range []struct {
		term, all, lang string
		want            bool
	}{
		{"xterm", "", "", false}, {"xterm", "C.UTF-8", "C", false}, {"xterm", "", "de_DE.utf8", false}, {"xterm", "", "C", true},
		{"xterm", "C", "en_US.UTF-8", true}, {"linux", "C.UTF-8", "", true},
	} {
		if got := ASCIIOnly([]string{"TERM=" + test.term, "LC_ALL=" + test.all, "LC_CTYPE=", "LANG=" + test.lang}); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
