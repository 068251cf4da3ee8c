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

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// WriteTextfile writes the last figures into a folder for Prometheus' node_exporter, whole and under a name of its own.
func WriteTextfile(folder, program string, pid int, last *stats.Snapshot, inherited bool) error {
	path := filepath.Join(folder, "gpumemtop."+filepath.Base(program)+"."+strconv.Itoa(pid)+".prom")
	f, err := os.CreateTemp(folder, filepath.Base(path)) // node_exporter reads no other names than *.prom
	if err != nil {
		return err
	}
	err = errors.Join(newCollector(inherited).collect(last).write(f, textForm), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// pushTimeout bounds what the end of a run waits for.
const pushTimeout = 5 * time.Second

// Push sends the last figures to Prometheus' Pushgateway, in the group of a job of the program's name.
func Push(to, program string, last *stats.Snapshot, inherited bool) error {
	var b bytes.Buffer
	if err := newCollector(inherited).collect(last).write(&b, textForm); err != nil {
		return err
	}
	if !strings.Contains(to, "://") {
		to = "http://" + to
	}
	to = strings.TrimSuffix(to, "/") + "/metrics/job/gpumemtop/run/" + url.PathEscape(filepath.Base(program))
	ctx, cancel := context.WithTimeout(context.Background(), pushTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, to, &b) // which replaces what was there
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", textForm)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if answer.StatusCode/100 != 2 {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return fmt.Errorf("%s answers %s: %s", to, answer.Status, bytes.Join(bytes.Fields(why), []byte(" ")))
	}
	return nil
}
