package monitor

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// OTLPFromEnvironment as an address means that OpenTelemetry's variables name the endpoint.
const OTLPFromEnvironment = "env"

// OTLP sends metrics to an OpenTelemetry collector over HTTP, at the interval of OTEL_METRIC_EXPORT_INTERVAL, by default each
// minute. Endpoint, headers, certificates, compression and attributes of the resource come from the standard variables, too.
// It sends the protocol's messages without OpenTelemetry's exporter, which links all of gRPC.
type OTLP struct {
	settings otlpSettings
	metrics  *collector
	began    time.Time
	last     *stats.Snapshot // the last figures, nil before the end; set when the goroutine has ended
	stop     context.CancelFunc
	stopped  chan struct{}
}

// CheckOTLPAddress returns an error for a text that is no address.
func CheckOTLPAddress(address string) error {
	if address == OTLPFromEnvironment {
		return nil
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("bad value %q for --otlp: want a URL, for example http://127.0.0.1:4318, or env", address)
	}
	return nil
}

// StartOTLP begins to send. Nothing waits for the collector.
func StartOTLP(address string, source func() *stats.Snapshot, run Run) (*OTLP, error) {
	settings, err := readOTLPSettings(address)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	o := &OTLP{settings: settings, began: time.Now(), stop: stop, stopped: make(chan struct{})}
	o.metrics = newCollector(func() *stats.Snapshot { return cmp.Or(o.last, source()) }, run)
	go o.sendRepeatedly(ctx)
	return o, nil
}

// sendRepeatedly sends once in each interval. After a failure nothing is sent again, because later totals include earlier ones.
func (o *OTLP) sendRepeatedly(ctx context.Context) {
	defer close(o.stopped)
	turn := time.NewTicker(o.settings.interval)
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-turn.C:
			_ = o.sendFigures(ctx) // errors would disturb the program's terminal; Finish reports the last one
		}
	}
}

// SendLastFigures sends the last figures.
func (o *OTLP) SendLastFigures(last *stats.Snapshot) error {
	o.stop()
	<-o.stopped
	o.last = last
	if err := o.sendFigures(context.Background()); err != nil {
		return shortenError(err)
	}
	return nil
}

// sendFigures posts the present figures and waits for the answer, at most for pushTimeout.
func (o *OTLP) sendFigures(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	body, err := proto.Marshal(o.messageFromMetrics(time.Now()))
	if err != nil {
		return err
	}
	if o.settings.gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // into memory
		_ = w.Close()
		body = packed.Bytes()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.settings.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = o.settings.header.Clone()
	reply, err := o.settings.client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close() //nolint:errcheck // only read
	why, _ := io.ReadAll(io.LimitReader(reply.Body, answerMax))
	if reply.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s: %s", o.settings.endpoint, reply.Status, why)
	}
	return nil
}

// messageFromMetrics gives Prometheus' metrics to OpenTelemetry, each process as a resource. Its wire form is that of an
// ExportMetricsServiceRequest, whose package brings gRPC.
func (o *OTLP) messageFromMetrics(now time.Time) *metrics.MetricsData {
	data := &metrics.MetricsData{}
	o.metrics.visitProcessesAndRun(func(s *stats.Snapshot, p *stats.Process, labels []string) {
		out := exposition{}
		out.addProcessMetrics(s, p, labels)
		var list []*metrics.Metric
		for _, f := range out.sortedFamilies() {
			list = append(list, o.convertFamily(f, now))
		}
		scope := &metrics.ScopeMetrics{Scope: &common.InstrumentationScope{Name: "gpumemtop"}, Metrics: list}
		who := describeResource(labels[0], o.metrics.run.Version, p)
		data.ResourceMetrics = append(data.ResourceMetrics, &metrics.ResourceMetrics{Resource: who, ScopeMetrics: []*metrics.ScopeMetrics{scope}})
	})
	return data
}

func (o *OTLP) convertFamily(f *dto.MetricFamily, now time.Time) *metrics.Metric {
	// OpenTelemetry's names have no _total; translators to Prometheus add it.
	m := &metrics.Metric{Name: strings.TrimSuffix(f.GetName(), "_total"), Description: f.GetHelp(), Unit: unitOfMetric(f.GetName())}
	points := o.dataPoints(f, now)
	if f.GetType() == dto.MetricType_COUNTER {
		m.Data = &metrics.Metric_Sum{Sum: &metrics.Sum{
			DataPoints: points, IsMonotonic: true, AggregationTemporality: metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE,
		}}
	} else {
		m.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: points}}
	}
	return m
}

func (o *OTLP) dataPoints(f *dto.MetricFamily, now time.Time) []*metrics.NumberDataPoint {
	points := make([]*metrics.NumberDataPoint, 0, len(f.GetMetric()))
	for _, m := range f.GetMetric() {
		value := m.GetGauge().GetValue()
		point := &metrics.NumberDataPoint{TimeUnixNano: uint64(now.UnixNano())}
		if f.GetType() == dto.MetricType_COUNTER {
			point.StartTimeUnixNano, value = uint64(o.began.UnixNano()), m.GetCounter().GetValue()
		}
		point.Value = &metrics.NumberDataPoint_AsDouble{AsDouble: value}
		for _, l := range m.GetLabel() {
			if l.GetValue() != "" { // an empty label counts as none
				point.Attributes = append(point.Attributes, newAttribute(l.GetName(), l.GetValue()))
			}
		}
		points = append(points, point)
	}
	return points
}

func newAttribute(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

// unitOfMetric returns the unit of a metric in UCUM, from its name.
func unitOfMetric(name string) string {
	switch {
	case strings.Contains(name, "_bytes"):
		return "By"
	case strings.Contains(name, "_seconds"):
		return "s"
	}
	return ""
}
