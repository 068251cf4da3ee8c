package watch

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
)

func TestChoose(t *testing.T) {
	session := func(pid, child int, program string) found {
		c := &remote.Client{}
		c.About.PID, c.About.Child, c.About.Program = pid, child, program
		return found{client: c}
	}
	train, churn, again := session(10, 11, "/bin/train"), session(20, 21, "churn"), session(30, 31, "churn")
	for _, c := range []struct {
		list []found
		name string
		want int // the session's process id
		err  string
	}{
		{[]found{train}, "", 10, ""},
		{[]found{train, churn}, "train", 10, ""},
		{[]found{train, churn, again}, "31", 30, ""},
		{[]found{train, churn, again}, "20", 20, ""},
		{nil, "", 0, "no session of this user runs here"},
		{nil, "train", 0, "no session of this user runs here"},
		{[]found{train, churn}, "", 0, "several sessions run: name one by its number, as in --session 10: 10 train (pid 11), 20 churn (pid 21)"},
		{[]found{train, churn, again}, "churn", 0, "several sessions run: name one by its number, as in --session 20: "},
		{[]found{train, churn}, "tray", 0, `no session is "tray", only: 10 train (pid 11), 20 churn (pid 21)`},
	} {
		got, err := choose(c.list, c.name)
		switch {
		case c.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%q: %v, want %s", c.name, err, c.err)
			}
		case err != nil || got.client.About.PID != c.want:
			t.Errorf("%q: %+v, %v, want %d", c.name, got, err, c.want)
		}
	}
}
