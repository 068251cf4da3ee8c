package devicebench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// misbehave is a variable that makes a child of a test do what a driver may do to it.
const misbehave = "MEASURE_TEST_MISBEHAVE"

func TestMain(m *testing.M) {
	request, asked := os.LookupEnv(ChildEnv)
	if !asked {
		os.Exit(m.Run())
	}
	if how := os.Getenv(misbehave); how != "" {
		os.Exit(misbehaveLike(how, request))
	}
	os.Exit(RunChild(request))
}

// misbehaveLike has three devices; the second goes wrong after its first message.
func misbehaveLike(how, request string) int {
	var o order
	if json.Unmarshal([]byte(request), &o) != nil {
		return 9
	}
	out := json.NewEncoder(os.NewFile(toldOn, "pipe"))
	tell := func(m message) { _ = out.Encode(m) }
	for i := range 3 {
		if o.List {
			tell(message{Device: &Facts{Device: fmt.Sprintf("Card %d", i), Platform: []string{"Red", "Blue"}[i/2], MaxAlloc: 1 << 20}})
		}
	}
	if !o.List {
		tell(message{Sample: &sample{Size: 4096, Create: 100, First: 900, Again: 300, Release: 50}})
		tell(message{Part: &subCost{7, 8}})
		tell(message{Note: "a note"})
	}
	if !o.List && o.Device == 1 {
		switch how {
		case "crash":
			fmt.Fprintln(os.Stderr, "driver: oops\nmore")
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		case "hang":
			select {}
		case "refuse":
			tell(message{End: true, Failure: "clCreateContext: no\nnever"})
			return 0
		case "leave":
			return 0
		case "privileges":
			status, _ := os.ReadFile("/proc/self/status")
			for line := range strings.Lines(string(status)) {
				if strings.HasPrefix(line, "NoNewPrivs:") {
					tell(message{Note: strings.Join(strings.Fields(line), " ")})
				}
			}
		}
	}
	tell(message{End: true})
	return 0
}

// environment is that of children, which the race detector shall not keep for a second when they end.
func environment(more ...string) []string {
	return append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), more...)
}

func options(how string) *Options {
	return &Options{Budget: 300 * time.Millisecond, Environment: environment(misbehave + "=" + how), patience: time.Minute}
}

// Whatever a driver does, it is named, what it reported before is kept, and the others are measured.
func TestRunOutlivesDrivers(t *testing.T) {
	for how, want := range map[string]string{
		"crash": "the driver crashed: signal: killed: driver: oops", "hang": "the driver hangs: it was ended",
		"refuse": "clCreateContext: no; never", "leave": "the process that asked the driver ended in the middle", "privileges": "",
	} {
		o := options(how)
		if how == "hang" {
			o.patience = 4 * time.Second // beyond which a busy machine must not keep a well-behaved one waiting
		}
		r, err := MeasureDevices(t.Context(), o)
		if err != nil || len(r.Devices) != 3 || r.Interrupted {
			t.Fatalf("%s: %v, %+v", how, err, r)
		}
		for i, d := range r.Devices {
			if wrong := d.Error; i != 1 && wrong != "" || i == 1 && wrong != want {
				t.Errorf("%s: device %d: %q", how, i, wrong)
			}
			if len(d.Points) != 1 || d.Points[0].Touch != 600 || d.SubRelease != 8 || d.Notes[0] != "a note" {
				t.Errorf("%s: device %d: %+v", how, i, d)
			}
		}
		if notes := r.Devices[1].Notes; how == "privileges" && !slices.Contains(notes, "NoNewPrivs: 1") {
			t.Errorf("drivers may get rights: %q", notes)
		}
	}
}

func TestRunChooses(t *testing.T) {
	for _, c := range []struct {
		device, platform string
		want             []int
	}{
		{"", "", []int{0, 1, 2}}, {"2", "", []int{2}}, {"card", "", []int{0, 1, 2}}, {"D 1", "", []int{1}}, {"", "blu", []int{2}}, {"0", "RED", []int{0}},
	} {
		o := options("well")
		o.Device, o.Platform = c.device, c.platform
		r, err := MeasureDevices(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, d := range r.Devices {
			got = append(got, d.Number)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, %q: %v", c.device, c.platform, got)
		}
	}
	for _, device := range []string{"3", "-1", "nothing"} {
		o := options("well")
		o.Device = device
		if _, err := MeasureDevices(t.Context(), o); err == nil || !strings.Contains(err.Error(), "there are 0: Card 0 (Red), 1: Card 1 (Red), 2: Card 2 (Blue)") {
			t.Errorf("%s: %v", device, err)
		}
	}
}

func TestRunWithoutDevices(t *testing.T) {
	o := &Options{Budget: time.Second, Environment: environment("OCL_ICD_VENDORS=" + t.TempDir())}
	if _, err := MeasureDevices(t.Context(), o); !errors.Is(err, ErrNoDevice) {
		t.Errorf("%v", err)
	}
}

// A real driver: for the requested time, and no longer than it must when interrupted, with what it knows by then.
func TestRunMeasures(t *testing.T) {
	o := &Options{Budget: 500 * time.Millisecond, Most: 1 << 20, Environment: environment()}
	r, err := MeasureDevices(t.Context(), o)
	if err != nil || len(r.Devices) == 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	for _, d := range r.Devices {
		if d.Error != "" || len(d.Points) == 0 || d.Points[0].Create <= 0 || d.Points[0].Reuse <= 0 || d.SubCreate <= 0 || d.BaseAlign == 0 {
			t.Errorf("%+v", d)
		}
	}
}

func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := &Options{Budget: time.Hour, Environment: environment(), Progress: func(what string, _ float64) {
		if strings.HasPrefix(what, "measuring") {
			cancel()
		}
	}}
	r, err := MeasureDevices(ctx, o)
	if err != nil || !r.Interrupted || len(r.Devices) != 1 || r.Devices[0].Error != "" {
		t.Errorf("%v, %+v", err, r)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if r, err = MeasureDevices(gone, o); err != nil || !r.Interrupted || len(r.Devices) != 0 {
		t.Errorf("before it began: %v, %+v", err, r)
	}
}

// A user whose environment has our variable by mistake gets an error.
func TestChildRefuses(t *testing.T) {
	if status := RunChild("yes"); status == 0 {
		t.Error("no failure")
	}
}

// what is written for scripts: these names stay.
func TestJSON(t *testing.T) {
	f := newFake(t)
	f.keeps = 1 << 20
	d, err := f.run(time.Second, 64<<20, never)
	if err != nil {
		t.Fatal(err)
	}
	d.Facts = Facts{Device: "D", Driver: "1", Platform: "P", BaseAlign: 128, MaxAlloc: 7, GlobalMemory: 8}
	var out bytes.Buffer
	if err := (&Result{Devices: []Device{d.Device}}).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	type line struct {
		A *float64 `json:"a_ns"`
		B *float64 `json:"b_ns_per_byte"`
	}
	type fit struct {
		line
		Below *struct {
			Bytes *uint64 `json:"bytes"`
			line
		} `json:"below"`
		R2    *float64 `json:"r2"`
		Error *float64 `json:"max_relative_error"`
	}
	type point struct {
		Size    *uint64  `json:"size"`
		Create  *float64 `json:"create_ns"`
		Touch   *float64 `json:"touch_ns"`
		Reuse   *float64 `json:"reuse_ns"`
		Release *float64 `json:"release_ns"`
		N       *int     `json:"n"`
	}
	var back struct {
		Devices []struct {
			Device, Driver, Platform      *string
			Create, Touch, Release, Reuse *fit
			SubCreate                     *float64 `json:"subbuffer_create_ns"`
			BaseAlign                     *uint64  `json:"base_align_bytes"`
			MaxAlloc                      *uint64  `json:"max_alloc_bytes"`
			Global                        *uint64  `json:"global_mem_bytes"`
			Lazy                          *bool    `json:"lazy"`
			Caches                        *bool    `json:"driver_caches"`
			Points                        []point  `json:"points"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	got := back.Devices[0]
	if *got.Device != "D" || *got.Driver != "1" || *got.Platform != "P" || *got.BaseAlign != 128 || *got.MaxAlloc != 7 || *got.Global != 8 ||
		!*got.Lazy || !*got.Caches || *got.SubCreate != 60 || *got.Touch.Below.Bytes != 2<<20 || *got.Touch.B < 0.2 || *got.Touch.R2 < 0.9 {
		t.Errorf("%s", out.String())
	}
	for _, f := range []*fit{got.Create, got.Touch, got.Release, got.Reuse} {
		if f == nil || f.A == nil || f.B == nil || f.Error == nil {
			t.Fatalf("a line is not whole in %s", out.String())
		}
	}
	again, err := ParseResult(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if read, err := again.Device(""); err != nil || read.SteadyCosts() != d.SteadyCosts() || read.SteadyCosts().Touch.Below.Bytes != 2<<20 || read.SteadyCosts().Part.A != d.SubCreate+d.SubRelease {
		t.Errorf("%v: %+v was read, %+v written", err, read, d.SteadyCosts())
	}
	for _, p := range got.Points {
		if p.Size == nil || p.Create == nil || p.Touch == nil || p.Reuse == nil || p.Release == nil || *p.N == 0 {
			t.Fatalf("a point is not whole in %s", out.String())
		}
	}
}

// What people read fits narrow windows as far as it is drawn, and holds nothing that a terminal would obey.
func TestText(t *testing.T) {
	f := newFake(t)
	f.keeps, f.scatter = 1<<20, 0.02
	d, err := f.run(2*time.Second, 256<<20, never)
	if err != nil {
		t.Fatal(err)
	}
	d.Facts = Facts{Device: "D\x1b[2J", Platform: "P", Unified: true}
	d.Error = "the driver \x07crashed"
	var out bytes.Buffer
	empty := Device{Error: "clCreateContext: CL_OUT_OF_RESOURCES"}
	if err := (&Result{Devices: []Device{d.Device, empty}}).WriteText(&out, 0); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"lazy: each page", "kept for the next create, up to 1.00 MiB", "which is the host's", "from 2.00 MiB on, below",
		"NEW: CREATE", "failed: clCreateContext: CL_OUT_OF_RESOURCES", "c create  t first touch", "begin at multiples of 0 B; create 6",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.ContainsAny(text, "\x1b\x07") {
		t.Errorf("control characters in %q", text)
	}
	for line := range strings.Lines(tableOfSizes(d.Points, 60) + costChart(d.Points)) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for _, letter := range "cutr" {
		if n := strings.Count(costChart(d.Points), string(letter)); n < 8 {
			t.Errorf("%d of %c in\n%s", n, letter, costChart(d.Points))
		}
	}
}

func TestChartEdges(t *testing.T) {
	if got := costChart([]Point{{Size: 4096, Create: 1}}); got != "" {
		t.Errorf("one point: %q", got)
	}
	nothing := costChart([]Point{{Size: 4096}, {Size: 8192}})
	if !strings.Contains(nothing, units.Format(8192)) || strings.Contains(nothing, "Inf") {
		t.Errorf("nothing costs anything:\n%s", nothing)
	}
}
