package export

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// A trace shows each mistake once, where it was first made, on the thread that made it.
func TestMistakesInATrace(t *testing.T) {
	text, _, _ := export(t, misdeeds(), TraceOptions{})
	if n := strings.Count(text, `"cat":"mistake"`); n != 7 {
		t.Errorf("%d mistakes in\n%s", n, text)
	}
	for _, part := range []string{
		`"name":"double release: clReleaseMemObject of a 4.00 MiB buffer created at canny.c:88 blur<\"x\">","pid":4242,"tid":202,"ts":3200.000`,
		`"name":"stale argument: a 4.00 MiB buffer created at size 2.0M given to kernel step, which cannot write it`,
		`"kind":"unknown_memory","function":"clRetainMemObject","tag":"(untagged)","bytes":0,"object":0,"status":-38,"certain":true`,
		`"name":"thread_name","pid":4242,"tid":202`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing in\n%s", part, text)
		}
	}
	checkFacts(t, misdeeds())
	many := story()
	for i := range uint64(2 * stats.FindingsMax) {
		many = append(many, mistake(9000+i, wire.DiagStaleRead, fmt.Sprintf("f%d", i), 1, 0, 0))
	}
	text, _, _ = export(t, many, TraceOptions{})
	if n := strings.Count(text, `"cat":"mistake"`); n != stats.FindingsMax {
		t.Errorf("%d mistakes, want %d", n, stats.FindingsMax)
	}
}

// A trace shows another call that fails once for each status of its call site.
func TestFailedCallsInATrace(t *testing.T) {
	many := story()
	for i := range uint64(6) {
		many = append(many, mistake(9000+i, wire.DiagCallFailed, "clFinish", 2, 0, -36-int16(i%2)))
	}
	text, _, _ := export(t, many, TraceOptions{})
	const want = `"cat":"failure","name":"clFinish at size 2.0M failed with CL_INVALID_COMMAND_QUEUE (-36): the standard has this code where the queue is not valid","pid":4242,`
	if n := strings.Count(text, `"name":"clFinish at size 2.0M`); n != 2 || !strings.Contains(text, want) {
		t.Errorf("%d failures in\n%s", n, text)
	}
}

// A trace shows the first create of a call site that fails for lack of memory, and with each other status.
func TestFailedCreatesInATrace(t *testing.T) {
	records := story()
	at := slices.IndexFunc(records, func(r wire.Record) bool {
		return r.Kind == wire.KindCreate && r.AsCreate().Outcome() == wire.OutcomeFailed
	})
	again, refused := records[at], records[at]
	refused.Tag, refused.Status = 1, -37 // CL_INVALID_HOST_PTR: not for lack of memory
	text, _, _ := export(t, slices.Insert(records, at+1, again, refused, refused), TraceOptions{})
	if n := strings.Count(text, `"cat":"failure"`); n != 2 {
		t.Errorf("%d failures in\n%s", n, text)
	}
	if at := strings.Index(text, `create of a buffer of 48.0 MiB at canny.c:88 blur<\"x\"> failed with CL_INVALID_HOST_PTR (-37): the standard has this code where `); at < 0 {
		t.Errorf("the refused create is missing in\n%s", text)
	}
	const want = `"cat":"failure","name":"create of 48.0 MiB at size 2.0M failed","pid":4242,"tid":101,"ts":2600.000,"s":"p",` +
		`"args":{"tag":"size 2.0M","bytes":50331648,"in_use":`
	if !strings.Contains(text, want) {
		t.Errorf("%s is missing in\n%s", want, text)
	}
}
