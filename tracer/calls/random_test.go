package calls_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// thing is a memory object in the driver of a world.
type thing struct {
	handle, size   uint64
	refs, children int
	parent         *thing
	svm            bool
}

// world is a correct program and its driver. The tracker misses the first of its calls.
type world struct {
	*sampler
	rapid    *rapid.T
	model    *stats.Model
	attached bool
	lossy    bool     // calls are lost now and then
	things   []*thing // alive, with a reference
	pinned   int      // alive without a reference
	handles  []uint64 // free ones
	refs     uint64   // references that the latest record must have
}

func newWorld(t *testing.T, r *rapid.T) *world {
	w := &world{sampler: newSampler(t), rapid: r, model: stats.New(stats.Options{Started: 1})}
	for i := range uint64(12) {
		w.handles = append(w.handles, buf+0x100*i)
	}
	return w
}

// do makes a call, and passes it to the tracker once that is attached.
func (w *world) do(c call) {
	if !w.attached {
		w.now += 20
		return
	}
	if w.lossy && rapid.IntRange(0, 15).Draw(w.rapid, "lost") == 0 {
		w.now += 20
		w.tracker.NoteCallsLost()
		return
	}
	w.sampler.do(c)
	for i := range w.records {
		r := &w.records[i]
		r.Process = 1
		w.model.Apply(r)
		if r.Kind == wire.KindDiag {
			w.rapid.Fatalf("a mistake of a program without mistakes: %s", line(r))
		}
	}
}

func (w *world) take() uint64 {
	at := rapid.IntRange(0, len(w.handles)-1).Draw(w.rapid, "handle")
	handle := w.handles[at]
	w.handles = slices.Delete(w.handles, at, at+1)
	return handle
}

func (w *world) pick(want func(*thing) bool) *thing {
	var fit []*thing
	for _, o := range w.things {
		if want(o) {
			fit = append(fit, o)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return rapid.SampledFrom(fit).Draw(w.rapid, "thing")
}

func (w *world) create() {
	if len(w.handles) == 0 {
		return
	}
	o := &thing{size: rapid.Uint64Range(1, 1000).Draw(w.rapid, "size"), refs: 1}
	if parent := w.pick(func(o *thing) bool { return !o.svm && o.parent == nil }); parent != nil && rapid.Bool().Draw(w.rapid, "part") {
		o.handle, o.parent = w.take(), parent
		o.size = min(o.size, parent.size)
		parent.children++
		w.do(call{name: "clCreateSubBuffer", result: o.handle, args: []uint64{parent.handle, 0, 0x1220, 9},
			copies: [2][]byte{words(parent.size-o.size, o.size)}})
	} else if o.handle = w.take(); rapid.Bool().Draw(w.rapid, "svm") {
		o.svm = true
		w.do(call{name: "clSVMAlloc", result: o.handle, args: []uint64{ctx, 1, o.size}})
	} else {
		w.do(call{name: "clCreateBuffer", result: o.handle, args: []uint64{ctx, 1, o.size, 0}})
	}
	w.things = append(w.things, o)
}

func (w *world) fail() { w.do(call{name: "clCreateBuffer", args: []uint64{ctx, 1, 77, 0}, err: -61}) }

func (w *world) retain() {
	if o := w.pick(func(o *thing) bool { return !o.svm }); o != nil {
		o.refs++
		w.do(call{name: "clRetainMemObject", args: []uint64{o.handle}})
		w.refs = uint64(o.refs)
	}
}

func (w *world) release() {
	if o := w.pick(func(*thing) bool { return true }); o != nil {
		w.let(o)
	}
}

func (w *world) let(o *thing) {
	name, args := "clReleaseMemObject", []uint64{o.handle}
	if o.svm {
		name, args = "clSVMFree", []uint64{ctx, o.handle}
	}
	o.refs--
	w.refs = uint64(o.refs)
	if o.refs == 0 {
		w.things = slices.DeleteFunc(w.things, func(other *thing) bool { return other == o })
		w.pinned++
		for ; o != nil && o.refs == 0 && o.children == 0; o = o.parent {
			w.handles = append(w.handles, o.handle)
			w.pinned--
			if o.parent != nil {
				o.parent.children--
			}
		}
	}
	w.do(call{name: name, args: args})
}

func (w *world) use() {
	if o := w.pick(func(o *thing) bool { return !o.svm }); o != nil {
		end := rapid.Uint64Range(1, o.size).Draw(w.rapid, "end")
		w.do(call{name: "clEnqueueWriteBuffer", args: []uint64{queue, o.handle, 0, 0, end}})
	}
}

func (w *world) argument() {
	if o := w.pick(func(o *thing) bool { return !o.svm }); o != nil {
		index := rapid.Uint64Range(0, 3).Draw(w.rapid, "index")
		w.do(call{name: "clSetKernelArg", args: []uint64{kern, index, 8, 9}, copies: [2][]byte{words(o.handle)}})
	}
}

func (w *world) launch() { w.do(call{name: "clEnqueueTask", args: []uint64{queue, kern}}) }

// held returns what the program holds: bytes, and objects with a reference.
func (w *world) held() (bytes, live uint64) {
	seen := map[*thing]bool{}
	for _, o := range w.things {
		live++
		if o.parent != nil {
			o = o.parent
		}
		if !seen[o] {
			seen[o] = true
			bytes += o.size
		}
	}
	return bytes, live
}

var steps = []func(*world){
	(*world).create, (*world).create, (*world).create, (*world).fail, (*world).retain, (*world).release, (*world).release,
	(*world).release, (*world).use, (*world).argument, (*world).launch,
}

// TestTrackerHoldsWhatTheDriverHolds: if watched from its start, a program holds what its driver says. If watched later, it has no findings, and
// nothing is left once it has released everything.
func TestTrackerHoldsWhatTheDriverHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, r)
		attach := rapid.IntRange(-20, 20).Draw(r, "attach")
		for i := range rapid.IntRange(20, 120).Draw(r, "steps") {
			w.attached = i >= attach
			w.records = nil
			step := rapid.IntRange(0, len(steps)-1).Draw(r, "step")
			w.refs = 1 << 63
			steps[step](w)
			if attach <= 0 {
				w.check()
			}
		}
		w.attached = true
		for len(w.things) > 0 {
			w.records = nil
			w.let(w.things[0])
		}
		s := w.model.Snapshot()
		if s.Totals.InUse != 0 || s.Totals.LiveBuffers != 0 || s.Unknown != 0 {
			r.Fatalf("at the end %d bytes in %d objects, %d unknown events", s.Totals.InUse, s.Totals.LiveBuffers, s.Unknown)
		}
	})
}

// TestLossyWorld: lost calls of a correct program cause no findings.
func TestLossyWorld(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, r)
		w.attached, w.lossy = true, true
		w.tracker.NoteSeenFromStart()
		for range rapid.IntRange(20, 120).Draw(r, "steps") {
			w.records = nil
			steps[rapid.IntRange(0, len(steps)-1).Draw(r, "step")](w)
		}
	})
}

func (w *world) check() {
	bytes, live := w.held()
	s := w.model.Snapshot()
	if s.Totals.InUse != bytes || s.Totals.LiveBuffers != live || s.Unknown != 0 {
		w.rapid.Fatalf("%d bytes in %d objects, want %d in %d; %d unknown events", s.Totals.InUse, s.Totals.LiveBuffers, bytes, live, s.Unknown)
	}
	if w.refs == 1<<63 {
		return
	}
	for i := range w.records {
		r := &w.records[i]
		if (r.Kind == wire.KindRetain || r.Kind == wire.KindRelease) && r.Outcome != wire.OutcomePinned {
			if r.Granted != w.refs {
				w.rapid.Fatalf("%s, want %d references", line(r), w.refs)
			}
			return
		}
	}
}
