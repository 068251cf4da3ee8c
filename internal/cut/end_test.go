package cut

import (
	"errors"
	"io"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// clock is a source whose records have the times 1 to n.
type clock struct{ now, last uint64 }

func (c *clock) Next(r *wire.Record) error {
	if c.now == c.last {
		return io.EOF
	}
	c.now++
	*r = wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindSync, Time: c.now}}
	return nil
}

func (c *clock) Rewind() error { c.now = 0; return nil }

// TestCut tells parts behind which the run goes on from those that end with it, each time that they are read.
func TestCut(t *testing.T) {
	for _, test := range []struct {
		options Options
		cut     bool
	}{
		{Options{Until: 5}, true}, {Options{Since: 3, Until: 5}, true}, {Options{Since: 3}, false},
		{Options{Until: 10}, false}, {Options{Since: 20, Until: 30}, false}, {Options{Since: 4, Until: 4}, true},
	} {
		src := Range(&clock{last: 10}, test.options)
		for range 2 {
			var r wire.Record
			err := src.Next(&r)
			for ; err == nil; err = src.Next(&r) {
			}
			if got := src.(interface{ Cut() bool }).Cut(); !errors.Is(err, io.EOF) || got != test.cut {
				t.Errorf("%+v: cut %t, want %t; %v", test.options, got, test.cut, err)
			}
			if err := src.Rewind(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
