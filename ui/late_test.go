package ui

import (
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// curedSnapshot is the sample some time after its start, where a row missed until then and hits since.
func curedSnapshot(after time.Duration, hits, misses uint64) *stats.Snapshot {
	s := sampleSnapshot()
	s.Time += uint64(after)
	t := &s.Tags[4] // whose hit rate is 42.7 % until then
	t.Hits, t.Misses = t.Hits+hits, t.Misses+misses
	t.MissReasons[wire.MissLimit] += misses
	s.Totals.Hits, s.Totals.Misses = 4000+hits, 6000+misses
	for i := range uint64(200) {
		time := s.Time - 20e9 + i*1e8
		sample := stats.Sample{Time: time, Misses: 1000}
		if time > sampleSnapshot().Time {
			sample = stats.Sample{Time: time, Hits: hits, Misses: misses}
		}
		s.Minute = append(s.Minute, sample)
	}
	return s
}

// hitsShown are the styles of the first hit rate, of that of the run, and of the row.
func hitsShown(t *testing.T, d *dashboard) (now, run, row style) {
	t.Helper()
	s := d.shownSnapshot()
	fields := d.hitFields(s)
	for i := range tagColumns {
		if tagColumns[i].title == hitTitle {
			row, _ = d.tags.cellText(&tagColumns[i], &s.Tags[4])
		}
	}
	return fields[0].value.style, fields[1].value.style, row
}

// TestColoursAreOfLate: what was cured ten seconds ago is no fault now, and the average of the run is dim.
func TestColoursAreOfLate(t *testing.T) {
	at := func(after time.Duration, hits, misses uint64) *dashboard {
		d := newTest((&calls{}).options(), 120, 36, curedSnapshot(0, 0, 0))
		d.Update(frameMsg{now: testStart.Add(after), snap: curedSnapshot(after, hits, misses)})
		return d
	}
	d := at(11*time.Second, 1000, 0)
	shows(t, d, "hit 100.0%  run 45.5%")
	if now, run, row := hitsShown(t, d); now != goodStyle || run != dim || row != dim {
		t.Errorf("cured: styles %d, %d, %d", now, run, row)
	}
	d = at(11*time.Second, 0, 1000)
	shows(t, d, "hit 0.0%    run 36.4%")
	if now, run, row := hitsShown(t, d); now != badStyle || run != dim || row != warnStyle {
		t.Errorf("it misses: styles %d, %d, %d", now, run, row)
	}
	d = at(11*time.Second, 0, 0)
	shows(t, d, "hit —       run 40.0%")
	if now, _, row := hitsShown(t, d); now != dim || row != dim {
		t.Errorf("idle: styles %d, %d", now, row)
	}
	d = at(5*time.Second, 1000, 0)
	if now, _, _ := hitsShown(t, d); now == goodStyle {
		t.Error("half of the last ten seconds is good before it was cured")
	}
	d.Update(frameMsg{now: testStart.Add(time.Minute), snap: curedSnapshot(time.Minute, 0, 9), app: App{State: stats.Exited}, hasApp: true})
	shows(t, d, "hit 40.0%   run 40.0%")
	if now, _, _ := hitsShown(t, d); now != badStyle {
		t.Errorf("after the end the average counts: style %d", now)
	}
}

// TestOneMissIsNoFault: a buffer that is created once misses.
func TestOneMissIsNoFault(t *testing.T) {
	for _, test := range []struct {
		tag  stats.Tag
		want style
	}{
		{stats.Tag{Misses: 1}, plain}, {stats.Tag{Misses: 19}, plain}, {stats.Tag{Misses: 20}, warnStyle}, {stats.Tag{}, dim}, {stats.Tag{Hits: 20}, goodStyle},
	} {
		if got := styleOfRowHitRate(&test.tag); got != test.want {
			t.Errorf("%d hits, %d misses: style %d, want %d", test.tag.Hits, test.tag.Misses, got, test.want)
		}
	}
}

// TestAlarmsAreOfLate: a mistake is red while it is new.
func TestAlarmsAreOfLate(t *testing.T) {
	s := mistaken(sampleSnapshot())
	for i := range s.Findings {
		s.Findings[i].Last = s.Time - 11e9
	}
	if items := alarmingItems(s); items[0].spans[0].style != dim {
		t.Errorf("an old mistake has style %d", items[0].spans[0].style)
	}
	s.Findings[1].Last = s.Time - 9e9
	if items := alarmingItems(s); items[0].spans[0].style != badStyle {
		t.Errorf("a new mistake has style %d", items[0].spans[0].style)
	}
}

// TestAveragesAreDim: rates of the whole run have no colour while it goes on, in no pane.
func TestAveragesAreDim(t *testing.T) {
	s := curedSnapshot(0, 0, 0)
	s.Kinds = []stats.Kind{{Memory: wire.MemoryImage, Share: stats.Share{Creates: 90, Misses: 90}}}
	d := newTest((&calls{}).options(), 120, 36, s)
	rates := ratesPane{basePane{d}}.hitItems(s, false)
	for _, st := range []style{rates[0].spans[1].style, rates[2].spans[1].style, d.memoryKindItems(s)[0].spans[3].style, d.sizeRows(s)[0].reuse} {
		if st != dim {
			t.Errorf("style %d", st)
		}
	}
	d.Update(frameMsg{now: testStart, snap: s, app: App{State: stats.Exited}, hasApp: true})
	if st := d.memoryKindItems(s)[0].spans[3].style; st != badStyle {
		t.Errorf("after the end: style %d", st)
	}
}

// TestSignsHaveOneMeaning: no sign stands twice in their table.
func TestSignsHaveOneMeaning(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range signs {
		for _, sign := range strings.Fields(s.term) {
			if seen[sign] {
				t.Errorf("%s has two meanings", sign)
			}
			seen[sign] = true
		}
	}
	d := newTest((&calls{}).options(), 120, 200, sampleSnapshot())
	press(d, "?", "?")
	shows(t, d, "signs", "a limit or the policy changed")
}
