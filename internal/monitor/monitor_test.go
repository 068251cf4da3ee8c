package monitor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// snapshot returns one of several processes and call sites.
func snapshot(processes, sites int) *stats.Snapshot {
	s := &stats.Snapshot{Program: "/opt/blur", Device: stats.Device{Name: "a \"card\"\x1b[2J", Global: 1 << 30}, Lost: 3, Beyond: 11, Nameless: 12, Time: 5e9}
	for i := range processes {
		s.Processes = append(s.Processes, stats.Process{Number: uint32(i) + 1, PID: 1<<30 + i, Device: "a \"card\"\x1b[2J", Program: "/opt/blur", Totals: stats.Totals{
			InUse: uint64(100 + i), Requested: 90, Cached: 7, Cooling: 1, Hits: 5, Misses: 2, Unpooled: 1, Creates: 9, DriverNS: 2e9,
			Failures: 6, FailedWith: [stats.StatusesMax]stats.StatusCount{{Status: -4, Count: 3}, {Status: -1000, Count: 2}},
		}})
	}
	for i := range sites {
		s.Tags = append(s.Tags, stats.Tag{
			ID: uint32(i), Name: fmt.Sprintf("blur.c:%d f\n", i), InUse: uint64(i) << 20, Live: 2, Creates: 4, PeakInUse: uint64(i) << 21,
			Stack: []string{fmt.Sprintf("blur.c:%d f", i), "main.c:1 main"},
		})
	}
	s.Labels = map[string]string{"team": "vi\"sion"}
	s.Findings = []stats.Finding{{Kind: wire.DiagDoubleRelease, Count: 2}, {Kind: wire.DiagDoubleRelease, Count: 1}}
	return s
}

// serve starts a server over a snapshot that can be replaced.
func serve(t *testing.T, address string, s *stats.Snapshot) (*Server, *atomic.Pointer[stats.Snapshot]) {
	t.Helper()
	server, err := Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	var now atomic.Pointer[stats.Snapshot]
	now.Store(s)
	server.StartAnswering(now.Load, Run{}, func(s *stats.Snapshot, w io.Writer) error {
		_, err := fmt.Fprintf(w, `{"lost_events": %d}`, s.Lost)
		return err
	})
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, &now
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	reply, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := reply.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// families reads metrics as Prometheus does.
func families(t *testing.T, text string) map[string]int {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	counts := map[string]int{}
	for name, f := range parsed {
		counts[name] = len(f.GetMetric())
	}
	return counts
}

func TestMetrics(t *testing.T) {
	server, _ := serve(t, "0", snapshot(2, 3))
	code, text := get(t, http.DefaultClient, server.Address()+"metrics")
	counts := families(t, text)
	if code != 200 || counts["gpumemtop_in_use_bytes"] != 2 || counts["gpumemtop_creates_total"] != 8 || counts["gpumemtop_site_in_use_bytes"] != 2 {
		t.Errorf("%d, %v", code, counts)
	}
	for _, want := range []string{
		`gpumemtop_reserved_bytes{container="",device="a \"card\" [2J"`, `outcome="hit",pid="1073741824",pod="",program="blur",rank="",step=""} 5`,
		`outcome="other",pid="1073741825",pod="",program="blur",rank="",step=""} 1`, `kind="double release"`, "} 3\n", "gpumemtop_driver_seconds_total",
		`rank="",status="-4",step=""} 3`, `rank="",status="-1000",step=""} 2`, `rank="",status="other",step=""} 1`, `rank="",status="-6",step=""} 0`,
		`label_team="vi\"sion"`, `gpumemtop_left_out_total{container="",device="",jobid="",kind="creates",pid="",pod="",program="blur",rank="",step=""} 11`,
		`kind="files",pid="",pod="",program="blur",rank="",step=""} 12`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if counts["gpumemtop_peak_released_in_flight_bytes"] != 0 {
		t.Error("released in flight, though no command was seen")
	}
	s := snapshot(2, 3)
	s.Processes[1].Totals.Uses, s.Processes[1].Totals.InFlight = 1, stats.InFlight{Peak: 77}
	server, _ = serve(t, "0", s)
	if _, text = get(t, http.DefaultClient, server.Address()+"metrics"); families(t, text)["gpumemtop_peak_released_in_flight_bytes"] != 1 || !strings.Contains(text, "} 77\n") {
		t.Errorf("no peak released in flight in\n%s", text)
	}
	// More processes and sites than are shown.
	server, _ = serve(t, "0", snapshot(500, 5000))
	_, text = get(t, http.DefaultClient, server.Address()+"metrics")
	if counts := families(t, text); counts["gpumemtop_in_use_bytes"] != processesMax || counts["gpumemtop_site_in_use_bytes"] != sitesMax {
		t.Errorf("%v", counts)
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.Address()+"metrics", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	open, _ := io.ReadAll(reply.Body)
	_ = reply.Body.Close()
	if !bytes.HasSuffix(open, []byte("# EOF\n")) {
		t.Errorf("no OpenMetrics: …%q", open[max(0, len(open)-80):])
	}
}

// TestSameNumberAgain: a process that runs its program again has a number twice, and each series is there once, with the
// latest value.
func TestSameNumberAgain(t *testing.T) {
	s := snapshot(2, 0)
	s.Processes[1].PID = s.Processes[0].PID
	server, _ := serve(t, "0", s)
	_, text := get(t, http.DefaultClient, server.Address()+"metrics")
	if counts := families(t, text); counts["gpumemtop_in_use_bytes"] != 1 || !strings.Contains(text, "} 101\n") {
		t.Errorf("%v in\n%s", counts, text)
	}
}

// TestSeriesKeepTheirIdentity: no label changes while a run goes on, and no series comes before its labels are known.
func TestSeriesKeepTheirIdentity(t *testing.T) {
	now := &stats.Snapshot{}
	c := newCollector(func() *stats.Snapshot { return now }, Run{Program: "sh"})
	series := map[string]bool{}
	look := func(want int) {
		t.Helper()
		for _, f := range c.collectMetrics() {
			for _, m := range f.GetMetric() {
				series[f.GetName()+fmt.Sprint(m.GetLabel())] = true
			}
		}
		if want > 0 && len(series) != want {
			t.Errorf("%d series, want %d", len(series), want)
		}
	}
	look(0)
	now = snapshot(1, 1)
	now.Processes[0].Device, now.Processes[0].Totals = "", stats.Totals{}
	look(0)
	now = snapshot(1, 1)
	look(0)
	before := len(series)
	now.Processes[0].Device = "another"
	look(before)
	now = snapshot(2, 1) // a second process, on another device
	now.Processes[1].Device = "two"
	look(0)
	for s := range series {
		if one, two := strings.Contains(s, `value:"1073741824"`), strings.Contains(s, `value:"1073741825"`); one != strings.Contains(s, "card") || two != strings.Contains(s, `value:"two"`) {
			t.Errorf("device of another process: %s", s)
		}
	}
}

// Very many scrapes cost two texts a second.
func TestManyScrapesCostFewTexts(t *testing.T) {
	server, err := Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	summaries := 0
	began := time.Now()
	server.StartAnswering(func() *stats.Snapshot { return snapshot(1, 1) }, Run{}, func(_ *stats.Snapshot, w io.Writer) error {
		summaries++
		_, err := io.WriteString(w, "{}")
		return err
	})
	for range 50 {
		get(t, http.DefaultClient, server.Address()+"summary.json")
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if most := 1 + int(time.Since(began)/freshFor); summaries < 1 || summaries > most {
		t.Errorf("%d summaries, want 1 to %d", summaries, most)
	}
}

func TestProfile(t *testing.T) {
	server, now := serve(t, "127.0.0.1:0", snapshot(1, 3))
	url := server.Address() + "debug/pprof/opencl"
	read := func(query string) *profile.Profile {
		code, text := get(t, http.DefaultClient, url+query)
		p, err := profile.ParseData([]byte(text))
		if code != 200 || err != nil {
			t.Fatalf("%s: %d, %v", query, code, err)
		}
		return p
	}
	p := read("")
	if len(p.Sample) != 3 || p.DefaultSampleType != "inuse_space" || len(p.Sample[2].Location) != 2 || p.Sample[2].Value[inUseSpace] != 2<<20 || len(p.Location) != 4 {
		t.Errorf("%v", p)
	}
	if p := read("?at=peak"); p.DefaultSampleType != "peak_space" {
		t.Errorf("%v", p)
	}
	go func() {
		time.Sleep(50 * time.Millisecond)
		later := snapshot(1, 4)
		later.Tags[1].InUse += 7
		now.Store(later)
	}()
	if p := read("?seconds=0.5"); len(p.Sample) != 2 || p.Sample[0].Value[inUseSpace] != 7 || p.Sample[1].Value[inUseSpace] != 3<<20 {
		t.Errorf("%v", p)
	}
	for _, query := range []string{"?at=then", "?seconds=0", "?seconds=NaN", "?seconds=1e9", "?seconds=x"} {
		if code, text := get(t, http.DefaultClient, url+query); code != 400 || !strings.Contains(text, "want") {
			t.Errorf("%s: %d, %q", query, code, text)
		}
	}
}

// What a client may not do.
func TestOnlyReadersAreServed(t *testing.T) {
	server, _ := serve(t, "localhost:0", snapshot(1, 1))
	for path, want := range map[string]int{"": 200, "metrics/..%2f..%2fetc/passwd": 404, "../../etc/passwd": 404, "debug/pprof/": 404, "metrics": 200, "debug/pprof/cmdline": 404} {
		if code, _ := get(t, http.DefaultClient, server.Address()+path); code != want {
			t.Errorf("/%s: %d, want %d", path, code, want)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "TRACE"} {
		request, err := http.NewRequestWithContext(context.Background(), method, server.Address()+"metrics", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", method, reply.Status)
		}
	}
	if l := server.listener.Addr().(*net.TCPAddr); !l.IP.IsLoopback() {
		t.Errorf("listens at %v", l)
	}
}

// TestHostileClients send noise, too much, or nothing, and never read. The others are answered.
func TestHostileClients(t *testing.T) {
	server, _ := serve(t, "0", snapshot(3, 300))
	address := server.listener.Addr().String()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		switch i % 4 {
		case 0: // stands still
		case 1:
			noise := make([]byte, random.IntN(4000))
			for k := range noise {
				noise[k] = byte(random.Uint32())
			}
			_, _ = c.Write(noise)
		case 2: // asks a lot and reads nothing
			_, _ = c.Write([]byte(strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 50)))
		case 3:
			_, _ = c.Write([]byte("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n"))
		}
	}
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = c.Write([]byte("GET /metrics HTTP/1.0\r\n\r\n"))
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("%q, %v", line, err)
	}
}

// TestSilentConnections: a scrape is answered beside more connections than there is room for, whether they have asked, ask for a
// long time, or never ask. Who has the only connection of a host keeps it.
func TestSilentConnections(t *testing.T) {
	server, _ := serve(t, "127.0.0.1:0", snapshot(3, 30))
	address := server.listener.Addr().String()
	dial := func(from, request string) net.Conn {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := dialer.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = c.Write([]byte(request))
		return c
	}
	const summary = "GET /summary.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
	answered := func(c net.Conn, who string) {
		t.Helper()
		_, _ = c.Write([]byte(summary))
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		text := make([]byte, 1<<10)
		if n, err := c.Read(text); err != nil || !bytes.HasPrefix(text[:n], []byte("HTTP/1.1 200")) {
			t.Errorf("%s: %q, %v", who, text[:n], err)
		}
	}
	const scrape = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
	other := dial("127.0.0.2", "")
	answered(other, "another host")
	for i := range 400 {
		dial("127.0.0.1", []string{"", scrape, "GET /debug/pprof/opencl?seconds=59 HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /met"}[i%4])
		if i == 200 {
			answered(dial("127.0.0.1", ""), "in the middle")
		}
	}
	answered(dial("127.0.0.1", ""), "at the end")
	answered(other, "another host, later")
}

// TestVisitors: on the loopback interface, a name that a page's server may have resolved to it gets no answer, and neither does
// a page of another server anywhere.
func TestVisitors(t *testing.T) {
	for _, c := range []struct {
		listen, host, origin string
		want                 int
	}{
		{"127.0.0.1:0", "evil.example", "", 421},
		{"127.0.0.1:0", "evil.example:9400", "http://evil.example:9400", 421},
		{"127.0.0.1:0", "127.0.0.1.evil.example", "", 421},
		{"127.0.0.1:0", "192.0.2.1", "", 421},
		{"127.0.0.1:0", "localhost:9400", "", 200},
		{"127.0.0.1:0", "LOCALHOST.", "", 200},
		{"127.0.0.1:0", "gpu.localhost", "", 200},
		{"127.0.0.1:0", "127.1.2.3", "", 200},
		{"127.0.0.1:0", "[::1]:9400", "", 200},
		{"127.0.0.1:0", "localhost:9400", "http://localhost:9400", 200},
		{"127.0.0.1:0", "localhost:9400", "http://attacker.com", 403},
		{"127.0.0.1:0", "localhost:9400", "null", 403},
		{"localhost:0", "localhost", "", 200},
		{"0.0.0.0:0", "node7.example:9400", "", 200},
		{"0.0.0.0:0", "node7.example:9400", "http://attacker.com", 403},
	} {
		server, _ := serve(t, c.listen, snapshot(1, 1))
		port := server.listener.Addr().(*net.TCPAddr).Port
		request, err := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("http://127.0.0.1:%d/metrics", port), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = c.host
		if c.origin != "" {
			request.Header.Set("Origin", c.origin)
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != c.want {
			t.Errorf("%+v: %d", c, reply.StatusCode)
		}
	}
}

// TestTooMuchIsNotRead: long headers are refused, and a body is not waited for.
func TestTooMuchIsNotRead(t *testing.T) {
	server, _ := serve(t, "0", snapshot(1, 1))
	for request, want := range map[string]string{
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n": "431",
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n":              "200",
	} {
		c, err := net.Dial("tcp", server.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(request)) // all of it, or until the server closes
		_ = c.SetReadDeadline(time.Now().Add(2 * readTimeout))
		answer, err := io.ReadAll(c)
		if line, _, _ := strings.Cut(string(answer), "\r\n"); !strings.Contains(line, want) || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%.40q: %q, %v; want %s and the end", request, line, err, want)
		}
		_ = c.Close()
	}
}

// TestWhoAsksTooOftenWaits: a burst is answered at once, and what comes after it in turn. Who leaves takes no turn.
func TestWhoAsksTooOftenWaits(t *testing.T) {
	p, begin := newPace(), time.Now()
	for range answersBurst {
		p.awaitTurnOfRequest(t.Context())
	}
	if took := time.Since(begin); p.next.Before(begin) || p.next.After(begin.Add(took+answersPause)) {
		t.Errorf("after a burst, which took %v, the next turn comes after %v", took, p.next.Sub(begin))
	}
	p.next = time.Now().Add(time.Hour)
	last := p.next
	var waiting sync.WaitGroup
	for range 10 {
		waiting.Go(func() {
			client, leave := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer leave()
			if p.awaitTurnOfRequest(client) {
				t.Error("one was served before its turn")
			}
		})
	}
	waiting.Wait()
	if p.next != last {
		t.Errorf("those who left have put the next turn off by %v", p.next.Sub(last))
	}
	p.next = time.Now().Add(answersPause)
	if begin := time.Now(); !p.awaitTurnOfRequest(t.Context()) || time.Since(begin) < answersPause/2 {
		t.Errorf("a turn came after %v", time.Since(begin))
	}
}

func FuzzRequest(f *testing.F) {
	for _, text := range []string{"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /debug/pprof/opencl?at=x HTTP/1.0\r\n\r\n", "PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"} {
		f.Add([]byte(text))
	}
	server, err := Listen("0")
	if err != nil {
		f.Fatal(err)
	}
	last := snapshot(1, 1)
	server.pace.pause = 0
	server.StartAnswering(func() *stats.Snapshot { return last }, Run{}, func(_ *stats.Snapshot, w io.Writer) error { return nil })
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte("seconds")) {
			t.Skip("it waits as long as asked")
		}
		c, err := net.Dial("tcp", server.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(text)
		if err := c.(*net.TCPConn).CloseWrite(); err == nil {
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, _ = io.Copy(io.Discard, c)
		}
		_ = c.Close()
	})
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false) // as after kill -9
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	server, _ := serve(t, "unix:"+path, snapshot(1, 1))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	if code, text := get(t, client, "http://gpumemtop/metrics"); code != 200 || !strings.Contains(text, "gpumemtop_lost_events_total") {
		t.Errorf("%d %s", code, text)
	}
	if _, err := Listen("unix:" + path); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a second one: %v", err)
	}
	if server.Address() != "unix:"+path {
		t.Error(server.Address())
	}
}

func TestListenErrors(t *testing.T) {
	busy, err := Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"a:b:c": "want HOST:PORT", "port": "port",
		"unix:" + text: "address already in use", "unix:/nowhere/s": "no such file", "99999": "99999",
	} {
		server, err := Listen(address)
		if err == nil {
			_ = server.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "--listen "+address+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
	if _, err := os.Stat(text); err != nil {
		t.Error("a file of another sort is gone")
	}
	next, err := Listen(busy.listener.Addr().String())
	if err != nil || !next.HasOtherPortThanAsked() || busy.HasOtherPortThanAsked() {
		t.Fatalf("in place of a port that is taken: %v", err)
	}
	_ = next.Close()
}

func TestTextfileAndPush(t *testing.T) {
	folder := t.TempDir()
	if err := WriteTextfile(folder, 7, snapshot(1, 1), Run{Program: "/opt/blur"}); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(folder, "*"))
	if len(names) != 1 || filepath.Base(names[0]) != "gpumemtop.blur.7.prom" {
		t.Fatalf("%v", names)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	families(t, string(text))
	old, other := filepath.Join(folder, "gpumemtop.blur.6.prom"), filepath.Join(folder, "gpumemtop.blur.x.7.prom")
	past := time.Now().Add(-2 * textfileAge)
	for _, path := range []string{old, other} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, past, past)); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteTextfile(folder, 8, snapshot(1, 1), Run{Program: "blur"}); err != nil {
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(filepath.Join(folder, "*")); len(names) != 3 || names[2] != other {
		t.Errorf("%v", names)
	}
	var groups []string
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { groups = append(groups, r.Method+" "+r.URL.Path) }))
	defer gateway.Close()
	s := snapshot(2, 1)
	s.Processes[1].Place = wire.Place{App: "x/y", Rank: "3"}
	s.Processes[1].App = "blur 2"
	host, _ := os.Hostname()
	job := "PUT /metrics/job/gpumemtop/run/blur"
	want := []string{
		fmt.Sprintf("%s+2/host/%s/pid/1073741825/rank/3", job, host), fmt.Sprintf("%s/host/%s/pid/1073741824", job, host),
		fmt.Sprintf("%s/host/%s/session/%d", job, host, os.Getpid()),
	}
	if err := PushToGateway(gateway.URL, s, Run{}); err != nil || !slices.Equal(groups, want) {
		t.Errorf("%v: %q, want %q", err, groups, want)
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("no ", 1000), http.StatusForbidden)
	}))
	defer refusing.Close()
	if err := PushToGateway(refusing.URL, snapshot(1, 1), Run{}); err == nil || len(err.Error()) > 400 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if err := WriteTextfile("/nowhere", 1, snapshot(1, 1), Run{Program: "/opt/blur"}); err == nil {
		t.Error("written nowhere")
	}
}

// TestTextfileOnAFullDisk: earlier figures stay, and no part of new ones.
func TestTextfileOnAFullDisk(t *testing.T) {
	folder := t.TempDir()
	if err := WriteTextfile(folder, 7, snapshot(1, 1), Run{Program: "/opt/blur"}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(folder, "gpumemtop.blur.7.prom"))
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit fails, as on a full disk
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	full := limit
	full.Cur = 64 << 10 // above what the test itself writes
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	err = WriteTextfile(folder, 7, snapshot(200, 20), Run{Program: "/opt/blur"})
	if e := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); e != nil {
		t.Fatal(e)
	}
	after, _ := os.ReadFile(filepath.Join(folder, "gpumemtop.blur.7.prom"))
	left, _ := os.ReadDir(folder)
	if err == nil || !bytes.Equal(before, after) || len(left) != 1 {
		t.Errorf("%v; %d bytes, had %d; %d files", err, len(after), len(before), len(left))
	}
}

// BenchmarkScrape is one client that asks all the time: of a snapshot that stays, and of a new one each time.
func BenchmarkScrape(b *testing.B) {
	for _, name := range []string{"same", "new"} {
		b.Run(name, func(b *testing.B) {
			server, err := Listen("0")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = server.Close() }()
			shown := snapshot(1, 30)
			server.StartAnswering(func() *stats.Snapshot {
				if name == "new" {
					changed := *shown
					return &changed
				}
				return shown
			}, Run{}, nil)
			for b.Loop() {
				reply, err := http.Get(server.Address() + "metrics")
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, reply.Body)
				_ = reply.Body.Close()
			}
		})
	}
}

// TestShippedFiles: the dashboard and the alerts ask for metrics that there are.
func TestShippedFiles(t *testing.T) {
	s := snapshot(1, 2)
	s.Machine = []stats.MachineFigure{{Bytes: 1}}
	known := map[string]bool{}
	for _, f := range newCollector(func() *stats.Snapshot { return s }, Run{}).collectMetrics() {
		known[f.GetName()] = true
	}
	for _, name := range []string{"grafana.json", "alerts.yml", "alerts_test.yml"} {
		text, err := os.ReadFile(filepath.Join("../../monitoring", name))
		if err != nil {
			t.Fatal(err)
		}
		asked := regexp.MustCompile(`gpumemtop_\w+`).FindAllString(string(text), -1)
		for _, metric := range asked {
			if !known[metric] {
				t.Errorf("%s asks for %s", name, metric)
			}
		}
		if len(asked) == 0 {
			t.Errorf("%s asks for nothing", name)
		}
	}
}

// TestDashboardChooses: each panel keeps to the host, program, job and device that the dashboard's variables choose, and hosts to a label.
func TestDashboardChooses(t *testing.T) {
	var board struct {
		Templating struct {
			List []struct{ Name, Query string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../../monitoring/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, v := range board.Templating.List {
		queries[v.Name] = v.Query
	}
	labels := map[string]string{"host": "instance", "program": "program", "job": "jobid", "device": "device"}
	for variable, label := range labels {
		if !strings.HasSuffix(queries[variable], ", "+label+")") || label != "instance" && !slices.Contains(labelNames, label) {
			t.Errorf("%s is chosen by %q, want values of %s", variable, queries[variable], label)
		}
	}
	if !strings.Contains(queries["host"], `{$label=~"$value"}`) || queries["value"] != "label_values(gpumemtop_run_info, $label)" {
		t.Errorf("hosts by %q, values by %q", queries["host"], queries["value"])
	}
	for _, p := range board.Panels {
		for _, x := range p.Targets {
			metrics := strings.Count(x.Expr, "gpumemtop_")
			for variable, label := range labels {
				if n := strings.Count(x.Expr, label+`=~"$`+variable+`"`); n != metrics || n == 0 {
					t.Errorf("%s: %d of %d metrics keep to %s: %s", p.Title, n, metrics, variable, x.Expr)
				}
			}
		}
	}
}
