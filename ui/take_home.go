package ui

import (
	"cmp"
	"strings"

	tea "charm.land/bubbletea/v2"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// saveScreen writes what is on the screen as a picture and as text.
func (d *dashboard) saveScreen() {
	d.note = note{}
	d.drawFrame() // without a former message
	name := "gpumemtop-" + d.now.Format("20060102-150405")
	d.runAndSayAnswer(func() (string, error) {
		err := d.o.Write(name+".svg", []byte(d.canvas.drawSVG(d.theme, "gpumemtop")))
		if err == nil {
			err = d.o.Write(name+".txt", []byte(d.canvas.plainText()))
		}
		return "the screen is in " + name + ".svg and .txt", err
	})
}

// askExportFile asks for the file that gets the figures.
func (d *dashboard) askExportFile() {
	kinds := []word{{".pb.gz", "for go tool pprof"}, {".json", "summary"}, {".csv", "call sites"}}
	d.askPathAndWrite("export what is shown as: ", "gpumemtop.pb.gz", kinds, func(path string) (string, error) {
		return "exported: " + path, d.o.Export(path, cmp.Or(d.shownSnapshot(), nothing))
	})
}

func (d *dashboard) toggleRecording() { d.runAndSayAnswer(d.o.Record) }

// toggleExperiment begins or ends an experiment.
func (d *dashboard) toggleExperiment() { d.runAndSayAnswer(d.o.Measure) }

// askPathAndWrite asks for the file that something is written to, and says what came of it.
func (d *dashboard) askPathAndWrite(label, path string, kinds []word, write func(path string) (said string, err error)) {
	d.prompt = &prompt{
		label: label, text: path, keys: append([]word{{"enter", "save"}, {"ctrl+u", "clear"}, {"esc", "back"}}, kinds...),
		done: func(path string) {
			if path != "" {
				d.runAndSayAnswer(func() (string, error) { return write(path) })
			}
		},
	}
}

// runAndSayAnswer asks for something and says the answer.
func (d *dashboard) runAndSayAnswer(what func() (string, error)) {
	text, err := what()
	if err != nil {
		d.sayMessage(badStyle, "✗ "+err.Error())
		return
	}
	d.sayMessage(goodStyle, "✓ "+text)
}

// copyChosenRow gives the chosen row to the terminal, which may put it into the clipboard (OSC 52).
func (d *dashboard) copyChosenRow() tea.Cmd {
	text := d.chosenRowText()
	if text == "" {
		d.sayMessage(dim, "there is no row to copy")
		return nil
	}
	d.sayMessage(goodStyle, "copied, if the terminal allows it: "+text)
	return tea.SetClipboard(text)
}

// chosenRowText is the chosen row of the pane in focus, or of the tags.
func (d *dashboard) chosenRowText() string {
	s := d.shownSnapshot()
	if s == nil {
		return ""
	}
	switch d.focus {
	case paneOutput:
		if lines := d.output.filteredLines(); len(lines) > d.output.back {
			return lines[len(lines)-1-d.output.back].Text
		}
		return ""
	case panePoints:
		if point := d.points.currentPoint(); point != nil {
			return strings.TrimSpace(point.Title + ": " + point.Text + "  " + point.Tag)
		}
		return ""
	case paneObjects:
		objects := d.panes[paneObjects].(*objectsPane)
		if sites := objects.filteredSites(s); objects.at < len(sites) {
			return sites[objects.at].Type.String() + "  " + sites[objects.at].Tag + "  live " + formatTableCount(sites[objects.at].Live)
		}
		return ""
	default:
		return tagRowText(d.tags.currentTag(s), s, d.mode.pool)
	}
}

// tagRowText writes a row of the tags with the names of its columns.
func tagRowText(t *stats.Tag, s *stats.Snapshot, pool bool) string {
	if t == nil {
		return ""
	}
	text := t.Name
	for i := range tagColumns {
		if c := &tagColumns[i]; c.text != nil && (pool || !c.pool) {
			text += "  " + headingAt(s, c.title) + " " + c.text(t)
		}
	}
	return text
}
