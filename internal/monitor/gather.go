package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

func newCollector(source func() *stats.Snapshot, inherited bool) *collector {
	return &collector{source, newPlaces(inherited)}
}

// negotiate returns the form that a client wants.
func negotiate(header http.Header) expfmt.Format {
	return expfmt.NegotiateAccept(header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
}

func (c *collector) write(w io.Writer, format expfmt.Format) error {
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range c.collect() {
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
	path := filepath.Join(folder, "gpumemtop."+filepath.Base(program)+"."+strconv.Itoa(pid)+".prom")
	part, err := os.CreateTemp(folder, filepath.Base(path)) // node_exporter passes over other endings
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // without effect once it has its name
	c := newCollector(func() *stats.Snapshot { return last }, inherited)
	err = c.write(part, expfmt.NewFormat(expfmt.TypeTextPlain))
	if err = errors.Join(err, part.Close(), os.Chmod(part.Name(), 0o644)); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

// pushTimeout bounds what the end of a run waits for.
const pushTimeout = 5 * time.Second

// Push sends the last figures to Prometheus' Pushgateway, in the group of a job of the program's name.
func Push(gateway, program string, last *stats.Snapshot, inherited bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), pushTimeout)
	defer cancel()
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	var body bytes.Buffer
	if err := newCollector(func() *stats.Snapshot { return last }, inherited).write(&body, format); err != nil {
		return err
	}
	group := strings.TrimSuffix(gateway, "/") + "/metrics/job/gpumemtop/run/" + url.QueryEscape(filepath.Base(program))
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, group, &body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", string(format))
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return brief(err)
	}
	defer reply.Body.Close()                                                          //nolint:errcheck // only read
	if reply.StatusCode == http.StatusOK || reply.StatusCode == http.StatusAccepted { // gateways differ
		return nil
	}
	why, _ := io.ReadAll(io.LimitReader(reply.Body, answerMax))
	return brief(fmt.Errorf("%s answers %s: %s", group, reply.Status, why))
}

// answerMax is how much is shown of what a server says.
const answerMax = 300 // bytes

// brief makes one short line of an error: a server may say anything.
func brief(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > answerMax {
		text = text[:answerMax] + "…"
	}
	return errors.New(units.Clean(text))
}
