package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// TestMonitoredRun is scraped while it lasts, and leaves its figures behind.
func TestMonitoredRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	socket := filepath.Join(folder, "s")
	exported := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		exported <- string(body)
	}))
	defer collector.Close()
	done := make(chan outcome, 1)
	go func() {
		done <- run(t, command{
			args: []string{gpumemtop(), "--headless", "--listen", "unix:" + socket, "--textfile", folder, "--otlp", collector.URL, "--label", "team=vision,tier=a", "--summary", filepath.Join(folder, "x.json"),
				"-o", filepath.Join(folder, "x.gmt"), example("pipeline"), "1500", "1M"},
			env: []string{"SLURM_JOB_ID=17", "SLURM_PROCID=3"},
		})
	}()
	metrics := scrapeUntil(t, socket, "metrics", `site="pipeline.c:`)
	for _, want := range []string{`gpumemtop_creates_total{`, `outcome="hit"`, `program="pipeline"`, `jobid="17"`, `rank="3"`, "gpumemtop_device_bytes", `label_team="vision"`, `status="-4"`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	p, err := profile.ParseData([]byte(scrapeUntil(t, socket, "debug/pprof/opencl", "")))
	if err != nil || len(p.Sample) == 0 {
		t.Errorf("%v, %v", err, p)
	}
	if text := scrapeUntil(t, socket, "summary.json", `"hits"`); !strings.HasPrefix(text, "{") {
		t.Errorf("%s", text)
	}
	result := <-done
	if result.code != 0 || !contains(result.stderr, "figures are at unix:"+socket) {
		t.Errorf("%s\n%s", result, result.stderr)
	}
	close(exported)
	if sent := <-exported; !strings.Contains(sent, "gpumemtop_creates") || !strings.Contains(sent, "label_team") {
		t.Errorf("the collector got %q", sent)
	}
	left, err := filepath.Glob(filepath.Join(folder, "gpumemtop.pipeline.*.prom"))
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	text, err := os.ReadFile(left[0])
	if err != nil || !contains(text, `gpumemtop_in_use_bytes{`) {
		t.Errorf("%v\n%s", err, text)
	}
	for name, args := range map[string][]string{"header": {"info", "x.gmt", "--format", "json"}, "report": {"report", "x.gmt", "--format", "json"}, "summary": nil} {
		text, err := os.ReadFile(filepath.Join(folder, "x.json"))
		if args != nil {
			r := run(t, command{dir: folder, args: append([]string{gpumemtop()}, args...)})
			text = r.stdout
		}
		if err != nil || !contains(text, `"team": "vision"`) || !contains(text, `"tier": "a"`) {
			t.Errorf("no labels in the %s: %v\n%.2000s", name, err, text)
		}
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left")
	}
}

// scrapeUntil asks a socket until the answer has a text.
func scrapeUntil(t *testing.T, socket, path, want string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	last := ""
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		reply, err := client.Get("http://gpumemtop/" + path)
		if err != nil {
			last = err.Error()
			continue
		}
		text, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		if last = string(text); err == nil && reply.StatusCode == http.StatusOK && strings.Contains(last, want) {
			return last
		}
	}
	t.Fatalf("/%s: no %s in %s", path, want, last)
	return ""
}
