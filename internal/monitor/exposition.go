package monitor

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// What Prometheus reads (prometheus.io/docs/instrumenting/exposition_formats). Its client library writes the same, but
// prepares so much in every process that a short run would pay a millisecond for it.
const (
	textForm        = "text/plain; version=0.0.4; charset=utf-8"
	openMetricsForm = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// exposition is metrics with their time series.
type exposition map[*metric][]series

type series struct {
	labels string // as they are written
	value  float64
}

var escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// add gives a metric a time series; labels are the values of labelNames and of the metric's own label.
func (e exposition) add(m *metric, value float64, labels []string, own ...string) {
	texts := make([]string, 0, len(labels)+1)
	for i, name := range labelNames {
		texts = append(texts, label(name, labels[i]))
	}
	for _, text := range own {
		texts = append(texts, label(m.label, text))
	}
	slices.Sort(texts)
	e[m] = append(e[m], series{strings.Join(texts, ","), value})
}

func label(name, value string) string {
	return name + `="` + escaped.Replace(strings.ToValidUTF8(value, "\ufffd")) + `"`
}

// write writes the metrics by name.
func (e exposition) write(w io.Writer, form string) error {
	var b []byte
	list := metrics()
	slices.SortFunc(list, func(x, y *metric) int { return strings.Compare(x.name, y.name) })
	for _, m := range list {
		if len(e[m]) > 0 {
			b = e.append(b, m, form == openMetricsForm)
		}
	}
	if form == openMetricsForm {
		b = append(b, "# EOF\n"...)
	}
	_, err := w.Write(b)
	return err
}

func (e exposition) append(b []byte, m *metric, openMetrics bool) []byte {
	family, kind := m.name, "gauge"
	if base, isCounter := strings.CutSuffix(m.name, "_total"); isCounter {
		kind = "counter"
		if openMetrics {
			family = base
		}
	}
	b = append(b, "# HELP "+family+" "+m.help+"\n# TYPE "+family+" "+kind+"\n"...)
	slices.SortFunc(e[m], func(x, y series) int { return strings.Compare(x.labels, y.labels) })
	for _, s := range e[m] {
		value := strconv.FormatFloat(s.value, 'g', -1, 64)
		if openMetrics && !strings.ContainsAny(value, ".e") {
			value += ".0"
		}
		b = append(b, m.name+"{"+s.labels+"} "+value+"\n"...)
	}
	return b
}

// negotiate returns the form that a client wants.
func negotiate(header http.Header) string {
	for wanted := range strings.SplitSeq(strings.Join(header.Values("Accept"), ","), ",") {
		kind, parameters, err := mime.ParseMediaType(wanted)
		if err == nil && kind == "application/openmetrics-text" && parameters["q"] != "0" {
			return openMetricsForm
		}
	}
	return textForm
}
