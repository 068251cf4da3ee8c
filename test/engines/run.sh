#!/bin/bash
# Shows what programs leave to engines that people run: Prometheus scrapes, promtool checks the page and the alert rules, the
# Pushgateway, node_exporter and an OpenTelemetry collector take last figures, VictoriaMetrics reads the page with a parser of its own, and
# Polars asks a lake.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d)
jobs_=()
cleanup() {
	kill "${jobs_[@]}" 2>/dev/null || true # some have ended
	rm -rf "$work"
}
trap cleanup EXIT
export OCL_ICD_VENDORS=${OCL_ICD_VENDORS:-/etc/OpenCL/vendors/pocl.icd}

start() { # NAME COMMAND...
	local name=$1
	shift
	"$@" >"$work/$name.log" 2>&1 &
	jobs_+=($!)
}

# until_ok TEXT URL...: asks until the answer has a text, 60 s at most.
until_ok() {
	local text=$1
	shift
	for _ in $(seq 600); do
		if curl -sfG "$@" >"$work/answer" 2>/dev/null && grep -qF -- "$text" "$work/answer"; then
			return
		fi
		sleep 0.1
	done
	echo "no '$text' from $*:" >&2
	head -c 2000 "$work/answer" >&2
	exit 1
}

# logged TEXT: waits until the collector has written a text, 20 s at most.
logged() {
	for _ in $(seq 200); do
		if grep -qF -- "$1" "$work/collector.log"; then
			return
		fi
		sleep 0.1
	done
	echo "the collector did not write '$1':" >&2
	tail -n 40 "$work/collector.log" >&2
	exit 1
}

cat >"$work/prometheus.yml" <<EOF
global: {scrape_interval: 1s}
rule_files: [$root/monitoring/alerts.yml]
scrape_configs: [{job_name: gpumemtop, static_configs: [{targets: ["127.0.0.1:19400"]}]}]
EOF
mkdir "$work/text"
start prometheus prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/tsdb" --web.listen-address=127.0.0.1:19090
start pushgateway prometheus-pushgateway --web.listen-address=127.0.0.1:19091
start node prometheus-node-exporter --web.listen-address=127.0.0.1:19100 --collector.disable-defaults --collector.textfile --collector.textfile.directory="$work/text"
start victoria victoria-metrics -storageDataPath="$work/vm" -httpListenAddr=127.0.0.1:18428 -promscrape.config="$work/prometheus.yml" -promscrape.config.strictParse=false \
	-search.latencyOffset=1s # by default queries see what is 30 s old
until_ok "" http://127.0.0.1:19091/-/ready

(cd internal/testkit/collector && ${GO:-go} build -trimpath -o "$work/collector" .)
start collector "$work/collector" --config="yaml:
receivers: {otlp: {protocols: {http: {endpoint: '127.0.0.1:14318'}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [otlp], exporters: [debug]}}"
logged "Everything is ready"

start program bin/gpumemtop --headless --listen 19400 --label team=vision --textfile "$work/text" --push http://127.0.0.1:19091 \
	--otlp http://127.0.0.1:14318 bin/examples/pipeline 20000 256K
program=$!
until_ok gpumemtop_in_use_bytes http://127.0.0.1:19400/metrics
promtool check metrics <"$work/answer"
promtool check rules monitoring/alerts.yml
promtool test rules monitoring/alerts_test.yml
until_ok '"program":"pipeline"' http://127.0.0.1:19090/api/v1/query --data-urlencode 'query=gpumemtop_creates_total{outcome="hit"} > 0'
echo "Prometheus scraped $(tr ',' '\n' <"$work/answer" | grep -c '"__name__"') series"
until_ok '"label_team":"vision"' http://127.0.0.1:18428/api/v1/query --data-urlencode 'query=gpumemtop_run_info'
echo "VictoriaMetrics has $(cat "$work/answer")"
kill "$program" 2>/dev/null || true # it may have ended by itself
wait "$program" || true # with the signal's status; what it leaves behind counts
until_ok gpumemtop_peak_in_use_bytes http://127.0.0.1:19091/metrics
until_ok gpumemtop_peak_in_use_bytes http://127.0.0.1:19100/metrics
echo "The Pushgateway and node_exporter have the last figures"
for text in "service.name: Str(pipeline)" "Name: gpumemtop_in_use_bytes" "label_team: Str(vision)"; do
	logged "$text"
done
echo "The OpenTelemetry collector has $(grep -c '^Metric #' "$work/collector.log") metrics"

npm install --silent --no-audit --no-fund --prefix "$work/polars" nodejs-polars@0.26.1 nodejs-polars-linux-x64-gnu@0.26.1
(cd internal/testkit/duckdb && POLARS=$work/polars ${GO:-go} test -run '^TestFleet$' -count=1 -v .)
