package ghost

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// churn is a program with the given number of buffers: 16 live at a time, and their sizes repeat.
func churn(buffers int) *labtest.Tape {
	p := labtest.NewEmptyTape(1)
	p.AddDevice(1<<33, 1<<31, 128)
	p.AddContext(labtest.Scope)
	const live = 16
	for n := range uint64(buffers) {
		if n >= live {
			p.AddRelease(n-live+1, wire.OutcomeCached)
			p.AddEvent(wire.Event{Kind: wire.KindUse, Object: n})
		}
		size := 4096 * (1 + n*7%23)
		p.CreateBuffer(size, uint32(n%5))
		p.LastRecord().Cost = uint32(5000 + size)
	}
	return p
}

// device is the device that the ghosts of tests calculate with.
var device = cost.Device{Create: cost.Line{A: 1000, B: 0.5}, Release: cost.Line{A: 100}, Part: cost.Line{A: 10}}

func futhark() replay.Configuration { return replay.Configuration{Policy: "futhark"} }

// replayed returns the result of a replay of a configuration.
func replayed(t *testing.T, src recording.Source, c replay.Configuration, d cost.Device) *replay.Result {
	t.Helper()
	r, err := replay.Replay(labtest.RewindSource(t, src), replay.Options{Policy: c.Policy, Settings: c.Settings, HoldSettings: true, Device: d})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkRow fails unless a row equals the result of a replay.
func checkRow(t *testing.T, row *stats.Ghost, want *replay.Result) {
	t.Helper()
	if row.Requests != want.Hits+want.Misses || row.Hits != want.Hits || row.PeakReserved != want.PeakReserved ||
		math.Abs(row.DriverNS-want.DriverNS) > 1e-6*want.DriverNS {
		t.Errorf("%s: %+v, a replay: %d of %d, peak %d, %g ns", row.Name, *row, want.Hits, want.Hits+want.Misses, want.PeakReserved, want.DriverNS)
	}
}

// play gives the records of a source to ghosts in parts, without a thread of their own, and reports whether the ghosts
// continue. They are behind in those parts for which behind returns true.
func play(t *testing.T, src recording.Source, g *Ghosts, behind func(batch int) bool) bool {
	t.Helper()
	c := replay.NewBatch()
	g.Begin(c, 0)
	goes, batch := true, 0
	part := &live.Part{}
	hand := func() {
		part.Behind = behind(batch)
		goes = goes && g.Play(part)
		c.ForgetReadSteps()
		part = &live.Part{}
		batch++
	}
	labtest.EachRecord(t, src, func(r *wire.Record) {
		c.ReadRecord(r)
		part.Records, part.Time = part.Records+1, r.Time
		if part.Records == batchSize {
			hand()
		}
	})
	c.EndStream()
	hand()
	g.Publish(&live.Load{})
	return goes
}

const batchSize = 100

// follow starts a tap for ghosts.
func follow(t *testing.T, all []replay.Configuration, o Options) (*Ghosts, *live.Tap) {
	t.Helper()
	g, err := New(all, o)
	if err != nil {
		t.Fatal(err)
	}
	return g, live.Start(g)
}

// TestGhostsAreReplays: a ghost has the figures of a replay, for every recording and every policy.
func TestGhostsAreReplays(t *testing.T) {
	for file, reader := range labtest.Recordings(t, "../../replay/testdata") {
		var all []replay.Configuration
		for _, name := range allocator.PolicyNames() {
			all = append(all, replay.Configuration{Policy: name})
		}
		all = append(all, replay.Configuration{Policy: "pow2", Settings: []allocator.Setting{{Name: "max_cached_bytes", Value: "65536"}}})
		g, tap := follow(t, all, Options{Current: replay.Configuration{Policy: reader.Header().Policy}, Device: device})
		labtest.EachRecord(t, reader, func(r *wire.Record) {
			tap.TakeRecord(r)
			if r.Kind == wire.KindSync {
				tap.Flush()
			}
		})
		tap.Close()
		board := g.Leaderboard()
		if len(board.Rows) != len(all) || board.Stopped != "" || board.Assumed || board.Events == 0 || board.Waiting != 0 || board.Bytes == 0 {
			t.Errorf("%s: %+v", file, board)
		}
		for i := range board.Rows {
			row := &board.Rows[i]
			c, known := g.ConfigurationOfGhost(row.Name)
			if !known || !row.CoversRun() || row.Present != (row.Name == reader.Header().Policy) {
				t.Errorf("%s: %+v", file, row)
			}
			checkRow(t, row, replayed(t, reader, c, device))
		}
	}
}

// TestStopsTheSlowest lets too many records wait for a while: ghosts stop one by one, and the figures of the others are
// right.
func TestStopsTheSlowest(t *testing.T) {
	racetest.Slow(t)
	src := churn(40_000)
	g, err := New(ConfigurationsOfPolicies(futhark(), usualPolicies), Options{Current: futhark(), Device: device})
	if err != nil {
		t.Fatal(err)
	}
	if !play(t, src, g, func(batch int) bool { return batch >= 100 && batch < 100+3*partsBetweenStops }) {
		t.Error("none goes on")
	}
	stopped := 0
	for i := range g.Leaderboard().Rows {
		row := &g.Leaderboard().Rows[i]
		c, _ := g.ConfigurationOfGhost(row.Name)
		want := replayed(t, src, c, device)
		if row.Stopped == "" {
			checkRow(t, row, want)
			continue
		}
		stopped++
		if !strings.Contains(row.Stopped, "could not keep up at ") || row.Requests == 0 || row.Requests >= want.Hits+want.Misses || row.Present {
			t.Errorf("%+v", row)
		}
	}
	if stopped != 3 || g.Leaderboard().Stopped != "" {
		t.Errorf("%d of %d stopped: %q", stopped, len(usualPolicies), g.Leaderboard().Stopped)
	}
}

// TestStopsOneByOne lets records come so fast that even a single ghost cannot keep up. The ghost of the current
// configuration stops last.
func TestStopsOneByOne(t *testing.T) {
	g, err := New(ConfigurationsOfPolicies(futhark(), []string{"pow2"}), Options{Current: futhark()})
	if err != nil {
		t.Fatal(err)
	}
	if play(t, churn(40_000), g, func(int) bool { return true }) {
		t.Error("it goes on")
	}
	board := g.Leaderboard()
	present := board.PresentGhost()
	if board.Stopped == "" || board.Leader() != nil || present == nil || present.Stopped == "" || len(board.Rows) != 2 {
		t.Fatalf("%+v", board)
	}
	for i := range board.Rows {
		if row := &board.Rows[i]; row.Stopped == "" || !row.Present && row.Requests >= present.Requests {
			t.Errorf("%+v", row)
		}
	}
}

// TestManyBuffers stops ghosts while a program has more and more buffers; the ghost of the current configuration stops
// last.
func TestManyBuffers(t *testing.T) {
	racetest.Slow(t)
	for buffers, going := range map[int]int{buffersMax / 4: 4, buffersMax/2 + 1: 1, buffersMax + batchSize: 0} {
		p := labtest.NewEmptyTape(1)
		p.AddDevice(1<<33, 1<<31, 128)
		p.AddContext(labtest.Scope)
		for n := range buffers {
			p.CreateBuffer(64, uint32(n%5))
		}
		g, err := New(ConfigurationsOfPolicies(futhark(), usualPolicies), Options{Current: futhark()})
		if err != nil {
			t.Fatal(err)
		}
		if play(t, p, g, func(int) bool { return false }) != (going > 0) {
			t.Errorf("with %d buffers it goes on: %v", buffers, going == 0)
		}
		board := g.Leaderboard()
		left := 0
		for i := range board.Rows {
			row := &board.Rows[i]
			if row.Stopped == "" {
				left++
			} else if !strings.HasSuffix(row.Stopped, " buffers at a time") {
				t.Errorf("%+v", row)
			}
		}
		if left != going || board.PresentGhost() == nil || (board.PresentGhost().Stopped == "") != (going > 0) || (board.Stopped == "") != (going > 0) {
			t.Errorf("%d of %d ghosts are left with %d buffers, want %d: %q", left, len(board.Rows), buffers, going, board.Stopped)
		}
	}
}

// TestOnlyThePresentComesLate: the ghost of a configuration that the program has left again is removed.
func TestOnlyThePresentComesLate(t *testing.T) {
	g, tap := follow(t, nil, Options{Current: futhark()})
	for _, payload := range []string{"max_cached_bytes=1000", "max_cached_bytes=2000", "policy=pow2", "policy=futhark"} {
		tap.TakeRecord(labtest.NewTape().AddLimit(payload, 0))
	}
	tap.Close()
	if rows := g.Leaderboard().Rows; len(rows) != 1 || !rows[0].Present || rows[0].Name != "futhark" || !rows[0].CoversRun() {
		t.Errorf("%+v", rows)
	}
}

// TestStopsWhenRecordsAreMissing: all stop with the figures so far, and report it.
func TestStopsWhenRecordsAreMissing(t *testing.T) {
	src := churn(20_000)
	g, err := New(ConfigurationsOfPolicies(futhark(), []string{"pow2"}), Options{Current: futhark(), Device: device})
	if err != nil {
		t.Fatal(err)
	}
	play(t, src, g, func(int) bool { return false })
	c := replay.NewBatch()
	g.Begin(c, 100)
	if g.Play(&live.Part{Records: 1}) {
		t.Error("it goes on")
	}
	g.Publish(&live.Load{})
	board := g.Leaderboard()
	if board.Stopped == "" || board.Leader() != nil || len(board.Rows) != 2 {
		t.Fatalf("%+v", board)
	}
	for i := range board.Rows {
		row := &board.Rows[i]
		c, _ := g.ConfigurationOfGhost(row.Name)
		if row.Stopped == "" {
			t.Errorf("%+v", row)
		}
		checkRow(t, row, replayed(t, src, c, device))
	}
}

// TestBeginsAnewAfterARest: the figures of ghosts after a pause equal those of a replay of the remaining stream, and
// their row shows when they started.
func TestBeginsAnewAfterARest(t *testing.T) {
	for name, late := range map[string]bool{"rests later": false, "rests at first": true} {
		src := churn(6000)
		context, n := src.Records[:2], len(src.Records)
		g, err := New(ConfigurationsOfPolicies(futhark(), []string{"pow2", "slab"}), Options{Current: futhark(), Device: device, MidRun: late})
		if err != nil {
			t.Fatal(err)
		}
		start := live.Start
		if late {
			start = live.StartResting
		}
		tap := start(g)
		take := func(list []wire.Record) { labtest.EachRecord(t, &records.Tape{Records: list}, tap.TakeRecord) }
		take(src.Records[:n/3])
		tap.SetResting(true)
		take(src.Records[n/3 : 2*n/3])
		tap.SetResting(false)
		take(src.Records[2*n/3:])
		tap.Close()
		tail := &records.Tape{Records: slices.Concat(context, src.Records[2*n/3:])}
		b := g.Leaderboard()
		for i := range b.Rows {
			row := &b.Rows[i]
			checkRow(t, row, replayed(t, tail, replay.Configuration{Policy: row.Policy}, device))
			if row.Since < src.Records[2*n/3].Time || row.CoversRun() {
				t.Errorf("%s: since %d", row.Name, row.Since)
			}
		}
		if len(b.Rows) != 3 || b.Leader() != nil || b.PresentGhost() == nil || g.InitialName() != "futhark" {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// TestLeaderboardIsForAnyGoroutine reads the leaderboard all the time from another goroutine.
func TestLeaderboardIsForAnyGoroutine(t *testing.T) {
	racetest.Slow(t)
	g, tap := follow(t, DefaultConfigurations(futhark()), Options{Current: futhark()})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for events := uint64(0); ; {
			select {
			case <-stop:
				return
			default:
			}
			board := g.Leaderboard()
			if board.Events < events || len(board.Rows) != len(usualPolicies)+2 || board.PresentGhost() == nil {
				t.Errorf("%+v", board)
				return
			}
			events = board.Events
		}
	}()
	labtest.EachRecord(t, churn(5_000), func(r *wire.Record) {
		tap.TakeRecord(r)
		if r.Time%1_000_000 == 0 {
			tap.Flush()
		}
	})
	tap.Close()
	close(stop)
	<-done
}

// TestFollowsThePresent changes policy and limits: the mark of the current configuration moves to the ghost that
// simulates it, or to a new one.
func TestFollowsThePresent(t *testing.T) {
	for _, test := range []struct {
		payload string
		status  int16
		want    string
		late    bool
	}{
		{"policy=pow2", 0, "pow2", false},
		{"policy=pow2", -1, "futhark", false},
		{"policy=pow2,max_cached_bytes=65536", 0, "pow2 max_cached_bytes=64K", true},
		{"max_cached_bytes=1000", 0, "futhark max_cached_bytes=1000", true},
		{"max_cached_bytes=4294967296", 0, "futhark", false}, // the default
		{"mantissa_bits=4", 0, "futhark", false},             // not one of futhark's
		{"4096", 0, "futhark", false},                        // a trim
	} {
		src := churn(1000)
		src.Records = slices.Insert(src.Records, len(src.Records)/2, *labtest.NewEmptyTape(1).AddLimit(test.payload, test.status))
		g, tap := follow(t, ConfigurationsOfPolicies(futhark(), []string{"pow2"}), Options{Current: futhark(), Device: device})
		labtest.EachRecord(t, src, tap.TakeRecord)
		tap.Close()
		present := g.Leaderboard().PresentGhost()
		if present == nil || present.Name != test.want || present.Since != 0 != test.late || present.Requests == 0 {
			t.Errorf("%q: %+v", test.payload, present)
			continue
		}
		rows := 2
		if test.late {
			rows = 3
			if _, _, known := g.Leaderboard().LeaderSaving(); known || g.Leaderboard().Rows[2].Name != test.want {
				t.Errorf("%q: what came late is compared: %+v", test.payload, g.Leaderboard().Rows)
			}
		}
		if len(g.Leaderboard().Rows) != rows {
			t.Errorf("%q: %d rows", test.payload, len(g.Leaderboard().Rows))
		}
	}
}

func TestCostsComeFromTheRun(t *testing.T) {
	g, tap := follow(t, nil, Options{Current: futhark()})
	if b := g.Leaderboard(); !b.Assumed || b.CreateA != assumedDevice.Create.A {
		t.Errorf("%+v", b)
	}
	src := churn(100)
	src.LastRecord().Kind = wire.KindEvict
	for range timedCallsMin {
		src.AddEvict(1<<40, 100, wire.EvictNone).Cost = 700
	}
	labtest.EachRecord(t, src, tap.TakeRecord)
	tap.Close()
	if b := g.Leaderboard(); b.Assumed || math.Abs(b.CreateA-5000) > 1 || math.Abs(b.CreateB-1) > 1e-3 || b.ReleaseA == assumedDevice.Release.A {
		t.Errorf("%+v", b)
	}
}

// TestAssumedPartsDoNotLead: what a sub-allocation takes is not known under futhark, so slab is not ranked, until one was timed.
func TestAssumedPartsDoNotLead(t *testing.T) {
	for _, timed := range []bool{false, true} {
		g, tap := follow(t, ConfigurationsOfPolicies(futhark(), []string{"slab"}), Options{Current: futhark()})
		src := churn(100)
		src.LastRecord().Kind = wire.KindEvict
		for range timedCallsMin {
			src.AddEvict(1<<40, 100, wire.EvictNone).Cost = 700
		}
		if timed {
			part := src.AddCreate(1<<41, 256)
			part.Outcome, part.Flags, part.Cost = wire.OutcomeHit, wire.FlagSubAlloc, 1
		}
		labtest.EachRecord(t, src, tap.TakeRecord)
		tap.Close()
		rows := g.Leaderboard().Rows
		slab := rows[slices.IndexFunc(rows, func(row stats.Ghost) bool { return row.Policy == "slab" })]
		if slab.Assumed == timed || !timed && rows[0].Policy == "slab" || g.Leaderboard().Leader() == nil || g.Leaderboard().PresentGhost().Assumed {
			t.Errorf("timed %v: %+v", timed, rows)
		}
	}
}

func TestDefault(t *testing.T) {
	names := func(list []replay.Configuration) string {
		var all []string
		for _, c := range list {
			c, err := normalize(c)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, nameOfConfiguration(c))
		}
		return strings.Join(all, ", ")
	}
	if got := names(DefaultConfigurations(futhark())); got != strings.Join(usualPolicies, ", ")+", futhark proportion=1.1, futhark max_age=0 proportion=0 outgrown=off" {
		t.Error(got)
	}
	present := replay.Configuration{Policy: "slab", Settings: []allocator.Setting{{Name: "max_cached_bytes", Value: "67108864"}}}
	got := names(DefaultConfigurations(present))
	for _, want := range []string{"futhark max_cached_bytes=64M, ", "slab max_cached_bytes=64M, ", "slab max_cached_bytes=32M", "slab max_cached_bytes=128M"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	for policy, want := range map[string]string{"slab": "slab proportion=1.1, slab", "none": "none"} {
		if got := names(proportionVariations(replay.Configuration{Policy: policy})); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
	if _, err := New(ConfigurationsOfPolicies(futhark(), []string{"futrak"}), Options{Current: futhark()}); err == nil || !strings.Contains(err.Error(), "futrak") {
		t.Errorf("%v", err)
	}
}

func TestRank(t *testing.T) {
	rows := []stats.Ghost{
		{Name: "present", DriverNS: 1000, PeakReserved: 100, Present: true},
		{Name: "greedy", DriverNS: 10, PeakReserved: 201},
		{Name: "stopped", DriverNS: 1, PeakReserved: 1, Stopped: "stopped"},
		{Name: "assumed", DriverNS: 5, PeakReserved: 50, Assumed: true},
		{Name: "fails", DriverNS: 20, PeakReserved: 100, Failures: 1},
		{Name: "equal", DriverNS: 995, PeakReserved: 100},
		{Name: "smaller", DriverNS: 1004, PeakReserved: 90},
		{Name: "late", DriverNS: 1, PeakReserved: 1, Since: 5},
		{Name: "fast", DriverNS: 500, PeakReserved: 200},
	}
	for range len(rows) {
		rows = append(rows[1:], rows[0])
		ranked := slices.Clone(rows)
		sortBestFirst(ranked)
		var names []string
		for i := range ranked {
			names = append(names, ranked[i].Name)
		}
		if got := strings.Join(names[:7], " "); got != "fast smaller present equal greedy fails assumed" {
			t.Errorf("%q", got)
		}
	}
}

// TestRankAsDocumented compares the example in docs/METRICS.md with what rank returns.
func TestRankAsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	const mib = 1 << 20
	rows := []stats.Ghost{
		{Name: "futhark", DriverNS: 50e6, PeakReserved: 80 * mib, Present: true, Requests: 1},
		{Name: "slab", DriverNS: 31e6, PeakReserved: 96 * mib, Requests: 1},
		{Name: "pow2", DriverNS: 30.9e6, PeakReserved: 120 * mib, Requests: 1},
		{Name: "buckets", DriverNS: 20e6, PeakReserved: 170 * mib, Requests: 1},
	}
	var ranked []string
	for i := range rows {
		ranked = append(ranked, fmt.Sprintf("%s %.3g ms, %d MiB", rows[i].Name, rows[i].DriverNS/1e6, rows[i].PeakReserved/mib))
	}
	sortBestFirst(rows)
	board := stats.Ghosts{Rows: rows}
	_, part, _ := board.LeaderSaving()
	want := fmt.Sprintf("> Ranked: now %s → %s leads, to now −%.0f %%; then %s, %s and %s\n", strings.Join(ranked, "; "), rows[0].Name, 100*part,
		rows[1].Name, rows[2].Name, rows[3].Name)
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/METRICS.md has no %q", want)
	}
}
