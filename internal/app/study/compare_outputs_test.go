package study

import (
	"strings"
	"testing"
)

func outcomes(texts ...string) (list []printed) {
	for _, text := range texts {
		o := Outcome{stdout: []byte(text)}
		list = append(list, o.printedOutput())
	}
	return list
}

// TestOutputsAreJudged: only what bare runs agree about counts.
func TestOutputsAreJudged(t *testing.T) {
	for name, c := range map[string]struct {
		bare, pooled  [2]string
		line, ignored int // line 0: nothing differs
		text          string
	}{
		"the same":              {[2]string{"a\nb\n", "a\nb\n"}, [2]string{"a\nb\n", "a\nb\n"}, 0, 0, "are the same as bare, in 2 pairs"},
		"nothing":               {[2]string{"", ""}, [2]string{"", ""}, 0, 0, "prints nothing"},
		"another line":          {[2]string{"a\nb\n", "a\nb\n"}, [2]string{"a\nb\n", "a\nc\n"}, 2, 0, "line 2 of stdout differs"},
		"a time":                {[2]string{"1 s\nb\n", "2 s\nb\n"}, [2]string{"3 s\nb\n", "4 s\nb\n"}, 0, 1, "1 line differs between bare runs and was ignored"},
		"a line behind a time":  {[2]string{"1 s\nb\n", "2 s\nb\n"}, [2]string{"3 s\nc\n", "4 s\nb\n"}, 2, 1, "line 2 of stdout differs"},
		"one line more":         {[2]string{"a\n", "a\n"}, [2]string{"a\n", "a\nb\n"}, 2, 0, "line 2"},
		"one line less":         {[2]string{"a\nb", "a\nb"}, [2]string{"a\n", "a\nb"}, 2, 0, "line 2"},
		"an end without a line": {[2]string{"a", "a"}, [2]string{"a\n", "a"}, 0, 0, "are the same"},
	} {
		r := OutputComparison{Configuration: "futhark", Pairs: 2, Recycled: 3}
		if err := r.findDifference(outcomes(c.bare[:]...), outcomes(c.pooled[:]...)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		line := 0
		if r.Difference != nil {
			line = r.Difference.Line
		}
		if r.Differs != (c.line > 0) || line != c.line || r.Ignored != c.ignored || !strings.Contains(r.Text(), c.text) {
			t.Errorf("%s: %+v, %s", name, r, r.Text())
		}
	}
}

// TestOutputsThatCannotBeCompared.
func TestOutputsThatCannotBeCompared(t *testing.T) {
	failed := outcomes("a\n", "a\n")
	failed[1].end = "exit status 1"
	for want, bare := range map[string][]printed{
		"in each line": outcomes("1\n", "2\n"), "in the number of lines": outcomes("1\n", "1\n2\n"), "its end differs": failed,
	} {
		r := OutputComparison{}
		if err := r.findDifference(bare, bare); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cannot be compared") {
			t.Errorf("%s: %v", want, err)
		}
	}
	r := OutputComparison{Pairs: 2}
	if err := r.findDifference(outcomes("a\n", "a\n"), failed); err != nil || r.Difference == nil || r.Difference.Pooled != "exit status 1" {
		t.Errorf("%v, %+v", err, r.Difference)
	}
	if !strings.Contains(r.Text(), "nothing was tried") {
		t.Error(r.Text())
	}
}
