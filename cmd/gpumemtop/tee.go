package main

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// outlet is one file that a run is recorded into.
type outlet struct {
	session.Recorder
	path string
	what string // for the note about its end
	err  error  // that ended it early
}

// tee records into several files. One that breaks does not end the others.
type tee []*outlet

// Append implements session.Recorder. It fails when nothing is left to record into.
func (t tee) Append(r *wire.Record) error {
	return t.each(func(o *outlet) error { return o.Append(r) })
}

// Flush implements session.Recorder.
func (t tee) Flush() error { return t.each((*outlet).Flush) }

// Bytes implements session.Recorder: those of the first file.
func (t tee) Bytes() uint64 { return t[0].Bytes() }

func (t tee) each(do func(*outlet) error) error {
	whole, last := 0, error(nil)
	for _, o := range t {
		if o.err == nil {
			o.err = do(o)
		}
		if o.err == nil {
			whole++
		} else {
			last = o.err
		}
	}
	if whole > 0 {
		return nil
	}
	return last
}

// Ended implements session.Keeper.
func (t tee) Ended(process uint32, status session.Status) {
	for _, o := range t {
		if keeper, ok := o.Recorder.(session.Keeper); ok {
			keeper.Ended(process, status)
		}
	}
}
