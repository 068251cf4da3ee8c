package foreign_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording/foreign"
)

// heads are how files of each kind begin, by what the kind is called.
var heads = []struct{ text, want, format string }{
	{"", "empty", ""},
	{"hello\n", "", ""},
	{"size,price\n1,2\n", "", ""},
	{"{\"a\": 1}\n", "", ""},
	{"GMTREC\r\nxxxx", "a recording", ""},
	{"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x3e\x00", "a program: to watch it, put gpumemtop before its command line", ""},
	{"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x3e\x00", "a core dump of a program: ", ""},
	{"#!/bin/sh\n./blur\n", "a script: to watch it", ""},
	{"PAR1\x15\x04\x15", "an Apache Parquet table: ", ""},
	{"memray\x00\x0c\x00\x00\x00\x01\x00", "a file of memray: ", ""},
	{"\x04\x22\x4d\x18\x44\x40\x5e\x97\x00\x00\x00\xf1\x06memray\x00\x0c", "a file of memray: ", ""},
	{"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]", "a snapshot of PyTorch's memory: ", ""},
	{"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s.", "a pickle of Python: ", ""},
	{"\n\x11\x68\x01\xb8\x05\x01\x50\x01\xda\x03\x07\xd0\x03\x40\x5a\x02\x58\x01", "a Perfetto trace that gpumemtop wrote: ", ""},
	{"\n\x04\x08\x01\x10\x02\n\x04\x08\x03\x10\x04", "a profile of pprof: ", ""},
	{`{"schema":1,"header":{"program":"x"}}` + "\n", "a recording as lines of JSON: gpumemtop import", "ndjson"},
	{"[\n" + `{"ph":"i","cat":"run","name":"gpumemtop","pid":1,"tid":1,"ts":0.000}`, "a Chrome trace that gpumemtop wrote: ", ""},
	{
		"[\n" + `{"ph":"M", "name":"process_name", "pid":7, "tid":7, "args":{"name":"blur"}},` + "\n" +
			`{"ph":"M", "name":"clintercept_start_time", "pid":7, "tid":7, "args":{"start_time":1}},`,
		"a Chrome trace of the Intercept Layer for OpenCL Applications: https://ui.perfetto.dev shows it; it has neither sizes nor handles", "",
	},
	{`{"schemaVersion": 1, "traceEvents": [ {"ph": "X"`, "a Chrome trace: ", ""},
	{`[{"name":"a","ph":"X","ts":1}`, "a Chrome trace: ", ""},
	{`{"segments": [], "device_traces": []}`, "a snapshot of PyTorch's memory as JSON: ", ""},
	{"{\n  \"policy\": \"slab\",\n  \"limits\": {\n", "a summary or report as JSON: ", ""},
	{"<!doctype html><html lang=\"en\">\n<head>\n<title>blur: gpumemtop</title>", "a report that gpumemtop wrote: ", ""},
	{"<!DOCTYPE html>\n<html><script src=\"MemoryViz.js\">", "a page about PyTorch's memory: ", ""},
	{"<html><body>", "a page of HTML: ", ""},
	{"# gpumemtop: ./blur\n", "a report that gpumemtop wrote: ", ""},
	{"GGMTLOG1\x01\x00\x00\x00", "a flight log: gpumemtop reduce", ""},
	{"# Where this program's buffers go: gpumemtop --plan FILE PROGRAM\n", "a plan of a program's memory: ", ""},
	{"host,pid,process,time_s,time_ns,kind\r\n", "a CSV table that gpumemtop wrote: ", ""},
	{"size,buffer_id,upper,start,offset\n", "a problem of MiniMalloc: gpumemtop import", "minimalloc"},
	{"v 10500 3\nX ./blur 4096\nx /usr/bin/blur\n", "a file of heaptrack: ", ""},
	{"v 10200\nX ./blur\n", "a file of heaptrack: ", ""},
	{"v 10500 3 is not it\n", "", ""},
	{">>>> [271632470] clCreateBuffer: context = 0x5591dba3f860 flags = 4 size = 4194304\n", "a log of onetrace or unitrace: ", ""},
	{"Running\n<<<< [99259883] zeMemAllocDevice [65185 ns] ptr = 0x1 -> ZE_RESULT_SUCCESS (0)\n", "a log of onetrace or unitrace: ", ""},
	{
		"-=-=-=-=-=-=-\nCLIntercept (64-bit) is loading...\nCLIntercept file location: libOpenCL.so\n",
		"a log of the Intercept Layer for OpenCL Applications: ", "clintercept",
	},
	{">>>> clCreateBuffer: flags = CL_MEM_READ_WRITE (1), size = 8192\n", "a log of the Intercept Layer for OpenCL Applications: ", "clintercept"},
	{"\ufeff\nThread,Time,Action,Pointer,Size,Stream\r\n", "a log of RMM: gpumemtop import", "rmm"},
	{"INFO started, \"ready\"\n1,10:00:00.5,allocate,0x1,8,0x0\n", "a log of RMM: gpumemtop import", "rmm"},
}

func of(text string) foreign.Kind { return foreign.KindOfFile(strings.NewReader(text)) }

func TestKinds(t *testing.T) {
	for _, test := range heads {
		got := of(test.text)
		if !strings.HasPrefix(got.String(), test.want) || test.want == "" && got.String() != "" || got.ImportFormat() != test.format {
			t.Errorf("%.60q is %q of format %q, want %q of %q", test.text, got, got.ImportFormat(), test.want, test.format)
		}
	}
}

func pack(t testing.TB, name, text string) string {
	t.Helper()
	var b bytes.Buffer
	if name == "gzip" {
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(text)) // memory takes everything
		_ = w.Close()
	} else {
		w, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
		_ = w.Close()
	}
	return b.String()
}

// TestPackedFilesAreKnown: files are known when they are packed, also of more than is looked at.
func TestPackedFilesAreKnown(t *testing.T) {
	const long = 300_000
	for _, test := range []struct{ packer, text, want, format string }{
		{"gzip", "", "a file packed by gzip: gzip -d unpacks it", ""},
		{"zstd", "hello", "a file packed by zstd: zstd -d unpacks it", ""},
		{"gzip", "GMTREC\r\n", "a recording, packed by gzip: gzip -d unpacks it", ""},
		{"gzip", "v 10500 3\nX ./blur\n", "a file of heaptrack, packed by gzip: heaptrack_print", ""},
		{"zstd", "v 10500 3\nX ./blur\n", "a file of heaptrack, packed by zstd: heaptrack_print", ""},
		{"gzip", "\n\x04\x08\x01\x10\x02\n\x04", "a profile of pprof, packed by gzip: go tool pprof", ""},
		{"gzip", "Thread,Time,Action,Pointer,Size,Stream\n", "a log of RMM, packed by gzip: gpumemtop import", "rmm"},
		{"zstd", "Thread,Time,Action,Pointer,Size,Stream\n", "a log of RMM, packed by zstd: zstd -d unpacks it", ""},
	} {
		for _, more := range []string{"", strings.Repeat("\n+ 1 2", long/6)} {
			if more != "" && test.text == "" {
				continue
			}
			if got := of(pack(t, test.packer, test.text+more)); !strings.HasPrefix(got.String(), test.want) || got.ImportFormat() != test.format {
				t.Errorf("%.60q by %s is %q of format %q, want %q of %q", test.text, test.packer, got, got.ImportFormat(), test.want, test.format)
			}
		}
	}
	for _, cut := range []string{"\x1f\x8b", "\x1f\x8bxxxxxxxxxxxxx", "\x28\xb5\x2f\xfd", "\x28\xb5\x2f\xfdxxxxxxxxxx"} {
		if got := of(cut).String(); !strings.HasPrefix(got, "a file packed by ") {
			t.Errorf("%q is %q", cut, got)
		}
	}
}

func FuzzOf(f *testing.F) {
	for _, test := range heads {
		f.Add([]byte(test.text))
		f.Add([]byte(pack(f, "gzip", test.text)))
		f.Add([]byte(pack(f, "zstd", test.text)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k := foreign.KindOfFile(bytes.NewReader(data))
		if k.ImportFormat() != "" && !strings.Contains(k.String(), "gpumemtop import") {
			t.Errorf("%q can be imported, which %q does not say", k.ImportFormat(), k)
		}
		if len(data) == 0 != (k.String() == "empty") {
			t.Errorf("%d bytes are %q", len(data), k)
		}
	})
}
