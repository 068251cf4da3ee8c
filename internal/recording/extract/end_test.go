package extract

import (
	"errors"
	"io"
	"strconv"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// clock is a source whose records have the times 1 to n, of a run that ended later; 0: that is not known.
type clock struct{ now, last, ended uint64 }

func (c *clock) Footer() (recording.Footer, bool) {
	return recording.Footer{EndedNS: c.ended}, c.ended > 0
}

func (c *clock) Next(r *wire.Record) error {
	if c.now == c.last {
		return io.EOF
	}
	c.now++
	*r = wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindSync, Time: c.now}}
	return nil
}

func (c *clock) Rewind() error { c.now = 0; return nil }

// TestPartKnowsWhetherTheRunGoesOn tells parts behind which the run goes on from those that end with it, each time that they are read.
func TestPartKnowsWhetherTheRunGoesOn(t *testing.T) {
	for _, test := range []struct {
		options Options
		cut     bool
	}{
		{Options{Until: 5}, true}, {Options{Since: 3, Until: 5}, true}, {Options{Since: 3}, false},
		{Options{Until: 12}, false}, {Options{Since: 20, Until: 30}, false}, {Options{Since: 4, Until: 4}, true}, {Options{Until: 11}, true},
	} {
		src := CutRange(&clock{last: 10, ended: 12}, test.options)
		for range 2 {
			var r wire.Record
			err := src.Next(&r)
			for ; err == nil; err = src.Next(&r) {
			}
			if got := src.(interface{ IsCut() bool }).IsCut(); !errors.Is(err, io.EOF) || got != test.cut {
				t.Errorf("%+v: cut %t, want %t; %v", test.options, got, test.cut, err)
			}
			if err := src.Rewind(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLateNamesBeginNoPart: a name that was found out late stands before what happened earlier, and neither begins nor
// ends a part.
func TestLateNamesBeginNoPart(t *testing.T) {
	create := func(time, object uint64) wire.Record {
		return wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindCreate, Time: time, Object: object, Tag: 1, Size: 8}}
	}
	tape := &records.Tape{Records: []wire.Record{
		{Process: 1, Event: wire.Event{Kind: wire.KindTag, Op: uint8(wire.TagsCaller), Time: 10, Tag: 1}},
		{Process: 1, Event: wire.Event{Kind: wire.KindSite, Time: 100, Tag: 1}},
		create(20, 1), create(60, 2),
	}}
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Since: 50}, "tag site create1carried create2 "},
		{Options{Until: 50}, "tag site create1 "},
		{Options{Since: 30, Until: 50}, "tag site create1carried "},
	} {
		src, got := CutRange(tape, test.options), ""
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
		var r wire.Record
		for src.Next(&r) == nil {
			got += r.Kind.String()
			if r.Kind == wire.KindCreate {
				got += strconv.Itoa(int(r.Object))
			}
			if r.Flags&wire.FlagCarried != 0 {
				got += "carried"
			}
			got += " "
			if test.options.Until > 0 && r.Time > test.options.Until {
				t.Errorf("%+v: %v is after the part", test.options, r.Event)
			}
		}
		if got != test.want {
			t.Errorf("%+v: %s, want %s", test.options, got, test.want)
		}
	}
}
