package monitor

import (
	"compress/gzip"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// receiver is a collector as far as it takes metrics.
type receiver struct {
	*httptest.Server
	requests chan *metrics.MetricsData
	header   atomic.Value // of the latest
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{requests: make(chan *metrics.MetricsData, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var request metrics.MetricsData
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || q.URL.Path != "/v1/metrics" {
			t.Errorf("%s: %v", q.URL, err)
		}
		r.header.Store(q.Header)
		r.requests <- &request
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

// TestOTLP decodes what is sent while a program runs, and at the end.
func TestOTLP(t *testing.T) {
	r := receive(t)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-scope=gpu")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=lab")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	for _, address := range []string{r.URL, OTLPFromEnvironment} {
		if err := CheckOTLPAddress(address); err != nil {
			t.Fatal(err)
		}
		shown := snapshot(2, 3)
		o, err := StartOTLP(address, func() *stats.Snapshot { return shown }, Run{Version: "abc"})
		if err != nil {
			t.Fatal(err)
		}
		<-r.requests
		last := snapshot(2, 3)
		last.Processes[0].Totals.InUse = 4711
		if err := o.SendLastFigures(last); err != nil {
			t.Error(err)
		}
		var final *metrics.MetricsData
		for len(r.requests) > 0 {
			final = <-r.requests
		}
		if header, _ := r.header.Load().(http.Header); header.Get("x-scope") != "gpu" {
			t.Errorf("headers %v", header)
		}
		checkOTLP(t, final)
	}
}

// checkOTLP wants two processes, each a resource, and one for what they have in common.
func checkOTLP(t *testing.T, request *metrics.MetricsData) {
	t.Helper()
	if request == nil || len(request.ResourceMetrics) != 3 {
		t.Fatalf("%v", request)
	}
	found, instances := 0, map[string]bool{}
	for i, r := range request.ResourceMetrics {
		about := map[string]string{}
		for _, a := range r.Resource.Attributes {
			about[a.Key] = a.Value.GetStringValue()
			if a.Key == "process.pid" {
				about[a.Key] = strconv.FormatInt(a.Value.GetIntValue(), 10)
			}
		}
		instances[about["service.instance.id"]] = true
		host, _ := os.Hostname()
		if about["service.name"] != "blur" || about["deployment.environment"] != "lab" || about["host.name"] != host || about["service.version"] != "abc" ||
			i < 2 && about["process.pid"] != strconv.Itoa(1<<30+1-i) || i == 2 && about["process.pid"] != "" {
			t.Errorf("resource %d: %v", i, about)
		}
		for _, m := range r.ScopeMetrics[0].Metrics {
			switch m.Name {
			case "gpumemtop_in_use_bytes":
				found++
				if points := m.GetGauge().GetDataPoints(); m.Unit != "By" || len(points) != 1 || points[0].GetAsDouble() != []float64{101, 4711}[i] {
					t.Errorf("%v", m)
				}
			case "gpumemtop_creates":
				found++
				sum := m.GetSum()
				if !sum.GetIsMonotonic() || len(sum.GetDataPoints()) != 4 || sum.DataPoints[0].StartTimeUnixNano == 0 || !strings.Contains(m.String(), `"outcome"`) {
					t.Errorf("%v", m)
				}
			case "gpumemtop_run_info":
				found++
				if !strings.Contains(m.String(), "label_team") {
					t.Errorf("%v", m)
				}
			}
			if strings.HasSuffix(m.Name, "_total") || !strings.HasPrefix(m.Name, "gpumemtop_") {
				t.Errorf("name %s", m.Name)
			}
		}
	}
	if found != 5 || len(instances) != 3 {
		t.Errorf("%d of 5 metrics, %d of 3 instances", found, len(instances))
	}
}

// TestOTLPWithoutCollector: one that is absent, refuses or stands still costs a bounded time at the end, and gives one line.
func TestOTLPWithoutCollector(t *testing.T) {
	still := make(chan struct{})
	defer close(still)
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-still }))
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\nmore", http.StatusForbidden) }))
	defer refusing.Close()
	defer slow.CloseClientConnections()
	absent := httptest.NewServer(nil)
	absent.Close()
	pushed := make(chan time.Duration) // meanwhile: both wait for the same time
	go func() {
		began := time.Now()
		if err := PushToGateway(slow.URL, snapshot(1, 1), Run{}); err == nil {
			t.Error("a gateway that does not answer has the figures")
		}
		pushed <- time.Since(began)
	}()
	defer func() {
		if took := <-pushed; took > pushTimeout+2*time.Second {
			t.Errorf("the Pushgateway: after %v", took)
		}
	}()
	if err := PushToGateway(absent.URL, snapshot(1, 1), Run{}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("no gateway: %v", err)
	}
	for _, url := range []string{absent.URL, refusing.URL, slow.URL} {
		began := time.Now()
		o, err := StartOTLP(url, func() *stats.Snapshot { return nil }, Run{Version: "abc"})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: the start took %v", url, took)
		}
		err = o.SendLastFigures(snapshot(1, 1))
		if took := time.Since(began); err == nil || strings.Contains(err.Error(), "\n") || took > pushTimeout+2*time.Second {
			t.Errorf("%s: %v after %v", url, err, took)
		}
	}
	for _, bad := range []string{"", "127.0.0.1:4318", "ftp://a", "http://", "http://%zz"} {
		if CheckOTLPAddress(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestOTLPSettings: the specification's variables say where, with what and how.
func TestOTLPSettings(t *testing.T) {
	for _, test := range []struct{ address, all, own, want string }{
		{"http://a:1", "http://b:2", "http://c:3/own", "http://a:1/v1/metrics"},
		{"http://a:1/in", "", "", "http://a:1/in"},
		{"env", "", "", "http://localhost:4318/v1/metrics"},
		{"env", "http://b:2", "", "http://b:2/v1/metrics"},
		{"env", "http://b:2/base/", "", "http://b:2/base/v1/metrics"},
		{"env", "http://b:2", "https://c:3/own", "https://c:3/own"},
		{"env", "b:2", "", ""},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", test.all)
		t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", test.own)
		s, err := readOTLPSettings(test.address)
		if (err == nil) != (test.want != "") || err == nil && s.endpoint != test.want {
			t.Errorf("%+v: %s, %v", test, s.endpoint, err)
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1, b = x%20y ,nothing,=2")
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "gzip")
	s, err := readOTLPSettings("http://a")
	if err != nil || s.interval != time.Minute || !s.gzip || s.header.Get("a") != "1" || s.header.Get("B") != "x y" || len(s.header) != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,b=2")
	if got := describeResource("blur", "", nil).String(); !strings.Contains(got, "mine") || strings.Contains(got, "blur") {
		t.Error(got)
	}
	for name, text := range map[string]string{"absent": "", "no.pem": "no certificate"} {
		path := filepath.Join(t.TempDir(), name)
		if text != "" && os.WriteFile(path, []byte(text), 0o600) != nil {
			t.Fatal("cannot write")
		}
		t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", path)
		if _, err := readOTLPSettings("http://a"); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_CERTIFICATE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOTLPPacked sends over TLS, packed, to a server whose certificate a variable names.
func TestOTLPPacked(t *testing.T) {
	took := make(chan int, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		unpacked, err := gzip.NewReader(q.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(unpacked)
		var data metrics.MetricsData
		if err != nil || proto.Unmarshal(body, &data) != nil {
			t.Errorf("%q, %v", body, err)
		}
		took <- len(data.ResourceMetrics)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", path)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	o, err := StartOTLP(server.URL, func() *stats.Snapshot { return nil }, Run{Version: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.SendLastFigures(snapshot(1, 1)); err != nil || <-took != 2 {
		t.Error(err)
	}
}
