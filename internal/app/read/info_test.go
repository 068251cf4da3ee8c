package read

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// infoOf records two processes on two hosts, cuts the recording, and returns what info shows.
func infoOf(t *testing.T, cut int64) (*infoFacts, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.gmt")
	w, err := recording.Create(path, recording.Header{
		Program: "blur\x1b[2J", Host: "one", ClockNS: 1e9, Environment: map[string]string{"POCL_DEVICES": "cpu"},
		Merged: []recording.Origin{{Host: "one", Program: "blur", First: 1, Last: 1}, {Host: "two", Program: "train", First: 2, Last: 9}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	w.SetSummarizer(func() recording.Summary { return recording.Summary{Lost: 4} })
	put := func(process uint32, kind wire.Kind, object uint64, payload string) {
		r := wire.Record{Process: process, Payload: []byte(payload), Event: wire.Event{Kind: kind, Time: 2e9, Object: object, Granted: 1 << 30}}
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	for process := range uint32(2) {
		put(process+1, wire.KindProcess, uint64(40+process), "blur\x00-x\x00")
		for range 2 {
			put(process+1, wire.KindDevice, 1, "card\x00driver 1\x00")
		}
		put(process+1, wire.KindModule, 1, "/bin/blur")
		put(process+1, wire.KindModule, 1, "/bin/blur\x00c0ffee")
		put(process+1, wire.KindModule, 2, "/lib/a.so")
		put(process+1, wire.KindModule, 2, fmt.Sprintf("/lib/a.so\x00%d", process))
	}
	for i := range 30 {
		put(1, wire.KindModule, uint64(10+i), fmt.Sprintf("/lib/%d.so", i))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	end := w.Bytes()
	put(1, wire.KindSync, 0, "")
	if err := w.Close(recording.Footer{EndedNS: 3e9, Status: 7}); err != nil {
		t.Fatal(err)
	}
	if cut > 0 {
		if err := os.Truncate(path, int64(end)+cut); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	facts, err := newInfoFacts("x.gmt", reader)
	if err != nil {
		t.Fatal(err)
	}
	return facts, facts.infoText()
}

func TestInfo(t *testing.T) {
	facts, text := infoOf(t, 0)
	for _, want := range []string{
		"command   blur [2J\n", "format    version 4\n", "events    45, 0 lost\nblocks    2, ", "duration  2s\n", "ended     exit status 7\n",
		"merged    train on two, processes 2 to 9\n", "process   #1 pid 40 on one: blur -x\n", "process   #2 pid 41 on two: blur -x\n",
		"device    card on one, 1.00 GiB, driver driver 1\ndevice    card on two, 1.00 GiB, driver driver 1\nmodule",
		"module    /bin/blur c0ffee\nmodule    /lib/a.so 0\nmodule    /lib/a.so 1\nmodule    /lib/0.so\n", "module    /lib/16.so\n          … and 13 more\n",
		"variable  POCL_DEVICES=cpu\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if len(facts.Modules) != 33 || facts.Modules[2] != (infoModule{"/lib/a.so", "1"}) {
		t.Errorf("modules %v", facts.Modules)
	}
	data, err := json.Marshal(facts)
	if err != nil || !strings.Contains(string(data), `"ended":{"status":7,"signal":0}`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestEnding(t *testing.T) {
	for want, end := range map[string]infoEnd{"exit status 3": {Status: 3}, "SIGSEGV": {Status: -1, Signal: 11}, "unknown": {Status: -1}} {
		if got := (&infoFacts{Ended: &end}).endingText(); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", end, got, want)
		}
	}
}

// TestInfoTorn: info reports what is lost and what to do, and reads the definitions all the same.
func TestInfoTorn(t *testing.T) {
	facts, text := infoOf(t, 20)
	for _, want := range []string{
		"events    44, 4 lost\nblocks    1, ", "duration  1s\n", "the last 20 bytes, after 1.000 s, cannot be read", "\n          gpumemtop trim x.gmt -o NEW writes",
		"process   #2 pid 41 on two",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if facts.Ended != nil || *facts.Torn != (infoTorn{20, 1}) {
		t.Errorf("%+v", facts)
	}
}
