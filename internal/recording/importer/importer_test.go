package importer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording/importer"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var facts = importer.Facts{Name: "log.csv", Modified: time.Unix(77, 0)}

// read reads a whole file.
func read(format string, r io.Reader) (importer.Source, []wire.Record, error) {
	src, err := importer.OpenLog(format, r, facts)
	if err != nil {
		return nil, nil, err
	}
	var list []wire.Record
	for {
		var r wire.Record
		err := src.Next(&r)
		if errors.Is(err, io.EOF) {
			return src, list, nil
		}
		if err != nil {
			return src, list, err
		}
		list = append(list, r)
	}
}

func fold(records []wire.Record) *stats.Snapshot {
	m := stats.New(stats.Options{Started: 1_000_000_000})
	for i := range records {
		m.Apply(&records[i])
	}
	return m.Snapshot()
}

// short writes what records say of memory, a line each.
func short(records []wire.Record) string {
	var b strings.Builder
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case wire.KindCreate, wire.KindRelease:
			fmt.Fprintf(&b, "%d %s %d size %d %s tag %d thread %d\n", int64(r.Time)-1_000_000_000, r.Kind, r.Object, r.Size, r.Outcome, r.Tag, r.Thread)
		case wire.KindSite:
			fmt.Fprintf(&b, "tag %d is %s\n", r.Tag, strings.TrimSpace(string(r.Payload)))
		default:
		}
	}
	return b.String()
}

func TestRMM(t *testing.T) {
	const want = `tag 1 is stream 0x0
0 create 1 size 1024 miss tag 1 thread 1
tag 2 is stream 0x7f8a38001020
50000000 create 2 size 2048 miss tag 2 thread 1
200000000 release 1 size 1024 driver tag 1 thread 2
300000000 create 0 size 999 failed tag 1 thread 2
400000000 create 3 size 512 miss tag 1 thread 2
350000000 release 0 size 7 driver tag 2 thread 1
600000000 release 3 size 512 driver tag 1 thread 2
600000000 create 4 size 100 miss tag 1 thread 2
`
	for name, text := range map[string]string{
		"colons, midnight": `Thread,Time,Action,Pointer,Size,Stream
140573312345856,23:59:59:900000,allocate,0x7f8a40000000,1024,0x0
140573312345856,23:59:59:950000,allocate,0x7f8a40000400,2048,0x7f8a38001020
140573312345857,00:00:00:100000,free,0x7f8a40000000,1024,0x0
140573312345857,00:00:00:200000,allocate failure,(nil),999,0x0
140573312345857,00:00:00:300000,allocate,0x7f8a40000000,512,0x0
140573312345856,00:00:00:250000,free,0x9,7,0x7f8a38001020
140573312345857,00:00:00:500000,allocate,0x7f8a40000000,100,0x0
140573312345857,00:00:00:500000,allocate,0x0,0,0x0
`,
		"points, no header, CRLF": strings.ReplaceAll(`1,11:59:59.900000,allocate,7f8a40000000,1024,0x0
1,11:59:59.950000,ALLOCATE,7f8a40000400,2048,0x7f8a38001020
2,12:00:00.1,deallocate,7f8a40000000,1024,0x0
2,12:00:00.200000,allocate failure,0x0,999,0x0
2,12:00:00.300000,allocate,7f8a40000000,512,0x0
1,12:00:00.250000,free,9,7,0x7f8a38001020
2,12:00:00.500000,allocate,7f8a40000000,100,0x0
`, "\n", "\r\n"),
		"seconds, other columns": `Time,Thread,Size,Action,Stream,Pointer,More
1634567890.1,1,1024,allocate,0x0,0x7f8a40000000,x

1634567890.15,1,2048,allocate,0x7f8a38001020,0x7f8a40000400,x
1634567890.3,2,1024,free,0x0,0x7f8a40000000
1634567890.4,2,999,"allocate failure",0x0,nullptr,x
1634567890.5,2,512,allocate,0x0,0x7f8a40000000,x
1634567890.45,1,7,free,0x7f8a38001020,0x9,x
1634567890.7,2,100,allocate,0x0,0x7f8a40000000,x
`,
	} {
		src, list, err := read("", strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := short(list); got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
		if f := src.Footer(); f.EndedNS != 1_600_000_000 || f.Status != 0 {
			t.Errorf("%s: footer %+v", name, f)
		}
		if h := src.Header(); h.Program != "log.csv" || h.Policy != "none" || h.Created.Unix() != 77 || h.ClockNS != 1_000_000_000 {
			t.Errorf("%s: header %+v", name, h)
		}
		got := fold(list)
		if sum := got.Totals; sum.InUse != 2148 || sum.Failures != 1 || sum.PeakInUse != 3072 || sum.DriverCreates != 4 || got.Unknown != 1 {
			t.Errorf("%s: totals %+v, %d unknown", name, sum, got.Unknown)
		}
	}
}

// TestBuffersLastUntilTheLastRelease: buffers last from their create to the last release; images have no size in the log.
func TestBuffersLastUntilTheLastRelease(t *testing.T) {
	const text = `-=-=-=-=-=-=-=-=-
CLIntercept (64-bit) is loading...
Time: 100 TID = 7 >>>> clCreateBuffer: context = 0x5, flags = CL_MEM_READ_WRITE (1), size = 8192, host_ptr = (nil)
Time: 150 TID = 8 >>>> clCreateBufferWithProperties: context = 0x5, properties = [ ], flags = CL_MEM_READ_ONLY (4), size = 16, host_ptr = (nil)
Time: 200 TID = 8 <<<< clCreateBufferWithProperties: returned 0x80 -> CL_SUCCESS
Time: 210 TID = 7 <<<< clCreateBuffer: returned 0x70 -> CL_SUCCESS
Time: 220 TID = 7 >>>> clSetKernelArg( blur ): kernel = 0x9, index = 0, size = 8
Time: 221 TID = 7 <<<< clSetKernelArg -> CL_SUCCESS
Time: 230 TID = 7 >>>> clRetainMemObject: [ ref count = 1 ] mem = 0x70
Time: 231 TID = 7 <<<< clRetainMemObject: [ ref count = 2 ] -> CL_SUCCESS
Time: 240 TID = 7 >>>> clReleaseMemObject: [ ref count = 2 ] mem = 0x70, EnqueueCounter: 4
Time: 241 TID = 7 <<<< clReleaseMemObject: [ ref count = 1 ] -> CL_SUCCESS
Time: 250 TID = 7 >>>> clCreateBuffer: context = 0x5, flags = CL_MEM_READ_WRITE (1), size = 999, host_ptr = (nil)
ERROR! clCreateBuffer returned CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)
Time: 260 TID = 7 <<<< clCreateBuffer: returned (nil) -> CL_MEM_OBJECT_ALLOCATION_FAILURE
Time: 270 TID = 7 >>>> clCreateImage: context = 0x5, flags = CL_MEM_READ_WRITE (1)
Time: 271 TID = 7 <<<< clCreateImage: returned 0x90 -> CL_SUCCESS
Time: 280 TID = 7 >>>> clReleaseMemObject: [ ref count = 1 ] mem = 0x90
Time: 281 TID = 7 <<<< clReleaseMemObject: [ ref count = 0 ] -> CL_SUCCESS
Time: 300 TID = 8 >>>> clReleaseMemObject: [ ref count = 1 ] mem = 0x70
Time: 310 TID = 8 <<<< clReleaseMemObject: [ ref count = 0 ] -> CL_SUCCESS
Time: 320 TID = 8 <<<< clCreate`
	src, list, err := read("", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	const want = `200000 create 1 size 16 miss tag 0 thread 2
210000 create 2 size 8192 miss tag 0 thread 1
260000 create 0 size 999 failed tag 0 thread 1
310000 release 2 size 8192 driver tag 0 thread 2
`
	if got := short(list); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	const remarks = `3 lines skipped: not of the Intercept Layer's calls, first line 1: "-=-=-=-=-=-=-=-=-": want calls, as CallLogging writes them; ` +
		`1 line cut at the end: line 22; 1 create without a size left out, first in line 17`
	if got := strings.Join(src.Remarks(), "; "); got != remarks {
		t.Errorf("got\n%s\nwant\n%s", got, remarks)
	}
	if f := src.Footer(); f.EndedNS != 1_000_310_000 || !f.Cut {
		t.Errorf("footer %+v", f)
	}
}

// TestInterceptCut: a crash cuts the last line of a log, which is counted.
func TestInterceptCut(t *testing.T) {
	const whole = ">>>> clCreateBuffer: context = 0x1, flags = CL_MEM_READ_WRITE (1), size = 4096, host_ptr = (nil)\n" +
		"<<<< clCreateBuffer: returned 0x7 -> CL_SUCCESS\n"
	const cut, within = "1 line cut at the end: line 3", "ends within a call: line 3" // what is live then is no leak
	for last, remark := range map[string]string{
		">>>> clRel": cut, ">>>> clReleaseMemObject: mem = 0x7": cut, "<<<< clReleaseMemObject": cut, "<<": cut,
		">>>> clCreateBuffer: context = 0x1, flags = CL_MEM_READ_WRITE (1), si\n": within, ">>>> clFinish: queue = 0x1\n": within,
	} {
		src, err := importer.OpenLog("", strings.NewReader(whole+last), importer.Facts{})
		records := 0
		for r := (wire.Record{}); err == nil; records++ {
			err = src.Next(&r)
		}
		if !errors.Is(err, io.EOF) || records != 3 || !src.Footer().Cut || src.Remarks()[0] != remark {
			t.Errorf("%q: %v, %d records, %q", last, err, records, src.Remarks())
		}
	}
}

// TestInterceptBare: without times and threads calls may be within others, and the log as it was before it named the context.
func TestInterceptBare(t *testing.T) {
	const text = `>>>> clCreateBuffer: flags = CL_MEM_READ_WRITE (1), size = 8, host_ptr = 0000000000000000, EnqueueCounter: 1
>>>> clCreateBuffer: flags = CL_MEM_READ_WRITE (1), size = 16, host_ptr = 0000000000000000, EnqueueCounter: 1
<<<< clCreateBuffer: returned 0000029F58C24880
<<<< clCreateBuffer: created 0000029F58C24990 -> CL_SUCCESS
>>>> clReleaseMemObject: mem = 0000029F58C24880
<<<< clReleaseMemObject -> CL_SUCCESS
`
	src, list, err := read("", strings.NewReader(text))
	got := fold(list).Totals
	if err != nil || got.PeakInUse != 24 || got.InUse != 16 || got.Creates != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	const remarks = "no times, a line is taken for 1 µs: CLI_CallLoggingElapsedTime=1 logs them; " +
		"1 call within others, first in line 2, may have the sizes of others: CLI_CallLoggingThreadId=1 logs threads"
	if got := strings.Join(src.Remarks(), "; "); got != remarks {
		t.Errorf("got\n%s\nwant\n%s", got, remarks)
	}
}

func TestMiniMalloc(t *testing.T) {
	src, list, err := read("", strings.NewReader("size,buffer_id,upper,start,offset,gaps\n8,b,5,2,0,3-4\n4,a,2,-1,8,\n1,z,2,2,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `tag 2 is buffer a
0 create 2 size 4 miss tag 2 thread 1
3000000 release 2 size 4 driver tag 2 thread 1
tag 1 is buffer b
3000000 create 1 size 8 miss tag 1 thread 1
tag 3 is buffer z
3000000 create 3 size 1 miss tag 3 thread 1
3000000 release 3 size 1 driver tag 3 thread 1
6000000 release 1 size 8 driver tag 1 thread 1
`
	if got := short(list); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if f := src.Footer(); f.EndedNS != 1_006_000_000 {
		t.Errorf("footer %+v", f)
	}
}

// TestMiniMallocEnd: a column end names the last step of a life, upper the one behind it.
func TestMiniMallocEnd(t *testing.T) {
	_, ends, err := read("", strings.NewReader("id,start,end,size\na,2,2,1\nb,0,4,8\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, uppers, err := read("", strings.NewReader("id,lower,upper,size\na,2,3,1\nb,0,5,8\n"))
	if got, want := short(ends), short(uppers); err != nil || got != want {
		t.Errorf("%v: got\n%swant\n%s", err, got, want)
	}
}

// TestMiniMallocInstances: the height of a problem is at least the most that is in use, which for these is known.
func TestMiniMallocInstances(t *testing.T) {
	for file, want := range map[string]stats.Totals{
		"A.1048576.csv": {Creates: 154, PeakInUse: 1 << 20},
		"input.12.csv":  {Creates: 5, PeakInUse: 12},
	} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		_, list, err := read("", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got := fold(list).Totals
		if got.Creates != want.Creates || got.PeakInUse != want.PeakInUse || got.InUse != 0 || got.Releases != want.Creates {
			t.Errorf("%s: %d creates, %d releases, peak %d, %d in use", file, got.Creates, got.Releases, got.PeakInUse, got.InUse)
		}
	}
}

func TestNDJSONPacked(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, `{"schema":1,"header":{"program":"x"}}`+"\n"+`{"kind":"sync","time":5}`+"\n")
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	src, list, err := read("", &b)
	if err != nil || len(list) != 1 || src.Header().Program != "x" {
		t.Errorf("%v, %v", list, err)
	}
}

func TestBadFiles(t *testing.T) {
	const rmm, mini = "Thread,Time,Action,Pointer,Size,Stream\n", "id,lower,upper,size\n"
	for _, test := range []struct{ format, text, want string }{
		{"", " \n", "nothing is there: the file has no text"},
		{"", "hello\n", "name its format with --format"},
		{"", `[{"ph":"X"}]`, "none of ndjson, rmm, clintercept, minimalloc: it is a Chrome trace: "},
		{"rmm", `[{"ph":"X"}]`, `line 1: a comma or a quote within quotes: want plain fields: it is a Chrome trace: `},
		{"minimalloc", rmm, `line 1: no column id`},
		{"", rmm + "1,0.0,allocate,0x1,8,0x0\nx\ny\n", `line 3: action "": want allocate, allocate failure or free: 2 of 3 lines are not of RMM's log`},
		{"", "GMTREC\r\nxxxx", "a recording already"},
		{"", "\x1f\x8bxxxxxxxxxxxxxxxxx", "unpack"},
		{"ndjson", "", "nothing is there"},
		{"rmm", "", "nothing is there"},
		{"rmm", "Time,Action\n", "line 1: no column pointer: want Thread,Time,Action"},
		{"", rmm + "1,00:00:00.0,grow,0x1,1,0x0\n", `line 2: action "grow": want allocate, allocate failure or free`},
		{"", rmm + "\n1,noon,allocate,0x1,1,0x0\n", `line 3: time "noon": want`},
		{"", rmm + "1,25:00:00.0,allocate,0x1,1,0x0\n", `line 2: time`},
		{"", rmm + "1,00:00:00:1234567,allocate,0x1,1,0x0\n", `line 2: time`},
		{"", rmm + "1,99999999999,allocate,0x1,1,0x0\n", `line 2: time`},
		{"", rmm + "1,0.0,allocate,pointer,1,0x0\n", `line 2: pointer "pointer": want a hexadecimal number`},
		{"", rmm + "1,0.0,allocate,0x1,-1,0x0\n", `line 2: size "-1": want bytes`},
		{"", rmm + "1,0.0,allocate\n", `line 2: size "": want bytes`},
		{"", rmm + "1,0.0,allocate,0x1,\"1,00\",0x0\n", `line 2: a comma or a quote within quotes`},
		{"", rmm + strings.Repeat("x", 70_000), `line 2: a line of more than 65536 bytes`},
		{"minimalloc", "", "nothing is there: want id,lower,upper,size"},
		{"minimalloc", "id,lower,size\n", "line 1: no column upper"},
		{"", mini + "a,1,2\n", "line 2: 3 columns: want 4"},
		{"", mini + "a,x,2,3\n", `line 2: lower "x": want a whole number`},
		{"", mini + "a,1,2.5,3\n", `line 2: upper "2.5": want a whole number`},
		{"", mini + "a,1,2,-3\n", `line 2: size "-3": want bytes`},
		{"", mini + "\na,3,2,3\n", "line 3: upper 2 is before lower 3"},
		{"", mini + "a,-9223372036854775808,9223372036854775807,3\n", "want a number of at most"},
		{"", mini + "a,0,2305843009213693952,3\n", "steps from 0 to 2305843009213693952: want at most"},
	} {
		_, _, err := read(test.format, strings.NewReader(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60q: %v, want %q", test.text, err, test.want)
		}
	}
}

// TestQuotedFields: some tools quote every field.
func TestQuotedFields(t *testing.T) {
	for _, text := range []string{`"1","5.5","allocate","0x1","8","0x0"`, `"id","lower","upper","size"` + "\n" + `"a","0","1","8"`} {
		_, list, err := read("", strings.NewReader(text))
		if got := fold(list).Totals; err != nil || got.PeakInUse != 8 {
			t.Errorf("%s: peak %d, %v", text, got.PeakInUse, err)
		}
	}
}

// TestMixedLogs: what is cut off, or of others, is skipped, counted and reported.
func TestMixedLogs(t *testing.T) {
	const rmm, mini = "Thread,Time,Action,Pointer,Size,Stream\n", "id,lower,upper,size\n"
	const line, next = "1,10:00:00.5,allocate,0x1,8,0x0\n", "1,10:00:00.6,allocate,0x2,16,0x0\n"
	action := `action "": want allocate, allocate failure or free`
	for _, test := range []struct {
		format, text, want string
		peak               uint64
		cut                bool
	}{
		{"", rmm + line + next, "", 24, false},
		{"", rmm + line + strings.TrimSuffix(next, "\n"), "", 24, false},
		{"", rmm + line + "1,10:00:00.6,allocate,0x2,1", "1 line cut at the end: line 3", 8, true},
		{"", rmm + line + "1,10:0", "1 line cut at the end: line 3", 8, true},
		{"", rmm + line + "24/01/02 10:00:00 INFO Executor: \"a\", b, c\n" + next, "1 line skipped: not of RMM's log, first line 3: a comma or a quote within quotes: want plain fields", 24, false},
		{"", "INFO started\nWARN \"x\"\n" + rmm + "INFO\n" + line + next + next + "\n1,10", "3 lines skipped: not of RMM's log, first line 1: " + action + "; 1 free added: allocated again before, first in line 7; 1 line cut at the end: line 9", 24, true},
		{"", line + rmm + "1,10:00:00.6,free,0x7,16,0x0\n", "1 free of what the log does not allocate, first in line 3", 8, false},
		{"", line + strings.Repeat("x", 200_000) + "\n" + next, "1 line skipped: not of RMM's log, first line 2: a line of more than 65536 bytes", 24, false},
		{"rmm", "a\nb\nc\n" + line, "3 lines skipped: not of RMM's log, first line 1: " + action, 8, false},
		{"", mini + "a,0,9,8\nINFO done\nb,0,9,4", "1 line skipped: not of MiniMalloc, first line 3: 1 columns: want 4", 12, false},
		{"", mini + "a,0,9,8\nb,0,", "1 line cut at the end: line 3", 8, true},
	} {
		src, list, err := read(test.format, strings.NewReader(test.text))
		if err != nil {
			t.Errorf("%.80q: %v", test.text, err)
			continue
		}
		remarks := slices.Clone(src.Remarks())
		slices.Sort(remarks)
		if got := strings.Join(remarks, "; "); got != sorted(test.want) {
			t.Errorf("%.80q: %q, want %q", test.text, got, sorted(test.want))
		}
		if got := fold(list).Totals.PeakInUse; got != test.peak || src.Footer().Cut != test.cut {
			t.Errorf("%.80q: peak %d, cut %v, want %d, %v", test.text, got, src.Footer().Cut, test.peak, test.cut)
		}
	}
}

func sorted(remarks string) string {
	list := strings.Split(remarks, "; ")
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// TestCutPacked: what is there of a packed file is imported.
func TestCutPacked(t *testing.T) {
	for format, text := range map[string]string{
		"rmm":    strings.Repeat("1,10:00:00.5,allocate,0x1,8,0x0\n1,10:00:00.6,free,0x1,8,0x0\n", 5_000),
		"ndjson": `{"schema":1,"header":{}}` + "\n" + strings.Repeat(`{"kind":"sync","time":5}`+"\n", 10_000),
	} {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := io.WriteString(w, text)
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		src, list, err := read("", bytes.NewReader(b.Bytes()[:b.Len()/2]))
		if err != nil || len(list) < 1000 {
			t.Errorf("%s: %d records, %v", format, len(list), err)
			continue
		}
		if got := strings.Join(src.Remarks(), "; "); !strings.HasPrefix(got, "cut off in line ") && !strings.HasPrefix(got, "1 line cut at the end: line ") || !src.Footer().Cut {
			t.Errorf("%s: %q, cut %v", format, got, src.Footer().Cut)
		}
	}
}

func fuzz(f *testing.F, format string, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		src, list, err := read(format, bytes.NewReader(data))
		if err != nil {
			return
		}
		got := fold(list)
		if format != "ndjson" && got.Totals.InUse != got.Totals.Requested {
			t.Errorf("totals %+v", got.Totals)
		}
		for i := range list {
			if format != "ndjson" && list[i].Time > src.Footer().EndedNS {
				t.Errorf("record %d at %d is after the end, %d", i, list[i].Time, src.Footer().EndedNS)
			}
		}
	})
}

func FuzzRMM(f *testing.F) {
	fuzz(f, "rmm", "Thread,Time,Action,Pointer,Size,Stream\n1,23:59:59:9,allocate,0x1,8,0x0\n1,00:00:00.1,free,0x1,8,0x0\n", "INFO x\n1,0.0,free,0x1,8,0x0\n1,0", "1,5.5,allocate failure,(nil),8,\n")
}

func FuzzIntercept(f *testing.F) {
	const head, tail = "Time: 9 TID = 7 >>>> clCreateBuffer: context = 0x5, flags = A (1), size = 8, host_ptr = (nil)\n", "<<<< clCreateBuffer: returned 0x7"
	fuzz(f, "clintercept", head+"Time: 9 TID = 7 "+tail+" -> CL_SUCCESS\n", strings.ReplaceAll(head, "Time: 9 TID = 7 ", "")+tail+"\n>>>> clReleaseMemObject: mem = 0x7\n"+
		"<<<< clReleaseMemObject -> CL_SUCCESS\n", head+"Time: 9 TID = 7 <<<< clCreateBuffer: returned (nil) -> CL_OUT_OF_RESOURCES\n")
}

func FuzzMiniMalloc(f *testing.F) {
	fuzz(f, "minimalloc", "id,lower,upper,size\na,0,3,4\nb,-2,9,18446744073709551615\n", "start,size,buffer,end\n1,1,1,1\n")
}

func FuzzNDJSON(f *testing.F) {
	fuzz(f, "ndjson", `{"schema":1,"header":{}}`+"\n"+`{"kind":"create","object":1,"size":5}`+"\n")
}

// A small file takes little memory and ends early, whatever it unpacks to.
func TestPackedBombs(t *testing.T) {
	for name, c := range map[string]struct {
		head  string
		line  func(int) string
		lines int
		want  string
	}{
		"minimalloc": {"id,lower,upper,size\n", func(int) string { return "b,0,1,1\n" }, 500_000, "there is no room for more"},
		"one line":   {"Thread,Time,Action,Pointer,Size,Stream\n", func(int) string { return "1,1.0,free,0x10,16,0\n" }, 4_000_000, "it unpacks to more than 64 times its size"},
	} {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = io.WriteString(w, c.head) // a buffer takes all
		for i := range c.lines {
			_, _ = io.WriteString(w, c.line(i))
		}
		_ = w.Close()
		small := packed.Len()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		source, err := importer.OpenLog("", &packed, importer.Facts{Name: name})
		if err != nil {
			t.Fatal(name, err)
		}
		records := 0
		for r := (wire.Record{}); ; records++ {
			if err = source.Next(&r); err != nil {
				break
			}
		}
		runtime.ReadMemStats(&after)
		if !errors.Is(err, io.EOF) || !strings.Contains(strings.Join(source.Remarks(), "; "), c.want) || !source.Footer().Cut {
			t.Errorf("%s: %d bytes, %d records, %v, %q, want %q", name, small, records, err, source.Remarks(), c.want)
		}
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 256<<20 {
			t.Errorf("%s: %d MiB are kept", name, kept>>20)
		}
	}
}
