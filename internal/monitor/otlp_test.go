package monitor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// receiver is a collector as far as it takes metrics.
type receiver struct {
	*httptest.Server
	requests chan *metricspb.ExportMetricsServiceRequest
	header   atomic.Value // of the latest
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{requests: make(chan *metricspb.ExportMetricsServiceRequest, 100)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		var request metricspb.ExportMetricsServiceRequest
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
		if err := CheckOTLP(address); err != nil {
			t.Fatal(err)
		}
		shown := snapshot(2, 3)
		o, err := StartOTLP(address, "/opt/blur", func() *stats.Snapshot { return shown }, false)
		if err != nil {
			t.Fatal(err)
		}
		<-r.requests
		last := snapshot(2, 3)
		last.Processes[0].Totals.InUse = 4711
		if err := o.Finish(last); err != nil {
			t.Error(err)
		}
		var final *metricspb.ExportMetricsServiceRequest
		for len(r.requests) > 0 {
			final = <-r.requests
		}
		if header, _ := r.header.Load().(http.Header); header.Get("x-scope") != "gpu" {
			t.Errorf("headers %v", header)
		}
		checkOTLP(t, final)
	}
}

func checkOTLP(t *testing.T, request *metricspb.ExportMetricsServiceRequest) {
	t.Helper()
	if request == nil || len(request.ResourceMetrics) != 1 || len(request.ResourceMetrics[0].ScopeMetrics) != 1 {
		t.Fatalf("%v", request)
	}
	about := request.ResourceMetrics[0].Resource.String()
	for _, want := range []string{"blur", "deployment.environment", "lab"} {
		if !strings.Contains(about, want) {
			t.Errorf("no %s in the resource %s", want, about)
		}
	}
	found := 0
	for _, m := range request.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		switch m.Name {
		case "gpumemtop_in_use_bytes":
			found++
			if points := m.GetGauge().GetDataPoints(); m.Unit != "By" || len(points) != 2 || points[0].GetAsDouble() != 4711 {
				t.Errorf("%v", m)
			}
		case "gpumemtop_creates":
			found++
			sum := m.GetSum()
			if !sum.GetIsMonotonic() || len(sum.GetDataPoints()) != 8 || sum.DataPoints[0].StartTimeUnixNano == 0 || !strings.Contains(m.String(), `"outcome"`) {
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
	if found != 3 {
		t.Errorf("%d of 3 metrics", found)
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
		if err := Push(slow.URL, "blur", snapshot(1, 1), false); err == nil {
			t.Error("a gateway that does not answer has the figures")
		}
		pushed <- time.Since(began)
	}()
	defer func() {
		if took := <-pushed; took > pushTimeout+2*time.Second {
			t.Errorf("the Pushgateway: after %v", took)
		}
	}()
	if err := Push(absent.URL, "blur", snapshot(1, 1), false); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("no gateway: %v", err)
	}
	for _, url := range []string{absent.URL, refusing.URL, slow.URL} {
		began := time.Now()
		o, err := StartOTLP(url, "blur", func() *stats.Snapshot { return nil }, false)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: the start took %v", url, took)
		}
		err = o.Finish(snapshot(1, 1))
		if took := time.Since(began); err == nil || strings.Contains(err.Error(), "\n") || took > pushTimeout+2*time.Second {
			t.Errorf("%s: %v after %v", url, err, took)
		}
	}
	for _, bad := range []string{"", "127.0.0.1:4318", "ftp://a", "http://", "http://%zz"} {
		if CheckOTLP(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
