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
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

func newCollector(source func() *stats.Snapshot, run Run) *collector {
	return &collector{source: source, run: run, series: map[uint32][]string{}}
}

// negotiateFormat returns the format that a client wants.
func negotiateFormat(header http.Header) expfmt.Format {
	return expfmt.NegotiateAccept(header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
}

func (c *collector) writeMetrics(w io.Writer, format expfmt.Format) error {
	return encodeFamilies(w, format, c.collectMetrics())
}

func encodeFamilies(w io.Writer, format expfmt.Format, families []*dto.MetricFamily) error {
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

// textfileAge is the age at which figures of a program's earlier run are removed.
const textfileAge = 24 * time.Hour

// WriteTextfile writes the last figures into a folder for Prometheus' node_exporter, into a file with a name of its own that
// appears when it is complete. It removes old figures of the program.
func WriteTextfile(folder string, pid int, last *stats.Snapshot, run Run) error {
	name := "gpumemtop." + filepath.Base(run.Program) + "."
	path := filepath.Join(folder, name+strconv.Itoa(pid)+".prom")
	files, _ := os.ReadDir(folder) // after an error, writing fails, too
	for _, f := range files {
		middle, ours := strings.CutPrefix(f.Name(), name)
		middle, whole := strings.CutSuffix(middle, ".prom")
		if _, err := strconv.Atoi(middle); err != nil || !ours || !whole {
			continue
		}
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > textfileAge {
			_ = os.Remove(filepath.Join(folder, f.Name())) // fails if another run has done so
		}
	}
	part, err := os.CreateTemp(folder, filepath.Base(path)) // node_exporter ignores files with other endings
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // without effect after the rename
	c := newCollector(func() *stats.Snapshot { return last }, run)
	err = c.writeMetrics(part, expfmt.NewFormat(expfmt.TypeTextPlain))
	if err = errors.Join(err, part.Close(), os.Chmod(part.Name(), 0o644)); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

// pushTimeout bounds the wait at the end of a run.
const pushTimeout = 5 * time.Second

// PushToGateway sends the last figures to Prometheus' Pushgateway. Each process has a group of its own, by program, host, pid and rank;
// the figures of the run are in the group of this session.
func PushToGateway(gateway string, last *stats.Snapshot, run Run) error {
	ctx, cancel := context.WithTimeout(context.Background(), pushTimeout)
	defer cancel()
	host, _ := os.Hostname() // without a name, groups lack the host
	var first error
	newCollector(func() *stats.Snapshot { return last }, run).visitProcessesAndRun(func(s *stats.Snapshot, p *stats.Process, labels []string) {
		out := exposition{}
		out.addProcessMetrics(s, p, labels)
		group := "/metrics/job/gpumemtop"
		for _, key := range [][2]string{{"run", labels[0]}, {"host", host}, {"pid", labels[1]}, {"rank", labels[slices.Index(labelNames, "rank")]}} {
			if key[1] != "" {
				group += "/" + key[0] + "/" + url.QueryEscape(key[1])
			}
		}
		if p == nil {
			group += "/session/" + strconv.Itoa(os.Getpid())
		}
		if first == nil {
			first = replaceGatewayGroup(ctx, strings.TrimSuffix(gateway, "/")+group, out.sortedFamilies())
		}
	})
	return first
}

func replaceGatewayGroup(ctx context.Context, group string, families []*dto.MetricFamily) error {
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	var body bytes.Buffer
	if err := encodeFamilies(&body, format, families); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, group, &body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", string(format))
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return shortenError(err)
	}
	defer reply.Body.Close()                                                          //nolint:errcheck // only read
	if reply.StatusCode == http.StatusOK || reply.StatusCode == http.StatusAccepted { // gateways differ
		return nil
	}
	why, _ := io.ReadAll(io.LimitReader(reply.Body, answerMax))
	return shortenError(fmt.Errorf("%s answers %s: %s", group, reply.Status, why))
}

// answerMax bounds the part of a server's answer that is shown.
const answerMax = 300 // bytes

// shortenError makes one short line of an error, which may contain any text of a server.
func shortenError(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > answerMax {
		text = text[:answerMax] + "…"
	}
	return errors.New(units.Clean(text))
}
