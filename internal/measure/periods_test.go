package measure

import (
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestPoolKnowsLongIterations: one message says how long iterations take, where they take seconds, and another says that they are over.
func TestPoolKnowsLongIterations(t *testing.T) {
	for name, test := range map[string]struct {
		each, requests uint64 // ns of an iteration, and requests in it
		stops          bool   // the requests no longer repeat in the end
		want           []string
	}{
		"twenty seconds": {each: 20e9, requests: 4, want: []string{"period 20000000000"}},
		"it ends":        {each: 20e9, requests: 4, stops: true, want: []string{"period 20000000000", "period 0"}},
		"one second":     {each: 1e9, requests: 4},
		"many":           {each: 20e9, requests: 20_000},
	} {
		var got []string
		p := Periods{Send: func(process uint32, text string) {
			if process != 7 {
				t.Errorf("%s: process %d", name, process)
			}
			got = append(got, text)
		}}
		request := func(time, size uint64) {
			r := wire.Record{Event: wire.CreateFields{Time: time, Outcome: wire.OutcomeHit, Requested: size, Tag: 1}.Event()}
			r.Process = 7
			p.TakeRecord(&r)
		}
		now := uint64(1e9)
		for range 12 {
			for i := range test.requests {
				request(now+i*1000, 4096*(1+i))
			}
			now += test.each
		}
		for i := range uint64(1000) {
			if test.stops {
				request(now, 4096*(1000+i*i))
				now += 1e8
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: sent %q, want %q", name, got, test.want)
		}
	}
}
