package watch

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// awaitCurve asks as a dashboard does, until there is an end.
func awaitCurve(t *testing.T, m *background) *view.Curve {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if c := m.curveOrProgress(); c != nil && !strings.HasPrefix(c.Why, "playing") {
			return c
		}
	}
	t.Fatal("no curve in a minute")
	return nil
}

// TestCurveOfARecording: the curve is that of a report.
func TestCurveOfARecording(t *testing.T) {
	path := filepath.Join("..", "..", "replay", "testdata", "train.futhark.gmt")
	m := newBackgroundCurve(path)
	defer m.endMeasuring()
	got := awaitCurve(t, m)
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // only read
	h := reader.Header()
	want, err := MeasureHitRateCurve(reader, &h)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Curve(), got); diff != "" || !got.Whole || got.Policy != "futhark" || len(got.Exact) < 10 {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	for _, p := range got.Exact {
		if p.Limit > 1<<50 {
			t.Errorf("a point without a limit: %+v", p)
		}
	}
}

// TestCurveOfARecordingWithoutAPool is of the pool that there would be by default, and has no present limit.
func TestCurveOfARecordingWithoutAPool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bare.gmt")
	var list []wire.Record
	for i := range uint64(100) {
		r := wire.Record{Process: 1, Event: wire.Event{
			Time: 10 * (i + 1), Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: i + 1, Link: i + 1, Size: 1 << 20, Granted: 1 << 20,
		}}
		list = append(list, r)
		r.Kind, r.Outcome, r.Granted, r.Time = wire.KindRelease, wire.OutcomeDriver, 0, r.Time+5
		list = append(list, r)
	}
	labtest.Write(t, path, recording.Header{Program: "app", Policy: "none", ClockNS: 1}, list, recording.Footer{EndedNS: 2000})
	m := newBackgroundCurve(path)
	defer m.endMeasuring()
	if c := awaitCurve(t, m); c.Policy != "futhark" || c.Requests != 100 || c.Enough.HitRate != 0.99 {
		t.Errorf("%+v", c)
	}
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // only read
	h := reader.Header()
	if c, err := MeasureHitRateCurve(reader, &h); err != nil || c.Present != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestCurveOfNothing(t *testing.T) {
	m := newBackgroundCurve(filepath.Join(t.TempDir(), "missing.gmt"))
	defer m.endMeasuring()
	if c := awaitCurve(t, m); !strings.Contains(c.Why, "missing.gmt") {
		t.Errorf("%+v", c)
	}
}

// TestCurveRests: the work waits while the curve is not shown, and ends with the dashboard.
func TestCurveRests(t *testing.T) {
	m := newBackgroundCurve("")
	file := &playedFile{Reader: &recording.Reader{}, of: m} // never shown
	ended := make(chan error)
	go func() { ended <- file.publishProgressOrPause() }()
	m.shows <- struct{}{}
	if err := <-ended; err != nil || time.Since(file.seen) > time.Hour {
		t.Errorf("%v, shown at %v: it did not wait", err, file.seen)
	}
	file.seen = time.Time{}
	go func() { ended <- file.publishProgressOrPause() }()
	m.cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
