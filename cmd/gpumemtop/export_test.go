package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recordingFile writes a small recording.
func recordingFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.gmt")
	var list []wire.Record
	for i := range uint64(3) {
		create := wire.Event{Time: 2000 + i, Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: i + 1, Link: i + 1, Size: 8, Granted: 8, Tag: uint32(i)}
		list = append(list, wire.Record{Event: create, Process: 1, Thread: 1})
	}
	labtest.Write(t, path, recording.Header{Program: "app", Host: "a", ClockNS: 1000}, list, recording.Footer{EndedNS: 3000})
	return path
}

func TestExportTables(t *testing.T) {
	path, dir := recordingFile(t), t.TempDir()
	folder, file := filepath.Join(dir, "runs"), filepath.Join(dir, "file")
	for _, step := range []struct{ args, err string }{
		{"--format csv -o " + file, ""},
		{"--format csv -o " + file, "exists: use -f"},
		{"--format csv --table tags -o " + filepath.Join(dir, "none"), `no table "tags"`},
		{"--format csv --tag ( -o " + filepath.Join(dir, "none"), `bad value "(" for --tag`},
		{"--compact -o " + filepath.Join(dir, "small.json"), ""},
		{"-o " + filepath.Join(dir, "run.pftrace"), ""},
		{"--format perfetto -o " + filepath.Join(dir, "run.pb"), ""},
		{"--format csv -o " + filepath.Join(dir, "run.pftrace"), "contradicts the extension"},
		{"--format parquet -o " + file, "is a file: name a folder"},
		{"--format parquet -f -o " + file, "is a file: name a folder"},
		{"--format parquet -o " + folder, ""},
		{"--format parquet -o " + folder, "is in " + folder + " already: use -f to replace it"},
		{"--format parquet -f -o " + folder, ""},
	} {
		root := newRootCommand()
		root.SetArgs(append([]string{"export", path}, strings.Fields(step.args)...))
		err := root.Execute()
		if step.err == "" && err != nil || step.err != "" && (err == nil || !strings.Contains(err.Error(), step.err)) {
			t.Errorf("%s: error %v, want %q", step.args, err, step.err)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ args, err string }{
		{"--format csv -f -o " + path, "is an input: name another file to write"},
		{"--format ndjson --tag x -o " + filepath.Join(dir, "none"), "--tag is not for --format ndjson: leave it out"},
		{"--format csv --compact -o " + filepath.Join(dir, "none"), "--compact is for --format chrome, not csv: leave it out"},
		{"--compact -o " + filepath.Join(dir, "none.pftrace"), "--compact is for --format chrome, not perfetto: leave it out"},
		{"--format perfetto --flows -o " + filepath.Join(dir, "none"), "--flows is for --format chrome, not perfetto: leave it out"},
		{"--compact --flows -o " + filepath.Join(dir, "none"), "--compact has no calls for the arrows of --flows: leave one out"},
		{"--format csv --at end -o " + filepath.Join(dir, "none"), "--at is for --format pprof, not csv: leave it out"},
		{"--format pprof --at 1h -o " + filepath.Join(dir, "none"), "--at 1h0m0s is after the end: the recording lasts"},
	} {
		root := newRootCommand()
		root.SetArgs(append([]string{"export", path}, strings.Fields(step.args)...))
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), step.err) {
			t.Errorf("%s: error %v, want %q", step.args, err, step.err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the recording is not what it was: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file was made for an error")
	}
	if got, err := os.ReadFile(file); err != nil || strings.Count(string(got), "\r\n") != 1+3 {
		t.Errorf("%q, %v", got, err)
	}
}

// What is in use where a part of a recording ends is no leak, whether export cuts it or trim did.
func TestTracesOfPartsShowNoLeaks(t *testing.T) {
	path, dir := recordingFile(t), t.TempDir()
	part := filepath.Join(dir, "part.gmt")
	for _, step := range []struct {
		args      string
		cut, left int
	}{
		{"export " + path, 0, 3},
		{"export --until 1001ns " + path, 2, 0},
		{"export --until 1h " + path, 0, 3},
		{"trim --until 1001ns -o " + part + " " + path, 0, 0},
		{"export " + part, 2, 0},
	} {
		out := filepath.Join(dir, "out")
		root := newRootCommand()
		args := strings.Fields(step.args)
		if args[0] == "export" {
			args = append(args, "-f", "-o", out)
		}
		root.SetArgs(args)
		if err := root.Execute(); err != nil {
			t.Fatalf("%s: %v", step.args, err)
		}
		if args[0] != "export" {
			continue
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		cut, left := strings.Count(string(text), `"cut":true`), strings.Count(string(text), `"leaked":true`)
		if cut != step.cut || left != step.left {
			t.Errorf("%s: %d are cut, %d leaked; want %d and %d", step.args, cut, left, step.cut, step.left)
		}
	}
}
