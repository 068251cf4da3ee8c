package monitor

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	"github.com/prometheus/common/expfmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// gatherer writes metrics.
type gatherer struct{ registry *prometheus.Registry }

func newGatherer(source func() *stats.Snapshot, inherited bool) *gatherer {
	g := &gatherer{prometheus.NewRegistry()}
	g.registry.MustRegister(&collector{source, newPlaces(inherited)})
	return g
}

// negotiate returns the form that a client wants.
func negotiate(header http.Header) expfmt.Format {
	return expfmt.NegotiateAccept(header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
}

func (g *gatherer) write(w io.Writer, format expfmt.Format) error {
	families, err := g.registry.Gather()
	if err != nil {
		return err
	}
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return err
		}
	}
	if closer, ok := encoder.(expfmt.Closer); ok {
		return closer.Close()
	}
	return nil
}

// WriteTextfile writes the last figures into a folder for Prometheus' node_exporter, whole and under a name of its own.
func WriteTextfile(folder, program string, pid int, last *stats.Snapshot, inherited bool) error {
	g := newGatherer(func() *stats.Snapshot { return last }, inherited)
	name := "gpumemtop." + filepath.Base(program) + "." + strconv.Itoa(pid) + ".prom"
	return prometheus.WriteToTextfile(filepath.Join(folder, name), g.registry)
}

// pushTimeout bounds what the end of a run waits for.
const pushTimeout = 5 * time.Second

// Push sends the last figures to Prometheus' Pushgateway, in the group of a job of the program's name.
func Push(url, program string, last *stats.Snapshot, inherited bool) error {
	g := newGatherer(func() *stats.Snapshot { return last }, inherited)
	client := &http.Client{Timeout: pushTimeout}
	err := push.New(url, "gpumemtop").Grouping("run", filepath.Base(program)).Client(client).Gatherer(g.registry).Push()
	if err != nil && len(err.Error()) > 300 {
		err = errors.New(err.Error()[:300] + "…")
	}
	return err
}
