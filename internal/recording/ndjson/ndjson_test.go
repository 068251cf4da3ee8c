package ndjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/ndjson"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func header() recording.Header {
	return recording.Header{
		Version: recording.Version, Created: time.Unix(7, 9).UTC(), ClockNS: 1<<63 + 1, Host: "h", Program: "/bin/<app> & ünı", Arguments: []string{"-v"},
		Policy: "futhark", Limits: recording.Limits{"max_cached_bytes": "4096"}, Tags: "stack",
	}
}

func write(t interface{ Fatal(...any) }, records []wire.Record, footer recording.Footer) []byte {
	var b bytes.Buffer
	w := ndjson.NewWriter(&b)
	err := w.WriteHeader(header())
	for i := range records {
		err = errors.Join(err, w.Append(&records[i]))
	}
	if err = errors.Join(err, w.WriteFooter(footer)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(r io.Reader) (*ndjson.Reader, []wire.Record, error) {
	in, err := ndjson.NewReader(r)
	if err != nil {
		return nil, nil, err
	}
	var list []wire.Record
	for {
		var r wire.Record
		err := in.Next(&r)
		if errors.Is(err, io.EOF) {
			return in, list, nil
		}
		if err != nil {
			return in, list, err
		}
		list = append(list, r)
	}
}

// payloads are what targets and sessions write, and what they never would.
var payloads = []string{
	"", "\x00", "app\x00-v\x00", "/bin/app\x00x", "PoCL\x00pocl 6.0", "main\tmain.c\t7\tapp+0x10\n", "f\t\t\t/lib/m+0x0\ng\ta\t1\tb+0x1\n",
	"f\ta\t007\tb+0x1\n", "f\ta\t1\tb+0x01\n", "f\ta\t1\tb+0xA\n", "no newline\t\t\t", "f\n", "\xff\xfe", "0123456789abcdef", "0123456789abcde",
	"a=1", "\u2028<>&\"\\", "f\t\t18446744073709551616\tm+0x10000000000000000\n", "f\t\t\tm+0x1\r\n", "\n\n",
}

func anyRecord(t *rapid.T) wire.Record {
	number := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 20), rapid.SampledFrom([]uint64{1<<53 + 1, 1<<64 - 1}))
	small := rapid.OneOf(rapid.Uint8(), rapid.Uint8Range(0, 12))
	r := wire.Record{Process: rapid.Uint32().Draw(t, "process"), Thread: rapid.Uint32Range(0, 3).Draw(t, "thread")}
	r.Event = wire.Event{
		Time: number.Draw(t, "time"), Duration: rapid.Uint32().Draw(t, "duration"), Cost: rapid.Uint32Range(0, 1).Draw(t, "cost"),
		Kind: wire.Kind(rapid.OneOf(rapid.Uint16(), rapid.Uint16Range(0, 25)).Draw(t, "kind")), Op: small.Draw(t, "op"),
		Outcome: wire.Outcome(small.Draw(t, "outcome")), Reason: small.Draw(t, "reason"), Flags: small.Draw(t, "flags"),
		Scope: rapid.Uint16().Draw(t, "scope"), Status: rapid.Int16().Draw(t, "status"), Access: rapid.Uint16().Draw(t, "access"),
		Tag: rapid.Uint32().Draw(t, "tag"), Object: number.Draw(t, "object"), Size: number.Draw(t, "size"),
		Granted: number.Draw(t, "granted"), Link: number.Draw(t, "link"),
	}
	if r.Kind.HasPayload() {
		r.Payload = rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 64), rapid.Map(rapid.SampledFrom(payloads), func(s string) []byte { return []byte(s) })).Draw(t, "payload")
		if rapid.Bool().Draw(t, "as it should be") {
			r.Size = uint64(len(r.Payload))
		}
	}
	return r
}

// TestNothingIsLost: any records come back as they were.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOfN(rapid.Custom(anyRecord), 0, 10).Draw(t, "records")
		footer := recording.Footer{Lost: 1<<64 - 1, EndedNS: 1<<53 + 1, Status: -1, Signal: 9, Message: "a\nb", Cut: true}
		text := write(t, records, footer)
		for line := range bytes.Lines(text) {
			if !json.Valid(line) {
				t.Fatalf("no JSON: %s", line)
			}
		}
		in, got, err := read(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(records, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-written +read):\n%s\n%s", diff, text)
		}
		if diff := cmp.Diff(header(), in.Header()) + cmp.Diff(footer, in.Footer()); diff != "" {
			t.Error(diff)
		}
		if again := write(t, got, in.Footer()); !bytes.Equal(text, again) {
			t.Errorf("written again:\n%s\nwant\n%s", again, text)
		}
	})
}

// TestLines fixes what the lines look like.
func TestLines(t *testing.T) {
	text := func(process uint32, e wire.Event, payload string) wire.Record {
		e.Size = uint64(len(payload))
		return wire.Record{Process: process, Event: e, Payload: []byte(payload)}
	}
	got := write(t, []wire.Record{
		text(1, wire.Event{Kind: wire.KindProcess, Time: 5, Object: 4711, Link: 1}, "/bin/app\x00-n\x003"),
		text(1, wire.Event{Kind: wire.KindDevice, Object: 1, Granted: 1 << 30}, "PoCL\x006.0"),
		text(1, wire.Event{Kind: wire.KindTag, Tag: 3, Op: 2}, "\x02\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"),
		text(1, wire.Event{Kind: wire.KindSite, Tag: 3}, "main\t/src/a.c\t7\tapp+0x10\n\t\t\t\n"),
		text(1, wire.Event{Kind: wire.KindLimit, Status: -1}, "a<b"),
		text(1, wire.Event{Kind: wire.KindKernel, Object: 2}, "\xff"),
		{Process: 1, Thread: 9, Event: wire.Event{
			Kind: wire.KindCreate, Time: 1 << 60, Duration: 2, Cost: 1, Op: 4, Outcome: 2, Reason: 3, Flags: 32, Scope: 1, Access: 4,
			Status: -4, Tag: 3, Object: 7, Size: 10, Granted: 16, Link: 8,
		}},
		{Process: 1, Event: wire.Event{Kind: wire.KindUse, Op: 1, Flags: 2, Object: 7, Granted: 2, Link: 1, Duration: 1}},
		{Process: 1, Event: wire.Event{Kind: wire.KindUse, Op: 4, Flags: 132, Tag: 3, Object: 7, Size: 64, Granted: 16, Link: 1}},
		{Process: 1, Event: wire.Event{Kind: wire.KindCreate, Op: 1, Object: 8, Size: 64, Granted: 1, Link: 7}},
		{Process: 1, Event: wire.Event{Kind: wire.KindCreate, Op: 1, Object: 9, Size: 64, Link: 7}},
		{Event: wire.Event{Kind: wire.KindEvict, Reason: 4, Outcome: 200, Op: 1}},
		{Process: 1, Event: wire.ObjectFields{Held: wire.HeldCommandBuffer, CarriedOver: true, Tag: 3, Created: 9, Released: 4, Most: 7}.Event()},
		{Event: wire.Event{Kind: 999}},
	}, recording.Footer{EndedNS: 9, Status: 3})
	want := `{"time":5,"kind":"process","process":1,"object":4711,"link":1,"arguments":["/bin/app","-n","3"]}
{"time":0,"kind":"device","process":1,"object":1,"granted":1073741824,"device":{"name":"PoCL","driver":"6.0"}}
{"time":0,"kind":"tag","process":1,"op":"stack","tag":3,"frames":[{"module":2,"offset":16}]}
{"time":0,"kind":"site","process":1,"tag":3,"site":[{"function":"main","file":"/src/a.c","line":7,"module":"app","offset":16},{}]}
{"time":0,"kind":"limit","process":1,"status":-1,"text":"a<b"}
{"time":0,"kind":"kernel","process":1,"object":2,"base64":"/w=="}
{"time":1152921504606846976,"kind":"create","process":1,"thread":9,"duration":2,"cost":1,"op":"svm","outcome":"miss","reason":"too wasteful","flags":32,"scope":1,"access":4,"status":-4,"tag":3,"object":7,"size":10,"granted":16,"link":8}
{"time":0,"kind":"use","process":1,"argument":0,"op":"kernel","flags":2,"object":7,"granted":2,"link":1}
{"time":0,"kind":"use","process":1,"op":"copy","flags":132,"tag":3,"object":7,"size":64,"offset":16,"link":1}
{"time":0,"kind":"create","process":1,"op":"subbuffer","object":8,"size":64,"offset":0,"link":7}
{"time":0,"kind":"create","process":1,"op":"subbuffer","object":9,"size":64,"link":7}
{"time":0,"kind":"evict","op":1,"outcome":200,"reason":"drain"}
{"time":0,"kind":"object","process":1,"op":"command buffer","flags":64,"tag":3,"object":9,"size":4,"granted":7}
{"time":0,"kind":999}
{"footer":{"events":14,"lost":0,"ended_ns":9,"status":3,"signal":0}}
`
	first, rest, _ := strings.Cut(string(got), "\n")
	if !strings.HasPrefix(first, `{"schema":1,"header":{"version":`) {
		t.Errorf("first line %s", first)
	}
	if diff := cmp.Diff(want, rest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBadLines(t *testing.T) {
	const first = `{"schema":1,"header":{"program":"x"}}` + "\n"
	for text, want := range map[string]string{
		"":                         "nothing is there",
		"\n \n":                    "nothing is there",
		`{"kind":"use"}`:           `line 1: want "schema" and "header" first`,
		`{"schema":2,"header":{}}`: "line 1: schema 2: want 1",
		"[]":                       "line 1:",
		first + "\nx":              "line 3: no JSON object",
		first + `{"time":1}`:       `line 2: want a "kind"`,
		first + `{"kind":"creat"}`: `line 2: kind "creat" is unknown`,
		first + `{"kind":70000}`:   "line 2: kind 70000 is unknown: want one of docs/EXPORTS.md, or a number up to 65535",
		first + `{"kind":"create","op":"kernel"}`:                                         `line 2: op "kernel" is unknown`,
		first + `{"kind":"create","scope":70000}`:                                         "line 2: scope cannot be a number 70000",
		first + `{"kind":"create","time":-1}`:                                             "line 2: time cannot be a number -1",
		first + `{"kind":"create","time":1.5}`:                                            "line 2: time cannot be a number 1.5",
		first + `{"kind":"create","argument":1}`:                                          "line 2: a record of kind create has no argument 1",
		first + `{"kind":"use","argument":4294967295}`:                                    "line 2: a record of kind use has no argument 4294967295",
		first + `{"kind":"use","op":"kernel","offset":1}`:                                 "line 2: a record of kind use, with this op, has no offset",
		first + `{"kind":"create","offset":1}`:                                            "line 2: a record of kind create, with this op, has no offset",
		first + `{"kind":"sync","offset":1}`:                                              "line 2: a record of kind sync, with this op, has no offset",
		first + `{"kind":"create","text":"x"}`:                                            "line 2: a record of kind create has no text",
		first + `{"kind":"diag","text":"x","base64":"eA=="}`:                              "line 2: 2 of arguments",
		first + `{"kind":"diag","base64":"!"}`:                                            "line 2: base64:",
		first + `{"kind":"diag","text":"` + strings.Repeat("x", wire.PayloadMax+1) + `"}`: "line 2: 4097 bytes of text",
		first + `{"footer":{}}` + "\n" + `{"kind":"sync"}`:                                "line 3: want nothing behind the footer",
		first + strings.Repeat(" ", ndjson.LineMax+1):                                     "line 2: more than",
	} {
		_, _, err := read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// TestOnlyTheLastLineMayBeCutOff: the last line may be cut off, no other may.
func TestOnlyTheLastLineMayBeCutOff(t *testing.T) {
	const text = `{"schema":1,"header":{}}` + "\n" + `{"kind":"sync","time":5}` + "\n" + `{"kind":"diag","text":"x`
	in, list, err := read(strings.NewReader(text))
	if err != nil || len(list) != 1 || !slices.Equal(in.Remarks(), []string{"cut off in line 3"}) || !in.Footer().Cut {
		t.Errorf("%d records, %v, %v", len(list), in.Remarks(), err)
	}
	_, _, err = read(strings.NewReader(text + "\n" + `{"kind":"sync"}`))
	if err == nil || !strings.Contains(err.Error(), "line 3: no JSON object") {
		t.Errorf("cut off within: %v", err)
	}
}

// TestEarlierVersions: lines of an earlier version are read as its recordings are.
func TestEarlierVersions(t *testing.T) {
	const line = `{"kind":"use","op":"copy","flags":2,"tag":3,"size":64}` + "\n"
	for header, want := range map[string]wire.Event{
		`{}`:            {Kind: wire.KindUse, Op: 4, Flags: wire.FlagReads, Tag: 3, Size: 64},
		`{"version":4}`: {Kind: wire.KindUse, Op: 4, Flags: wire.FlagReads, Tag: 3, Size: 64},
		`{"version":3}`: {Kind: wire.KindUse, Op: 4, Flags: wire.FlagReads | wire.FlagScattered, Size: 64},
	} {
		_, list, err := read(strings.NewReader(`{"schema":1,"header":` + header + "}\n" + line))
		if err != nil || len(list) != 1 || list[0].Event != want {
			t.Errorf("%s: %+v, %v, want %+v", header, list, err, want)
		}
	}
}

func TestWithoutAFooter(t *testing.T) {
	in, list, err := read(strings.NewReader(`{"schema":1,"header":{"clock_ns":5}}` + "\n" + `{"kind":"sync","time":9}` + "\r\n"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if f := in.Footer(); f.Status != -1 || f.EndedNS != 9 || f.Message == "" {
		t.Errorf("footer %+v", f)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"schema":1,"header":{"limits":{"a":1}}}` + "\n" + `{"kind":"site","site":[{"line":3}]}` + "\n" + `{"footer":{}}`))
	f.Add([]byte(`{"schema":1,"header":{}}` + "\n" + `{"kind":"tag","frames":[{"module":1}],"op":"stack","size":3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, list, err := read(bytes.NewReader(data))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") && !strings.Contains(err.Error(), "JSON") {
				t.Errorf("error of several lines: %q", err)
			}
			return
		}
		text := write(t, list, in.Footer())
		if _, again, err := read(bytes.NewReader(text)); err != nil || !cmp.Equal(list, again, cmpopts.EquateEmpty()) {
			t.Errorf("%v\n%v\n%v", err, list, again)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	w := ndjson.NewWriter(io.Discard)
	r := wire.Record{Process: 1, Thread: 4711, Event: wire.Event{Kind: wire.KindCreate, Time: 1 << 50, Object: 7, Size: 1 << 20, Granted: 1 << 20, Link: 7}}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Append(&r); err != nil {
			b.Fatal(err)
		}
	}
}

// TestArm: a line says which creates the alternative of an experiment decided on.
func TestArm(t *testing.T) {
	var text bytes.Buffer
	w := ndjson.NewWriter(&text)
	for _, outcome := range []wire.Outcome{wire.OutcomeMiss, wire.OutcomeDriver} { // of other creates the bit means something else
		e := wire.Event{Kind: wire.KindCreate, Outcome: outcome, Flags: wire.FlagArm}
		if err := w.Append(&wire.Record{Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteFooter(recording.Footer{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), `,"flags":128,"arm":1`); n != 1 {
		t.Errorf("%d creates of an alternative, want 1:\n%s", n, &text)
	}
}
