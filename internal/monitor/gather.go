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

// negotiate returns the form that a client wants.
func negotiate(header http.Header) expfmt.Format {
	return expfmt.NegotiateAccept(header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
}

func (c *collector) write(w io.Writer, format expfmt.Format) error {
	return encode(w, format, c.collect())
}

func encode(w io.Writer, format expfmt.Format, families []*dto.MetricFamily) error {
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

// textfileAge is how old the figures of an earlier run of a program get.
const textfileAge = 24 * time.Hour

// WriteTextfile writes the last figures into a folder for Prometheus' node_exporter, whole and under a name of its own. Old figures of
// the program go.
func WriteTextfile(folder string, pid int, last *stats.Snapshot, run Run) error {
	name := "gpumemtop." + filepath.Base(run.Program) + "."
	path := filepath.Join(folder, name+strconv.Itoa(pid)+".prom")
	files, _ := os.ReadDir(folder) // else nothing can be written, either
	for _, f := range files {
		middle, ours := strings.CutPrefix(f.Name(), name)
		middle, whole := strings.CutSuffix(middle, ".prom")
		if _, err := strconv.Atoi(middle); err != nil || !ours || !whole {
			continue
		}
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > textfileAge {
			_ = os.Remove(filepath.Join(folder, f.Name())) // another run may have done so
		}
	}
	part, err := os.CreateTemp(folder, filepath.Base(path)) // node_exporter passes over other endings
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // without effect once it has its name
	c := newCollector(func() *stats.Snapshot { return last }, run)
	err = c.write(part, expfmt.NewFormat(expfmt.TypeTextPlain))
	if err = errors.Join(err, part.Close(), os.Chmod(part.Name(), 0o644)); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

// pushTimeout bounds what the end of a run waits for.
const pushTimeout = 5 * time.Second

// Push sends the last figures to Prometheus' Pushgateway, each process in a group of its own: of the program, host, pid and rank. What
// all have in common is in the group of this session.
func Push(gateway string, last *stats.Snapshot, run Run) error {
	ctx, cancel := context.WithTimeout(context.Background(), pushTimeout)
	defer cancel()
	host, _ := os.Hostname() // else there is no group for it
	var first error
	newCollector(func() *stats.Snapshot { return last }, run).each(func(s *stats.Snapshot, p *stats.Process, labels []string) {
		out := exposition{}
		out.addPart(s, p, labels)
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
			first = replaceGroup(ctx, strings.TrimSuffix(gateway, "/")+group, out.sorted())
		}
	})
	return first
}

// replaceGroup replaces a group.
func replaceGroup(ctx context.Context, group string, families []*dto.MetricFamily) error {
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	var body bytes.Buffer
	if err := encode(&body, format, families); err != nil {
		return err
	}
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
