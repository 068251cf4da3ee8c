package merging

import "testing"

func TestSentencesSayWhatToChange(t *testing.T) {
	for want, a := range map[string]Advice{
		"Make part in a sub-buffer of out and drop the copy at copy.c:9 from part to out (8 times, 2.00 KiB).": {
			Topic: Coalesce, Verdict: Safe, Sites: []string{"copy.c:9", "part", "out"}, Count: 8, Bytes: 2048,
		},
		"It would do without the copy at copy.c:9 from part to out (256 B), if not for C3: the kernel that makes the source " +
			"uses the destination's bytes too, and nothing else does. Let that kernel read from elsewhere what it needs of " +
			"the destination.": {
			Topic: Coalesce, Verdict: NearMiss, Sites: []string{"copy.c:9", "part", "out"}, Count: 1, Bytes: 256,
			Failed: Undisturbed, Producer: true,
		},
		"It would do without the copy at copy.c:9 from part to out (256 B), if not for C2: the destination is created after " +
			"the source is first used. To mend that, create the destination, and fill it, before the source is first used: " +
			"the host reads nothing in between.": {
			Topic: Coalesce, Verdict: NearMiss, Sites: []string{"copy.c:9", "part", "out"}, Count: 1, Bytes: 256,
			Failed: Allocated, Hoist: HoistCreate | HoistFill,
		},
		"Remove the copy at copy.c:9 (2 times, 512 B): it puts bytes where they are.": {
			Topic: NoOpCopy, Sites: []string{"copy.c:9", "a", "a"}, Count: 2, Bytes: 512,
		},
		"Create one buffer for a, b and c: their buffers are never in use at once. It saves 1.00 MiB at the peak and 2 creates.": {
			Topic: ShareBlock, Sites: []string{"a", "b", "c"}, Count: 2, Bytes: 1 << 20,
		},
		"Create one buffer for a and b: their buffers are never in use at once. It saves 2 creates.": {
			Topic: ShareBlock, Sites: []string{"a", "b"}, Count: 2,
		},
		"Make part in a sub-buffer of out and drop the copy at copy.c:9 from part to out (256 B). The source holds several " +
			"contents, one after the other: each needs memory of its own, a sub-buffer where it is copied.": {
			Topic: Coalesce, Verdict: Safe, Sites: []string{"copy.c:9", "part", "out"}, Count: 1, Bytes: 256, Refilled: true,
		},
		"Keep the buffer of a and use it again: it is never needed twice at once. It saves one create.": {
			Topic: CreateOnce, Sites: []string{"a"}, Count: 1,
		},
		"Make the parts of d where they belong, in sub-buffers of it (a at bytes 0, 8, 16 and 2 more), and " +
			"drop the copies at x (100 times, 800 B).": {
			Topic: Concat, Sites: []string{"d", "a", "a", "a", "a", "a"}, Copies: []string{"x"}, Count: 100, Bytes: 800,
			Offsets: []uint64{0, 8, 16, 24, 32},
		},
		"Make the parts of d where they belong, in sub-buffers of it (a and b, not always at the same bytes), and drop the " +
			"copies at x and y (2 times, 800 B). OpenCL has no sub-buffers of sub-buffers: make those within it of the " +
			"outermost buffer, too.": {
			Topic: Concat, Sites: []string{"d", "a", "b"}, Copies: []string{"x", "y"}, Count: 2, Bytes: 800, Nested: true,
		},
	} {
		if got := a.sentence(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
