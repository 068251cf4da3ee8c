package monitor

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// OTLPFromEnvironment is the address that leaves the endpoint to OpenTelemetry's own variables.
const OTLPFromEnvironment = "env"

// OTLP sends metrics to an OpenTelemetry collector, over HTTP, as often as OTEL_METRIC_EXPORT_INTERVAL says: each minute unless it
// is set. Endpoint, headers, certificates and attributes of the resource come from the standard variables, too.
type OTLP struct {
	provider *metric.MeterProvider
	last     atomic.Pointer[stats.Snapshot] // the last figures, nil before the end
}

// CheckOTLP refuses what is no address.
func CheckOTLP(address string) error {
	if address == OTLPFromEnvironment {
		return nil
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("bad value %q for --otlp: want a URL, for example http://127.0.0.1:4318, or env", address)
	}
	return nil
}

// StartOTLP begins to send. Nothing waits for the collector.
func StartOTLP(address, program string, source func() *stats.Snapshot, inherited bool) (*OTLP, error) {
	o := &OTLP{}
	otel.SetLogger(logr.Discard())                              // the terminal is the program's
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) // totals that did not arrive come again
	options := []otlpmetrichttp.Option{otlpmetrichttp.WithTimeout(pushTimeout), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{})}
	if address != OTLPFromEnvironment {
		u, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/metrics"
		}
		options = append(options, otlpmetrichttp.WithEndpointURL(u.String()))
	}
	ctx := context.Background()
	exporter, err := otlpmetrichttp.New(ctx, options...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", path.Base(program))),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	latest := func() *stats.Snapshot { return cmp.Or(o.last.Load(), source()) }
	bridge := &bridge{newCollector(latest, inherited), time.Now()}
	o.provider = metric.NewMeterProvider(metric.WithResource(about), metric.WithReader(metric.NewPeriodicReader(exporter, metric.WithProducer(bridge))))
	return o, nil
}

// Finish sends the last figures.
func (o *OTLP) Finish(last *stats.Snapshot) error {
	ctx, cancel := context.WithTimeout(context.Background(), pushTimeout)
	defer cancel()
	o.last.Store(last)
	err := o.provider.Shutdown(ctx)
	if err == nil {
		return nil
	}
	return brief(err)
}

// bridge gives Prometheus' metrics to OpenTelemetry.
type bridge struct {
	metrics *collector
	began   time.Time
}

// Produce implements metric.Producer.
func (b *bridge) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	families := b.metrics.collect()
	now := time.Now()
	metrics := make([]metricdata.Metrics, 0, len(families))
	for _, f := range families {
		// OpenTelemetry's names have no _total; what translates them for Prometheus adds it.
		m := metricdata.Metrics{Name: strings.TrimSuffix(f.GetName(), "_total"), Description: f.GetHelp(), Unit: unitOf(f.GetName())}
		points := b.points(f, now)
		if f.GetType() == dto.MetricType_COUNTER {
			m.Data = metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
		} else {
			m.Data = metricdata.Gauge[float64]{DataPoints: points}
		}
		metrics = append(metrics, m)
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: "gpumemtop"}, Metrics: metrics}}, nil
}

func (b *bridge) points(f *dto.MetricFamily, now time.Time) []metricdata.DataPoint[float64] {
	points := make([]metricdata.DataPoint[float64], 0, len(f.GetMetric()))
	for _, m := range f.GetMetric() {
		var attributes []attribute.KeyValue
		for _, l := range m.GetLabel() {
			if l.GetValue() != "" { // Prometheus takes an empty one for none
				attributes = append(attributes, attribute.String(l.GetName(), l.GetValue()))
			}
		}
		point := metricdata.DataPoint[float64]{Attributes: attribute.NewSet(attributes...), Time: now, Value: m.GetGauge().GetValue()}
		if f.GetType() == dto.MetricType_COUNTER {
			point.StartTime, point.Value = b.began, m.GetCounter().GetValue()
		}
		points = append(points, point)
	}
	return points
}

// unitOf returns the unit of a metric in UCUM, as far as its name says it.
func unitOf(name string) string {
	switch {
	case strings.Contains(name, "_bytes"):
		return "By"
	case strings.Contains(name, "_seconds"):
		return "s"
	}
	return ""
}
