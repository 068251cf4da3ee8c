package console

import (
	"bytes"
	"testing"
)

func TestPagesFit(t *testing.T) {
	const text = "gpumemtop: ./a-program with-words exited with status 0 after 1.00 s\n" +
		"  policy     futhark, at most 16.0 MiB cached, the same as the device\n" +
		"             and another text that is as long as that of the first line\n" +
		"  short      one\n"
	const want = "gpumemtop: ./a-program with-words exited\n" +
		"  with status 0 after 1.00 s\n" +
		"  policy     futhark, at most 16.0 MiB\n" +
		"             cached, the same as the\n" +
		"             device\n" +
		"             and another text that is as\n" +
		"             long as that of the first\n" +
		"             line\n" +
		"  short      one\n"
	if got := wrapLines(text, 42); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := WrapForTerminal(&bytes.Buffer{}, text); got != text {
		t.Errorf("without a terminal:\n%s", got)
	}
}

func TestPagesIndentBelowTheText(t *testing.T) {
	const text = "hit rate     as recorded with futhark, which is 42.9 %\n" +
		"  at the end 7.50 MiB in use by 30 buffers of one\n" +
		"   programs differ: \"one with a name\", \"another\"\n"
	const want = "hit rate     as recorded with futhark,\n" +
		"             which is 42.9 %\n" +
		"  at the end 7.50 MiB in use by 30\n" +
		"             buffers of one\n" +
		"   programs differ: \"one with a name\",\n" +
		"   \"another\"\n"
	if got := wrapLines(text, 41); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := WrapIndented("which is at most 42.9 %", 2, 24); got != "which is at most\n  42.9 %" {
		t.Errorf("%q", got)
	}
}
