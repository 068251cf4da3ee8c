package e2e

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// viewerPage loads the trace viewer of Chromium, which the Go distribution has for go tool trace, and gives a trace to
// its importer. It puts what came out into a variable.
const viewerPage = `<!doctype html>
<script src="/static/webcomponents.min.js"></script>
<link rel="import" href="/static/trace_viewer_full.html">
<script>
"use strict";
async function look(url) {
	const text = await (await fetch(url)).text();
	const model = new tr.Model();
	const options = new tr.importer.ImportOptions();
	options.showImportWarnings = false;
	new tr.importer.Import(model, options).importTraces([text]);
	const found = {warnings: model.importWarnings.map(w => w.message), processes: [], threads: [], slices: [], lifetimes: [], counters: {}, instants: []};
	for (const p of model.getAllProcesses()) {
		found.processes.push(p.name);
		for (const name in p.counters) {
			const c = p.counters[name];
			for (const s of c.series) found.counters[c.name + " " + s.name] = s.samples[s.samples.length - 1].value;
		}
		for (const tid in p.threads) {
			const thread = p.threads[tid];
			found.threads.push(thread.name);
			for (const s of thread.sliceGroup.slices) found.slices.push(s.title);
			for (const s of thread.asyncSliceGroup.slices) found.lifetimes.push(s.title);
		}
	}
	for (const i of model.instantEvents) found.instants.push(i.title);
	found.flows = model.flowEvents.length;
	shown = model;
	return found;
}
let shown;
// draw shows the end of what look has read: its last creates.
async function draw(creates) {
	const viewer = document.createElement("tr-ui-timeline-view"), tracks = document.createElement("track-view-container");
	tracks.id = "track_view_container";
	viewer.track_view_container = tracks;
	Polymer.dom(viewer).appendChild(tracks);
	viewer.style.cssText = "position: fixed; inset: 0";
	Polymer.dom(document.body).appendChild(viewer);
	viewer.model = shown;
	viewer.viewTitle = "gpumemtop";
	const wait = ms => new Promise(done => setTimeout(done, ms));
	while (!viewer.trackView) await wait(20);
	await wait(200); // it shows the whole first
	// Not the panel for what is selected, nor the warning that this copy of the viewer makes up for what browsers had once.
	for (const part of [viewer.$.analysis, viewer.$.drag_handle, viewer.$["polyfill-warning"], viewer.trackView.mouseModeSelector_]) part.style.display = "none";
	const all = Object.values(Object.values(shown.processes)[0].threads).flatMap(t => t.sliceGroup.slices).filter(s => s.title === "create buffer");
	const viewport = viewer.trackView.viewport, place = viewport.currentDisplayTransform.clone();
	place.xSetWorldBounds(all[all.length - creates].start, shown.bounds.max, viewer.getBoundingClientRect().width - 275);
	viewport.setDisplayTransformImmediately(place);
	await wait(100);
	await new Promise(done => requestAnimationFrame(done));
	return true;
}
</script>`

// viewed is what the viewer made of a trace.
type viewed struct {
	Warnings  []string           `json:"warnings"`
	Processes []string           `json:"processes"`
	Threads   []string           `json:"threads"`
	Slices    []string           `json:"slices"`
	Lifetimes []string           `json:"lifetimes"`
	Instants  []string           `json:"instants"`
	Counters  map[string]float64 `json:"counters"`
	Flows     int                `json:"flows"`
}

// viewer serves the trace viewer and a folder of traces.
func viewer(t *testing.T, traces string) *httptest.Server {
	t.Helper()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	static := filepath.Join(strings.TrimSpace(string(goroot)), "src", "internal", "trace", "traceviewer", "static")
	mux := http.NewServeMux()
	mux.Handle("/static/", http.StripPrefix("/static/", http.FileServer(http.Dir(static))))
	mux.Handle("/traces/", http.StripPrefix("/traces/", http.FileServer(http.Dir(traces))))
	mux.HandleFunc("/favicon.ico", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(viewerPage))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// A real viewer shows our call sites, calls, counters and arrows.
func TestTraceViewerShowsTraces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, live, out := filepath.Join(dir, "x.gmt"), filepath.Join(dir, "live.json"), filepath.Join(dir, "x.json")
	args := []string{gpumemtop(), "record", "-o", file, "--json", live, "--", example("train"), "20"}
	if result := run(t, command{args: args}); result.code != 0 {
		t.Fatalf("record: %s\n%s", result, result.stderr)
	}
	if result := run(t, command{args: []string{gpumemtop(), "export", "--flows", file, "-o", out}}); result.code != 0 {
		t.Fatalf("export: %s\n%s", result, result.stderr)
	}
	if result := run(t, command{args: []string{gpumemtop(), "export", "--compact", file, "-o", filepath.Join(dir, "small.json")}}); result.code != 0 {
		t.Fatalf("export --compact: %s\n%s", result, result.stderr)
	}
	server, b := viewer(t, dir), newBrowser(t)
	b.do(chromedp.Navigate(server.URL))
	waitFor(t, "the viewer to load", func() bool { return eval[bool](b, "!!(window.tr && tr.importer && tr.importer.Import)") })
	for _, trace := range []string{"x.json", "live.json", "small.json"} {
		found, err := chromedp.Run(b.context, chromedp.Evaluate[viewed](`look("/traces/`+trace+`")`, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", trace, err)
		}
		facts, _ := lintFile(t, filepath.Join(dir, trace))
		found.check(t, trace, facts.Creates, facts.Lifetimes)
		if (found.Flows > 0) != (trace == "x.json") {
			t.Errorf("%s: %d arrows", trace, found.Flows)
		}
		if trace == "x.json" {
			b.drawn(&found)
		}
	}
}

// drawn has the viewer draw what it has read last, for a picture.
func (b *browser) drawn(v *viewed) {
	b.do(chromedp.EmulateViewport(wholeWidth, 560))
	if _, err := chromedp.Run(b.context, chromedp.Evaluate[bool]("draw(20)", chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatal(err)
	}
	b.takePicture("trace", page.Viewport{Width: wholeWidth, Height: 560}, v.structure())
}

func (v *viewed) check(t *testing.T, trace string, creates, lifetimes int) {
	t.Helper()
	// The viewer makes one thing of both ends of an arrow, whose arguments differ; it shows the slices with their own.
	v.Warnings = slices.DeleteFunc(v.Warnings, func(text string) bool {
		return v.Flows > 0 && strings.HasPrefix(text, "Different phases of create ")
	})
	if len(v.Warnings) > 0 {
		t.Errorf("%s: the viewer complains: %q", trace, v.Warnings)
	}
	count := func(titles []string, match func(string) bool) int {
		return len(slices.DeleteFunc(slices.Clone(titles), func(title string) bool { return !match(title) }))
	}
	if n := count(v.Slices, func(s string) bool { return s == "create buffer" }); n != creates {
		t.Errorf("%s: %d creates are shown, want %d", trace, n, creates)
	}
	if n := count(v.Lifetimes, func(s string) bool { return strings.HasPrefix(s, "train.c:") }); n != lifetimes {
		t.Errorf("%s: %d lifetimes are shown, want %d", trace, n, lifetimes)
	}
	for _, site := range []string{"create_gradient", "create_activation"} {
		if !slices.ContainsFunc(v.Lifetimes, func(s string) bool { return strings.HasSuffix(s, site) }) {
			t.Errorf("%s: no lifetime of %s", trace, site)
		}
	}
	if !slices.ContainsFunc(v.Processes, func(s string) bool { return strings.Contains(s, "train") }) || !slices.Contains(v.Threads, "main thread") {
		t.Errorf("%s: processes %q, threads %q", trace, v.Processes, v.Threads)
	}
	counters := []string{"mem in_use", "mem cached", "mem cooling", "hit rate % total", "fragmentation % waste", "fragmentation % external"}
	if trace == "small.json" {
		counters = counters[:3]
	}
	for _, counter := range counters {
		if _, ok := v.Counters[counter]; !ok {
			t.Errorf("%s: no counter %s in %v", trace, counter, v.Counters)
		}
	}
	if rate, ok := v.Counters["hit rate % total"]; ok && rate < 50 || v.Counters["mem in_use"] != 0 {
		t.Errorf("%s: counters end at %v", trace, v.Counters)
	}
	if !slices.Contains(v.Instants, "gpumemtop") {
		t.Errorf("%s: instants %q", trace, v.Instants)
	}
}
