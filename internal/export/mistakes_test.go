package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func mistake(us uint64, kind wire.Diag, function string, tag uint32, kernel uint64, status int16) wire.Record {
	return rec(us, wire.KindDiag, func(r *wire.Record) {
		r.Op, r.Payload, r.Tag, r.Link, r.Status = uint8(kind), []byte(function), tag, kernel, status
		r.Thread = 202 // makes no other call
		if kind != wire.DiagUnknownMemory {
			r.Object, r.Granted = 1, 4*mib
		}
	})
}

// misdeeds is the story of a program that makes every mistake.
func misdeeds() []wire.Record {
	records := story()
	end := records[len(records)-1]
	records = append(records[:len(records)-1],
		rec(3100, wire.KindKernel, func(r *wire.Record) { r.Object, r.Payload = 7, []byte("step\x00") }),
		mistake(3200, wire.DiagDoubleRelease, "clReleaseMemObject", 1, 0, -38),
		mistake(3300, wire.DiagDoubleRelease, "clReleaseMemObject", 1, 0, -38),
		mistake(3400, wire.DiagDoubleRelease, "clReleaseMemObject", 1, 0, -38),
		mistake(3500, wire.DiagStaleArgument, "clEnqueueNDRangeKernel", 2, 7, 0),
		mistake(3600, wire.DiagStaleRead, "clEnqueueReadBuffer", 2, 0, 0),
		mistake(3700, wire.DiagUnknownMemory, "clRetainMemObject", 0, 0, -38),
		mistake(3800, wire.DiagUseAfterRelease, "clEnqueueFillBuffer", 1, 0, -38),
		mistake(3900, wire.DiagWrongContext, "clSetKernelArg", 1, 7, 0),
		mistake(4000, wire.DiagStillMapped, "clReleaseMemObject", 1, 0, 0))
	return append(records, end)
}

func TestMistakesText(t *testing.T) {
	s := fold(misdeeds())
	s.Recording.Path = "run.gmt"
	summary := NewSummary(s)
	var b bytes.Buffer
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "mistakes-summary.txt", b.String())
}

func TestMistakesJSON(t *testing.T) {
	summary := NewSummary(fold(misdeeds()))
	var b bytes.Buffer
	if err := summary.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Findings []FindingSummary `json:"findings"`
		Leaks    []LeakSummary    `json:"leaks"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) != 7 {
		t.Fatalf("%d findings in\n%s", len(got.Findings), b.String())
	}
	want := []FindingSummary{
		{Kind: "double_release", Function: "clReleaseMemObject", Tag: `canny.c:88 blur<"x">`, Count: 3, Size: 4 * mib, Process: 4242, Status: -38, Certain: true},
		{Kind: "stale_argument", Function: "clEnqueueNDRangeKernel", Tag: "size 2.0M", Count: 1, Size: 4 * mib, Kernel: "step", Process: 4242},
		{Kind: "stale_read", Function: "clEnqueueReadBuffer", Tag: "size 2.0M", Count: 1, Size: 4 * mib, Process: 4242, Certain: true},
		{Kind: "unknown_memory", Function: "clRetainMemObject", Count: 1, Process: 4242, Status: -38, Certain: true},
	}
	if diff := cmp.Diff(want, got.Findings[:4]); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	leaked := []LeakSummary{
		{Tag: `canny.c:88 blur<"x">`, Stack: []string{"cl::Buffer::Buffer /usr/include/CL/opencl.hpp:3000", `blur<"x"> /src/canny.c:88`}, Buffers: 1, Bytes: 4 * mib},
		{Tag: "tag 3", Buffers: 1, Bytes: mib},
	}
	if diff := cmp.Diff(leaked, got.Leaks); diff != "" {
		t.Errorf("leaks (-want +got):\n%s", diff)
	}
}

// A trace shows each mistake once, where it was first made, on the thread that made it.
func TestMistakesInATrace(t *testing.T) {
	text, _, _ := export(t, misdeeds(), ChromeOptions{})
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
	for i := range uint64(2 * model.FindingsMax) {
		many = append(many, mistake(9000+i, wire.DiagStaleRead, fmt.Sprintf("f%d", i), 1, 0, 0))
	}
	text, _, _ = export(t, many, ChromeOptions{})
	if n := strings.Count(text, `"cat":"mistake"`); n != model.FindingsMax {
		t.Errorf("%d mistakes, want %d", n, model.FindingsMax)
	}
}
