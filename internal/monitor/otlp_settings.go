package monitor

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// otlpSettings say where to send metrics, by OpenTelemetry's variables ("OpenTelemetry Protocol Exporter" and "Environment
// Variable Specification", version 1.50 of the specification).
type otlpSettings struct {
	endpoint string
	header   http.Header
	client   *http.Client
	gzip     bool
	interval time.Duration
}

// otlpVariableValue returns the value of an exporter's variable for metrics, or else that for all signals.
func otlpVariableValue(name string) string {
	return strings.TrimSpace(cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name)))
}

// readOTLPSettings reads the settings from address and environment. An error names the variable.
func readOTLPSettings(address string) (s otlpSettings, err error) {
	if s.endpoint, err = otlpEndpoint(address); err != nil {
		return s, err
	}
	s.header = http.Header{}
	for key, value := range parsePairList(otlpVariableValue("HEADERS")) {
		s.header.Set(key, value)
	}
	s.header.Set("Content-Type", "application/x-protobuf")
	if s.gzip = otlpVariableValue("COMPRESSION") == "gzip"; s.gzip {
		s.header.Set("Content-Encoding", "gzip")
	}
	s.interval = time.Minute
	if ms, err := strconv.ParseUint(os.Getenv("OTEL_METRIC_EXPORT_INTERVAL"), 10, 31); err == nil && ms > 0 {
		s.interval = time.Duration(ms) * time.Millisecond
	}
	s.client, err = otlpClient()
	return s, err
}

// otlpEndpoint returns the URL that takes metrics.
func otlpEndpoint(address string) (string, error) {
	own := os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
	base := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), "http://localhost:4318")
	if address != OTLPFromEnvironment {
		own, base = "", address
	}
	u, err := url.Parse(cmp.Or(own, base))
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("bad endpoint %q for metrics in OTEL_EXPORTER_OTLP_ENDPOINT: want a URL, for example http://127.0.0.1:4318", cmp.Or(own, base))
	}
	switch {
	case own != "": // used unchanged
	case address == OTLPFromEnvironment:
		u = u.JoinPath("v1/metrics")
	case u.Path == "" || u.Path == "/":
		u.Path = "/v1/metrics"
	}
	return u.String(), nil
}

// otlpClient returns a client that trusts and presents the certificates in the variables.
func otlpClient() (*http.Client, error) {
	ca, certificate, key := otlpVariableValue("CERTIFICATE"), otlpVariableValue("CLIENT_CERTIFICATE"), otlpVariableValue("CLIENT_KEY")
	if ca == "" && certificate == "" {
		return http.DefaultClient, nil
	}
	t := &tls.Config{}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: no certificate in %s", ca)
		}
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: t, ForceAttemptHTTP2: true}}, nil
}

// describeResource describes a process, or the run (nil), by OpenTelemetry's conventions.
func describeResource(program, version string, p *stats.Process) *resource.Resource {
	host, _ := os.Hostname() // without a name, it is left out
	instance := []any{host, os.Getpid()}
	known := parsePairList(os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	known["service.name"] = cmp.Or(os.Getenv("OTEL_SERVICE_NAME"), known["service.name"], program)
	ours := map[string]string{"host.name": host, "service.version": version}
	r := &resource.Resource{}
	if p != nil {
		ours["container.id"], ours["k8s.pod.uid"] = p.Place.Container, p.Place.Pod
		ours["service.version"] = cmp.Or(version, p.Place.Build)
		instance = []any{host, p.PID, p.Place.Born, p.Number, p.Started}
		pid := &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: int64(p.PID)}}
		r.Attributes = append(r.Attributes, &common.KeyValue{Key: "process.pid", Value: pid})
	}
	sum := sha256.Sum256(fmt.Append(nil, instance...))
	ours["service.instance.id"] = hex.EncodeToString(sum[:16])
	for key, value := range ours {
		known[key] = cmp.Or(known[key], value)
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		if known[key] != "" {
			r.Attributes = append(r.Attributes, newAttribute(key, known[key]))
		}
	}
	return r
}

// parsePairList reads a list such as "a=1,b=x%20y", and skips elements that are no pairs.
func parsePairList(list string) map[string]string {
	found := map[string]string{}
	for part := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(part, "=")
		if key = strings.TrimSpace(key); !ok || key == "" {
			continue
		}
		value = strings.TrimSpace(value)
		if text, err := url.PathUnescape(value); err == nil {
			value = text
		}
		found[key] = value
	}
	return found
}
