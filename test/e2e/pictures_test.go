package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// Each picture in docs carries, as text that no viewer shows, the structure of the page that it shows: headings, labels and style
// sheet, without figures. If the code is newer than the picture, the page has another structure: "make screenshot" takes it again.

// takePicture writes docs/NAME.png with -update; otherwise it compares the structure of what is shown now with the picture's.
func (b *browser) takePicture(name string, clip page.Viewport, structure []string) {
	b.t.Helper()
	path, text := filepath.Join(root, "docs", name+".png"), strings.Join(structure, "\n")
	if *updateDocs {
		clip.Scale = 1
		shot := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{Clip: &clip, CaptureBeyondViewport: new(true)})
		if err := os.WriteFile(path, withText(shot.Data, text), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	picture := readFile(b.t, path)
	size, err := png.DecodeConfig(strings.NewReader(picture))
	if err != nil || float64(size.Width) != clip.Width || float64(size.Height) < 0.7*clip.Height {
		b.t.Errorf("docs/%s.png is %d by %d, want %.0f by %.0f; %v: run make screenshot", name, size.Width, size.Height, clip.Width, clip.Height, err)
	}
	if was := textIn(picture); was != text {
		b.t.Errorf("docs/%s.png is older than what it shows: run make screenshot. It shows\n%s\nand today there is\n%s", name, was, text)
	}
}

const (
	pngHead  = 8 + 4 + 4 + 13 + 4 // signature and IHDR, the chunk that comes first
	textHead = "iTXtstructure\x00\x00\x00\x00\x00"
)

// withText puts a text into a PNG.
func withText(image []byte, text string) []byte {
	chunk := textHead + text
	out := append(slices.Clone(image[:pngHead]), binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4))...)
	out = append(out, chunk...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE([]byte(chunk)))
	return append(out, image[pngHead:]...)
}

func textIn(image string) string {
	if len(image) < pngHead+4+len(textHead) {
		return ""
	}
	n := binary.BigEndian.Uint32([]byte(image[pngHead:]))
	chunk := image[pngHead+4:]
	text, _ := strings.CutPrefix(chunk[:min(len(chunk), int(n)+4)], textHead)
	return text
}

func TestTextInPictures(t *testing.T) {
	image := []byte(readFile(t, filepath.Join(root, "docs", "trace.png")))
	changed := withText(image, "a – b\nc")
	if got := textIn(string(changed)); got != "a – b\nc" {
		t.Errorf("text %q", got)
	}
	if _, err := png.Decode(bytes.NewReader(changed)); err != nil {
		t.Error(err)
	}
}

const wholeWidth = 1100

// pageStructure is a report's style sheet and, in a part of the page, headings and the labels of a post-mortem. Other labels depend on how
// long the run took.
func (b *browser) pageStructure(part page.Viewport) []string {
	return eval[[]string](b, fmt.Sprintf(`[document.querySelector("meta[http-equiv]").content.match(/style-src '(.*?)'/)[1],
		...[...document.querySelectorAll("h2, #failures td:first-child, #failures tbody th")].filter(e => {
			const top = e.getBoundingClientRect().top + scrollY;
			return top >= %f && top < %f;
		}).map(e => e.textContent.trim())].filter(s => s)`, part.Y, part.Y+part.Height))
}

// boxOf is where an element is on the page.
func (b *browser) boxOf(selector string) page.Viewport {
	box := eval[[]float64](b, `(() => { const r = document.querySelector("`+selector+`").getBoundingClientRect(); return [r.top + scrollY, r.height]; })()`)
	const margin = 16
	return page.Viewport{Y: max(0, box[0]-margin), Width: wholeWidth, Height: box[1] + 2*margin}
}

// lightAndDark takes pictures of a part of a page.
func (b *browser) lightAndDark(file, name string, part func() page.Viewport) {
	b.t.Helper()
	for suffix, scheme := range map[string]string{"": "light", "-dark": "dark"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		b.open(file, wholeWidth, 1000)
		clip := part()
		b.takePicture(name+suffix, clip, b.pageStructure(clip))
	}
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
}

// pictures takes those of reports: of the demo, which leaves 30 buffers, and of a run that runs out of memory.
func (b *browser) pictures() {
	t := b.t
	well, failed := filepath.Join(t.TempDir(), "well.gmt"), filepath.Join(t.TempDir(), "failed.gmt")
	for file, args := range map[string][]string{
		well:   {"record", "-o", well, "--device-memory", "256M", "--max-cached", "4M", "bin/examples/photos", "120"},
		failed: {"record", "-o", failed, "--device-memory", "600K", "bin/examples/pipeline", "40", "256K"},
	} {
		if r := run(t, command{args: append([]string{gpumemtop()}, args...), dir: root}); (r.code == 0) != (file == well) {
			t.Fatalf("record: %s\n%s", r, r.stderr)
		}
		if r := run(t, command{args: []string{gpumemtop(), "report", "-o", file + ".html", file}}); r.code != 0 {
			t.Fatalf("report: %s\n%s", r, r.stderr)
		}
	}
	b.lightAndDark(well+".html", "report", func() page.Viewport {
		begin, end := b.boxOf("#findings"), b.boxOf("#memory")
		return page.Viewport{Y: begin.Y, Width: wholeWidth, Height: end.Y + end.Height - begin.Y}
	})
	b.lightAndDark(failed+".html", "post-mortem", func() page.Viewport { return b.boxOf("#failures") })
}

// structure is what the trace viewer draws, without figures, and without what the machine says of a run that was long enough.
func (v *viewed) structure() []string {
	var out []string
	for _, names := range [][]string{v.Processes, v.Threads, v.Slices, v.Lifetimes, v.Instants, slices.Collect(maps.Keys(v.Counters))} {
		for i, name := range names {
			names[i] = shape(name)
		}
		slices.Sort(names)
		out = append(out, slices.Compact(names)...)
	}
	return slices.DeleteFunc(out, func(name string) bool { return strings.HasPrefix(name, "machine ") })
}
