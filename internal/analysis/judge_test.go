package analysis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// loop makes iterations of one temporary buffer, which the driver takes so long to create.
func loop(s *tape, times int, outcome wire.Outcome, cost uint32) {
	for range times {
		object := s.create(outcome, 1, mib, mib, 0)
		s.last().Cost = cost
		if outcome == wire.OutcomeMiss {
			s.last().Reason = uint8(wire.MissPolicy)
		}
		s.release(object, wire.OutcomeDriver)
	}
}

// leaking loses a buffer in each of some iterations.
func leaking(s *tape, times int) {
	for range times {
		s.release(s.driver(1, 100), wire.OutcomeDriver)
		s.driver(2, mib)
	}
}

// copying creates a buffer with the program's bytes.
func copying(s *tape, creates int, cost uint32) {
	for range creates {
		object := s.driver(1, mib)
		s.last().Access, s.last().Cost = wire.CopyHostPtr, cost
		s.release(object, wire.OutcomeDriver)
	}
}

// requests adds hits, and misses that the pool could have served.
func requests(s *tape, hits, misses uint64) { requestsAt(s, hits, misses, ms/10) }

func cheapRequests(s *tape, hits, misses uint64) { requestsAt(s, hits, misses, 100) }

func requestsAt(s *tape, hits, misses uint64, cost uint32) {
	first := s.create(wire.OutcomeMiss, 1, 64, 64, 1)
	s.release(first, wire.OutcomeCached)
	for n := range hits + misses {
		if (n+1)*misses/(hits+misses) > n*misses/(hits+misses) {
			object := s.create(wire.OutcomeMiss, 2, 1000+n, 1000+n, 100+n)
			s.last().Reason, s.last().Cost = uint8(wire.MissTooSmall), cost
			s.release(object, wire.OutcomeCached)
			continue
		}
		s.release(s.create(wire.OutcomeHit, 1, 64, 64, 1), wire.OutcomeCached)
	}
}

// pooled leaves n free blocks of 1 MiB, and then takes the peak.
func pooled(s *tape, blocks uint64) {
	for n := range blocks {
		s.create(wire.OutcomeMiss, 1, mib, mib, n+1)
	}
	for n := range blocks {
		s.release(n+1, wire.OutcomeCached)
	}
	object := s.driver(2, blocks*mib+1)
	s.now += 50 * ms
	s.release(object, wire.OutcomeDriver)
}

// TestFragmentationIsThatOfThePeak: what is free right after the peak, within the same step of the timeline, does not count.
func TestFragmentationIsThatOfThePeak(t *testing.T) {
	s := newTape()
	for n := range uint64(4) {
		s.create(wire.OutcomeMiss, 1, mib, mib, n+1)
	}
	for n := range uint64(4) {
		s.release(n+1, wire.OutcomeCached)
	}
	s.create(wire.OutcomeMiss, 2, 8*mib, 8*mib, 5)
	s.release(5, wire.OutcomeCached)
	s.now += 50 * ms
	s.exit()
	if a := s.analyse(t); a.fragmentationAtPeak() != 0.75 || a.Timeline.Fragmentation[0] == 0.75 {
		t.Errorf("%v at the peak, %v at the end of its step", a.fragmentationAtPeak(), a.Timeline.Fragmentation[0])
	}
}

// early releases 20 buffers whose commands it has not waited for, or waits in each round. RSS grows meanwhile by so much; 0: it is unknown.
func early(s *tape, size uint64, waits bool, grows uint64) {
	s.device(1 << 30)
	s.last().Flags = wire.FlagUnified
	rss := func(bytes uint64) {
		if grows > 0 {
			s.put(wire.MachineFields{Source: wire.MachineRSS, Resident: bytes}.Event(), "")
		}
	}
	rss(size)
	for range 20 {
		object := s.driver(1, size)
		s.use(object)
		s.release(object, wire.OutcomeDriver)
		if waits {
			s.put(wire.SyncFields{Sync: wire.SyncFinish}.Event(), "")
		}
	}
	rss(size + grows)
	s.put(wire.SyncFields{Sync: wire.SyncFinish}.Event(), "")
}

// unseen makes blocks of 32 MiB, one after the other, whose commands are no events, and the process grows.
func unseen(blocks int, grows uint64) func(*tape) {
	return func(s *tape) {
		s.device(1 << 30)
		s.last().Flags = wire.FlagUnified
		s.put(wire.MachineFields{Source: wire.MachineRSS, Resident: mib}.Event(), "")
		for range blocks {
			s.release(s.create(wire.OutcomeMiss, 1, 32*mib, 32*mib, 1), wire.OutcomeDriver)
		}
		s.put(wire.MachineFields{Source: wire.MachineRSS, Resident: mib + grows}.Event(), "")
	}
}

// keeping uses a buffer and keeps it for a time.
func keeping(s *tape, after uint64) {
	object := s.driver(1, mib)
	s.now += 100 * ms
	s.use(object)
	s.now += after
	s.release(s.driver(2, mib), wire.OutcomeDriver) // which could have had the memory
	s.release(object, wire.OutcomeDriver)
}

func serve(s *tape, size, granted uint64) {
	s.release(s.create(wire.OutcomeMiss, 1, size, granted, 1), wire.OutcomeCached)
}

// diagnoses are the titles with a stream that they are for, and one that they are not for.
var diagnoses = []struct {
	title    string
	fires    func(*tape)
	not      func(*tape)
	policy   string
	evidence string // in the text
	knob     string
}{
	{"mistake", func(s *tape) {
		s.put(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagDoubleRelease), Status: -38}, "clReleaseMemObject")
	}, func(s *tape) {
		s.put(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagForked)}, "a child")
	}, "futhark", "double release", ""},
	{"4 calls refused", func(s *tape) { refusing(s, 0) }, func(s *tape) { refusing(s, 1<<40) }, "futhark",
		"create of a buffer of 0 B at tag 7 failed with CL_INVALID_BUFFER_SIZE (-61) (3 times): the standard has this code where the size is 0", ""},
	{"failed (-4)", shortening(-4), shortening(0), "futhark", "1.00 MiB in use", ""},
	{"memory grows", func(s *tape) { leaking(s, 10) }, func(s *tape) { iterate(s) }, "futhark", "10 iterations leaves 1.00 MiB more", ""},
	{"never released", func(s *tape) { leaking(s, 1) }, func(s *tape) { iterate(s) }, "futhark", "1.00 MiB of it from tag 2", ""},
	{"5 events lost (2 of them uses)", func(s *tape) {
		s.put(wire.Event{Kind: wire.KindLost, Size: 5, Granted: 2}, "")
	}, func(s *tape) { loop(s, 3, wire.OutcomeDriver, 0) }, "futhark", "too high or too low", ""},
	{"driver may hold", func(s *tape) { early(s, mib, false, 0) }, func(s *tape) { early(s, mib, true, 0) }, "none",
		"up to 20.0 MiB, beside at most 1.00 MiB in use: 20 releases (20.0 MiB in all)", ""},
	{"driver may hold", func(s *tape) { early(s, mib, false, 30*mib) }, func(s *tape) { early(s, mib, false, 5*mib) }, "none", "an earlier round; the most, 20.0 MiB, was created at tag 1", ""},
	{"driver may hold", func(s *tape) { early(s, 128*mib, false, 460*mib) }, func(s *tape) { early(s, 128*mib, false, 440*mib) }, "none", "up to 2.50 GiB", ""},
	{"grew beside the buffers", unseen(40, 288*mib), unseen(40, 287*mib), "none", "by 256.0 MiB, the memory of the process, while at most 32.0 MiB was reserved", ""},
	{"grew beside the buffers", unseen(5, 300*mib), unseen(4, 300*mib), "none", "--policy futhark", ""}, // the driver was asked for less
	{"grew beside the buffers", unseen(40, 300*mib), func(s *tape) {
		unseen(40, 300*mib)(s)
		s.use(s.driver(1, mib))
	}, "none", "-o", ""},
	{"device memory", func(s *tape) {
		s.device(10 * mib)
		s.release(s.driver(1, 9*mib+mib/2), wire.OutcomeDriver)
	}, func(s *tape) {
		s.device(10 * mib)
		s.release(s.driver(1, 8*mib), wire.OutcomeDriver)
	}, "futhark", "9.50 MiB of 10.0 MiB", ""},
	{"device memory", func(s *tape) {
		s.device(10 * mib)
		s.release(s.driver(1, 10*mib-4096), wire.OutcomeDriver)
	}, func(s *tape) { s.device(10 * mib) }, "futhark", "9.996 MiB of 10.000 MiB", ""},
	{"few requests", func(s *tape) { requests(s, 50, 50) }, func(s *tape) { requests(s, 95, 5) }, "futhark", "too small", ""},
	{"few requests", func(s *tape) { requests(s, 50, 50) }, func(s *tape) { cheapRequests(s, 50, 50) }, "futhark", "too small", ""},
	{"goes to the driver", func(s *tape) { loop(s, 30, wire.OutcomeMiss, ms/2) },
		func(s *tape) { loop(s, 5, wire.OutcomeMiss, ms/2) }, "none", "30 creates", ""},
	{"goes to the driver", func(s *tape) { loop(s, 30, wire.OutcomeMiss, ms/2) },
		func(s *tape) { loop(s, 30, wire.OutcomeMiss, 1000) }, "none", "30 creates", ""},
	{"creates that copy", func(s *tape) { copying(s, 20, ms/2) }, func(s *tape) { copying(s, 20, 1000) }, "futhark", "20 creates with CL_MEM_COPY_HOST_PTR", ""},
	{"creates that copy", func(s *tape) { copying(s, 20, ms/2) }, func(s *tape) { copying(s, 19, ms/2) }, "futhark", "20 creates", ""},
	{"before the loop", func(s *tape) { loop(s, 30, wire.OutcomeDriver, ms/2) },
		func(s *tape) { loop(s, 30, wire.OutcomeDriver, 500) }, "none", "30 buffers of tag 1", ""},
	{"long after", func(s *tape) { keeping(s, 100*ms) }, func(s *tape) { keeping(s, ms) }, "futhark", "held 10", ""},
	{"much larger", func(s *tape) { serve(s, mib+1, 2*mib) }, func(s *tape) { serve(s, mib, mib+1) }, "mantissa", "50.0 %", "mantissa_bits=5"},
	{"much larger", func(s *tape) { serve(s, mib+1, 2*mib) }, func(s *tape) { serve(s, 5, 50) }, "futhark-2018", "50.0 %", "max_waste_ratio=1.25"},
	{"much larger", on(99*mib, func(s *tape) { serve(s, mib+1, 2*mib) }), on(101*mib, func(s *tape) { serve(s, mib+1, 2*mib) }), "mantissa", "50.0 %", ""},
	{"long after", on(40*mib, func(s *tape) { keeping(s, 100*ms) }), on(400*mib, func(s *tape) { keeping(s, 100*ms) }), "futhark", "held 10", ""},
	{"reserves much more", func(s *tape) { outgrowing(s, 3*mib) }, func(s *tape) { outgrowing(s, mib) }, "futhark",
		"at most 7.00 MiB reserved for at most 4.00 MiB in use; when most was reserved, at most 3.00 MiB in use, 4.00 MiB free in the pool", ""},
	{"reserves much more", on(300*mib, func(s *tape) { outgrowing(s, 3*mib) }), on(400*mib, func(s *tape) { outgrowing(s, 3*mib) }), "futhark",
		"at most 7.00 MiB", ""},
	{"reserves much more", on(400*mib, func(s *tape) { outgrowing(s, 4*mib) }), on(400*mib, func(s *tape) { outgrowing(s, 3*mib) }), "futhark", // a note
		"at most 8.00 MiB", ""},
	{"refused on other", func(s *tape) { part(s, 4096+128) }, func(s *tape) { part(s, 8192) }, "futhark", "1 begins at no multiple of 4.00 KiB, the least aligned at a multiple of 128 B", ""},
	{"own memory", func(s *tape) { ownMemory(s, mib, wire.FlagOffPage) }, func(s *tape) { ownMemory(s, mib, 0) }, "futhark",
		"1 buffer at no multiple of 4096 bytes, 1.00 MiB in all, the largest at tag 1", ""},
	{"own memory", func(s *tape) { ownMemory(s, mib+4, 0) }, func(s *tape) { ownMemory(s, 1000, wire.FlagOffPage) }, "futhark",
		"1 buffer whose size is no multiple of 64 bytes", ""},
	{"iteration keeps", func(s *tape) { hoarding(s, 10, false) }, func(s *tape) { hoarding(s, 10, true) }, "futhark", "10 iterations leaves 1.00 MiB more", ""},
	{"iteration keeps", func(s *tape) { hoarding(s, 10, false) }, func(s *tape) { leaking(s, 10) }, "futhark", "from tag 2", ""},
	{"iteration keeps", func(s *tape) { array(s, 40) }, func(s *tape) { array(s, 8) }, "futhark", "40 iterations leaves 1.00 MiB more", ""},
	{"splits buffers itself", func(s *tape) { parts(s, 2, 10) }, func(s *tape) { parts(s, 7, 3) }, "futhark", "20 sub-buffers of 2 buffers", ""},
	{"splits buffers itself", func(s *tape) { parts(s, 2, 10) }, func(s *tape) { parts(s, 1, 19) }, "futhark", "its own decision", ""},
	{"keeps its buffers", func(s *tape) { hoisting(s, 105, 1) }, func(s *tape) { hoisting(s, 105, 2) }, "futhark", "creates 1 buffer and uses existing buffers 10", ""},
	{"keeps its buffers", func(s *tape) { hoisting(s, 105, 0) }, func(s *tape) { hoisting(s, 90, 0) }, "futhark", "0 buffers", ""},
	{"refused on other", func(s *tape) { part(s, 64) }, func(s *tape) { part(s, 0) }, "futhark", "at a multiple of 64 B", ""},
	{"several places", func(s *tape) { called(s, 2, 1) }, func(s *tape) { called(s, 1, 1) }, "futhark", "2 places call a.c:7 make: --wrapper '^make$'", ""},
	{"several places", func(s *tape) { called(s, 3, 4) }, func(s *tape) { called(s, 2, 9) }, "futhark", "3 places", ""},
	{"end inside libraries", func(s *tape) { below(s, 8, "/usr/lib/libcv.so+0x90", 1) }, func(s *tape) { below(s, 8, "app+0x90", 1) }, "futhark",
		"100 % of the creates have call sites in libraries alone, as libcv.so+0x1, because stacks end after 8 frames: --stack-depth 24 follows", ""},
	{"end inside libraries", func(s *tape) { below(s, 8, "/usr/lib/libcv.so+0x90", 5) }, func(s *tape) { below(s, 8, "/usr/lib/libcv.so+0x90", 6) }, "futhark", "20 %", ""},
	{"end inside libraries", func(s *tape) { below(s, 8, "/usr/lib/libcv.so+0x90", 1) }, func(s *tape) { below(s, 8, "/usr/lib/libc.so.6+0x90", 1) }, "futhark", "", ""},
	{"end inside libraries", func(s *tape) { below(s, 31, "/usr/lib/libcv.so+0x90", 1) }, func(s *tape) { below(s, 32, "app+0x90", 1) }, "futhark", "depth 32", ""},
	{"end inside libraries", func(s *tape) { below(s, 32, "/usr/lib/libcv.so+0x90", 1) }, func(s *tape) { below(s, 32, "/usr/lib/libc.so.6+0x90", 1) }, "futhark",
		"after 32 frames, the most that is kept: a build of the library with debug information has names", ""},
	{"end inside libraries", func(s *tape) { below(s, 8, "/opt/app/libcv.so+0x90", 1) }, func(s *tape) { below(s, 8, "make\t/opt/app/cv.c\t7\t/opt/app/libcv.so+0x90", 1) }, "futhark",
		"because stacks end after 8 frames: --stack-depth 24 follows", ""},
	{"host's memory", func(s *tape) {
		s.put(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagHosted), Granted: 2 * mib}, "clCreateBuffer")
	}, func(s *tape) {
		s.put(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagForked)}, "a child")
	}, "pow2", "1 create (2.00 MiB)", ""},
	{"earlier owner", func(s *tape) { exposed(s, wire.ExposedZero, wire.ExposedOther) }, func(s *tape) { exposed(s, wire.ExposedOther, wire.ExposedUntried) },
		"futhark", "2 recycled buffers, which nothing had written; the driver's new memory was zero for 1 of them; most often (2) of tag 1", ""},
	{"earlier owner", func(s *tape) { exposed(s, wire.ExposedZero) }, func(s *tape) { exposed(s, wire.ExposedNo) },
		"futhark", "1 recycled buffer, which nothing had written; the driver's new memory was zero; most often (1) of tag 1", ""},
	{"earlier owner", func(s *tape) { exposed(s, wire.ExposedZero); exposedAt(s, 9, wire.ExposedZero) }, func(s *tape) { exposed(s, wire.ExposedNo) },
		"futhark", "most often (1) of tag 1 and of 1 other call site each; ", ""},
	{"fragmented", func(s *tape) { pooled(s, 4) }, func(s *tape) { pooled(s, 1) }, "futhark", "4.00 MiB was free", ""},
	{"fragmented", on(400*mib, func(s *tape) { pooled(s, 4) }), on(401*mib, func(s *tape) { pooled(s, 4) }), "futhark", "4.00 MiB was free", ""},
}

// on is a stream on a device: what does not matter beside its memory is not advised.
func on(memory uint64, do func(*tape)) func(*tape) {
	return func(s *tape) { s.device(memory); do(s) }
}

// exposed recycles a buffer, as a kernel is the first to use it.
func exposed(s *tape, how ...wire.Exposed) { exposedAt(s, 1, how...) }

func exposedAt(s *tape, tag uint32, how ...wire.Exposed) {
	s.release(s.create(wire.OutcomeMiss, tag, mib, mib, uint64(tag)), wire.OutcomeCached)
	for _, e := range how {
		release := s.release(s.create(wire.OutcomeHit, tag, mib, mib, uint64(tag)), wire.OutcomeCached)
		release.Flags = wire.ReleaseFields{Exposed: e}.Event().Flags
	}
}

// refusing has creates refused: of a size, which for lack of memory is another matter, and for a flag.
func refusing(s *tape, size uint64) {
	for range 3 {
		s.put(wire.CreateFields{Outcome: wire.OutcomeFailed, Status: -61, Tag: 7, Requested: size}.Event(), "")
	}
	if size == 0 {
		s.put(wire.CreateFields{Outcome: wire.OutcomeFailed, Status: -30, Tag: 8, Requested: size}.Event(), "")
	}
}

// Failures that are only counted are in the title, too.
func TestFailuresThatAreNotListed(t *testing.T) {
	d, _ := findRefusedCalls(&Evidence{Run: &stats.Snapshot{FailedCalls: []stats.FailedCall{{Call: "clFinish", Status: -36, Count: 2523}}, OtherFailed: 9906}})
	if want := "2523 calls refused, and 9906 more failures not listed"; d.Title != want {
		t.Errorf("%q, want %q", d.Title, want)
	}
}

// shortening has a create return a status while memory is in use.
func shortening(status int16) func(*tape) {
	return func(s *tape) {
		object := s.driver(1, mib)
		if status != 0 {
			s.put(wire.CreateFields{Outcome: wire.OutcomeFailed, Status: status, Tag: 7, Requested: mib}.Event(), "")
		}
		s.release(object, wire.OutcomeDriver)
	}
}

// ownMemory makes a buffer of the program's memory.
func ownMemory(s *tape, size uint64, flags uint8) {
	object := s.driver(1, size)
	s.last().Access, s.last().Flags = wire.UseHostPtr, flags
	s.release(object, wire.OutcomeDriver)
}

// part makes a sub-buffer at an origin.
func part(s *tape, at uint64) {
	whole := s.driver(1, 2*mib)
	s.put(wire.Event{
		Kind: wire.KindCreate, Op: uint8(wire.MemorySubBuffer), Object: 90, Tag: 2, Size: 64, Granted: 1 + at, Link: whole,
	}, "")
	s.release(90, wire.OutcomeDriver)
	s.release(whole, wire.OutcomeDriver)
}

// below creates a buffer with a stack of that many frames of a library, whose outermost may be of another module, and others beside it.
func below(s *tape, frames int, outermost string, all int) {
	text := ""
	for i := range frames - 1 {
		text += fmt.Sprintf("\t\t\t/usr/lib/libcv.so+0x%x\n", i+1)
	}
	s.put(wire.Event{Kind: wire.KindTag, Op: uint8(wire.TagsStack), Tag: 1}, strings.Repeat("0123456789abcdef", frames))
	s.put(wire.Event{Kind: wire.KindSite, Tag: 1}, text+strings.Repeat("\t", max(0, 3-strings.Count(outermost, "\t")))+outermost+"\n")
	s.put(wire.Event{Kind: wire.KindTag, Op: uint8(wire.TagsStack), Tag: 2}, "0123456789abcdef")
	s.site(2, "main")
	for i := range all {
		s.release(s.driver(min(uint32(i)+1, 2), 100+uint64(i)), wire.OutcomeDriver)
	}
}

// called creates buffers through one function, from some places, and others beside them that are larger.
func called(s *tape, places, others int) {
	for tag := range uint32(places) {
		s.put(wire.Event{Kind: wire.KindSite, Tag: tag + 1}, fmt.Sprintf("make\ta.c\t7\tapp+0x10\nmain\ta.c\t%d\tapp+0x%x\n", 20+tag, 32+tag))
		s.release(s.driver(tag+1, 100), wire.OutcomeDriver)
	}
	for range others {
		s.release(s.driver(9, mib), wire.OutcomeDriver)
	}
}

// hoarding keeps a buffer of each iteration, uses the last or all of them later, and releases all.
func hoarding(s *tape, times int, later bool) {
	var all []uint64
	for range times {
		s.release(s.driver(1, 100), wire.OutcomeDriver)
		all = append(all, s.driver(2, mib))
		s.use(all[len(all)-1])
	}
	for _, object := range all {
		if later {
			s.use(object)
		}
	}
	for _, object := range all {
		s.release(object, wire.OutcomeDriver)
	}
}

// array fills buffers, and then releases them.
func array(s *tape, buffers int) {
	var all []uint64
	for range buffers {
		all = append(all, s.driver(2, mib))
		s.use(all[len(all)-1])
	}
	for _, object := range all {
		s.release(object, wire.OutcomeDriver)
	}
}

// parts makes sub-buffers of some buffers.
func parts(s *tape, wholes, each int) {
	for n := range wholes {
		whole := s.driver(uint32(n+1), mib)
		for m := range each {
			s.put(wire.Event{
				Kind: wire.KindCreate, Op: uint8(wire.MemorySubBuffer), Object: uint64(1000 + 100*n + m), Tag: 9, Size: 4096,
				Granted: 1 + 4096*uint64(m), Link: whole,
			}, "")
		}
	}
}

// hoisting creates some buffers, and uses them.
func hoisting(s *tape, uses, later int) {
	object := s.driver(1, mib)
	for range 2 * uses {
		s.use(object)
	}
	for range later {
		s.release(s.driver(2, mib), wire.OutcomeDriver)
	}
	s.release(object, wire.OutcomeDriver)
}

func TestDiagnoses(t *testing.T) {
	for _, c := range diagnoses {
		s := newTape()
		c.fires(s)
		a := s.analyse(t, policy(c.policy, nil))
		d := diagnosis(a, c.title)
		switch {
		case d == nil:
			t.Errorf("%s: not found among %+v", c.title, a.Diagnoses)
		case !strings.Contains(d.Text, c.evidence):
			t.Errorf("%s: %q lacks %q", c.title, d.Text, c.evidence)
		case c.knob != "" && d.Knob.Limit+"="+d.Knob.Value != c.knob:
			t.Errorf("%s: knob %+v, want %s", c.title, d.Knob, c.knob)
		}
		s = newTape()
		c.not(s)
		if d := diagnosis(s.analyse(t, policy(c.policy, nil)), c.title); d != nil {
			t.Errorf("%s without reason: %+v", c.title, d)
		}
	}
}

func diagnosis(a *Analysis, title string) *Diagnosis {
	at := slices.IndexFunc(a.Diagnoses, func(d Diagnosis) bool { return strings.Contains(d.Title, title) })
	if at < 0 {
		return nil
	}
	return &a.Diagnoses[at]
}

// TestDoubtAfterLoss: no leak and no growth is stated as a fact once events are lost.
func TestDoubtAfterLoss(t *testing.T) {
	for title, fires := range map[string]func(*tape){
		"memory may grow":         func(s *tape) { leaking(s, 10) },
		"1 buffer perhaps never ": func(s *tape) { leaking(s, 1) },
	} {
		s := newTape()
		fires(s)
		s.put(wire.Event{Kind: wire.KindLost, Size: 5}, "")
		a := s.analyse(t, policy("futhark", nil))
		if d := diagnosis(a, title); d == nil || d.Severity != Note || !strings.Contains(d.Text, "lost") {
			t.Errorf("%s: %+v", title, a.Diagnoses)
		}
	}
}

// TestFillingIsNoGrowth: a loop that fills an array keeps nothing if the array is released later.
func TestFillingIsNoGrowth(t *testing.T) {
	s := newTape()
	var array []uint64
	for range 10 {
		iterate(s)
		array = append(array, s.driver(2, mib))
	}
	for _, object := range array {
		s.release(object, wire.OutcomeDriver)
	}
	a := s.analyse(t, policy("futhark", nil))
	if d := diagnosis(a, "memory grows"); d != nil || len(a.Phases) == 0 {
		t.Errorf("%+v, phases %+v", d, a.Phases)
	}
}

// TestTornRecordings: no leak is claimed, because what is in use there might have been released.
func TestTornRecordings(t *testing.T) {
	s := newTape()
	s.driver(1, mib)
	a := s.analyse(t, func(o *Options) { o.Whole = false })
	if d := diagnosis(a, "recording ends"); d == nil || d.Severity != Note || diagnosis(a, "never released") != nil || len(a.Leaks) != 1 {
		t.Errorf("%+v", a.Diagnoses)
	}
}

func TestDiagnosesComeInOrder(t *testing.T) {
	s := newTape()
	s.put(wire.Event{Kind: wire.KindLost, Size: 5}, "")
	requests(s, 50, 50)
	leaking(s, 10)
	rank := map[Severity]int{Problem: 0, Advice: 1, Note: 2}
	a := s.analyse(t)
	if len(a.Diagnoses) < 4 || !slices.IsSortedFunc(a.Diagnoses, func(a, b Diagnosis) int { return rank[a.Severity] - rank[b.Severity] }) {
		t.Errorf("%+v", a.Diagnoses)
	}
}

// missing makes misses of one reason and whatever the knob is worked out from.
func missing(s *tape, reason wire.Miss, evict wire.Evict) {
	for n := range uint64(4) { // four blocks of a call site are freed and sent away
		s.create(wire.OutcomeMiss, 1, 3*mib, 3*mib, n+1)
		s.last().Cost = 700
	}
	for n := range uint64(4) {
		s.release(n+1, wire.OutcomeRefused)
		s.put(wire.Event{Kind: wire.KindEvict, Link: n + 1, Granted: 3 * mib, Reason: uint8(evict)}, "")
	}
	for n := range uint64(4) {
		s.release(s.create(wire.OutcomeMiss, 1, 3*mib, 3*mib, n+11), wire.OutcomeDriver)
		r := &s.Records[len(s.Records)-2]
		r.Cost, r.Reason = 1000, uint8(reason)
	}
}

func TestMissesAndKnobs(t *testing.T) {
	for _, c := range []struct {
		reason wire.Miss
		evict  wire.Evict
		policy string
		limits recording.Limits
		want   string
	}{
		{wire.MissLimit, wire.EvictLimit, "futhark", recording.Limits{"max_cached_bytes": "1048576"}, "max_cached_bytes=16777216"}, // 12 MiB
		{wire.MissLimit, wire.EvictLimit, "none", nil, "="},
		{wire.MissLimit, wire.EvictAge, "futhark", nil, "max_age=0"},
		{wire.MissLimit, wire.EvictProportion, "slab", nil, "proportion=0"},
		{wire.MissLimit, wire.EvictOutgrown, "futhark", nil, "outgrown=off"},
		{wire.MissTagCap, wire.EvictTagCap, "futhark-2018", nil, "max_per_tag=5"},
		{wire.MissTagCap, wire.EvictTagCap, "buckets", nil, "max_per_bucket=20"},
		{wire.MissCooling, wire.EvictNone, "futhark", nil, "="},
		{wire.MissPolicy, wire.EvictPolicy, "none", nil, "="},
		{wire.MissTooWasteful, wire.EvictNone, "mantissa", nil, "mantissa_bits=3"},
		{wire.MissTooWasteful, wire.EvictNone, "futhark", recording.Limits{"steal_other_tag": "off"}, "steal_other_tag=on"},
		{wire.MissTooWasteful, wire.EvictNone, "pow2", nil, "="},
		{wire.Miss(77), wire.EvictNone, "futhark", nil, "="},
	} {
		s := newTape()
		missing(s, c.reason, c.evict)
		a := s.analyse(t, policy(c.policy, c.limits))
		var got *Miss
		for i := range a.Misses {
			if a.Misses[i].Reason != Reason(wire.MissCold.String()) {
				got = &a.Misses[i]
			}
		}
		if got == nil || got.Count != 4 || got.Bytes != 12*mib || got.LostNS != 4000 || got.Knob.Why == "" {
			t.Errorf("%s: %+v", c.reason, got)
			continue
		}
		if knob := got.Knob.Limit + "=" + got.Knob.Value; knob != c.want {
			t.Errorf("%s under %s: %s (%s), want %s", c.reason, c.policy, knob, got.Knob.Why, c.want)
		}
		if a.Misses[0].LostNS < a.Misses[len(a.Misses)-1].LostNS {
			t.Errorf("%s: the dearest is not the first", c.reason)
		}
	}
}

// TestWasteKnobComesFromTheBlocks: a free block three times as large would have served.
func TestWasteKnobComesFromTheBlocks(t *testing.T) {
	s := newTape()
	s.release(s.create(wire.OutcomeMiss, 1, 3*mib, 3*mib, 1), wire.OutcomeCached)
	for n := range uint64(3) {
		s.create(wire.OutcomeMiss, 2, mib, mib, n+5)
		s.last().Reason = uint8(wire.MissTooWasteful)
	}
	a := s.analyse(t)
	for _, m := range a.Misses {
		if m.Reason == "too wasteful" && (m.Knob.Limit != "max_waste_ratio" || m.Knob.Value != "3.1" || !strings.Contains(m.Knob.Why, "3.00 times")) {
			t.Errorf("%+v", m.Knob)
		}
	}
}

// TestSlabsCostTheirFirstPart: what the driver took for a slab is lost to the miss that needed it.
func TestSlabsCostTheirFirstPart(t *testing.T) {
	s := newTape()
	s.put(wire.Event{Kind: wire.KindSlab, Link: 1, Granted: 8 * mib, Cost: 9000}, "")
	for n := range uint64(2) {
		s.create(wire.OutcomeMiss, 1, mib, mib, n+2)
		s.last().Flags, s.last().Cost = wire.FlagSubAlloc, 9500
	}
	a := s.analyse(t, policy("slab", nil))
	if len(a.Misses) != 1 || a.Misses[0].LostNS != 9000 || a.Misses[0].Knob.Why != coldWithSlabs || a.CreateCost.Calls != 1 || len(a.Timeline.Free) != 1 ||
		a.Timeline.Free[0].Name != callsite.Slabs || a.Timeline.Free[0].Values[len(a.Timeline.InUse)-1] != 6*mib {
		t.Errorf("%+v, %+v, %+v", a.Misses, a.CreateCost, a.Timeline.Free)
	}
}

// TestHalvesAreOfCalls: the place of a process, which the session writes early, and the exit are no calls.
func TestHalvesAreOfCalls(t *testing.T) {
	s := newTape()
	s.process, s.thread = 1, 0
	s.put(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagPlace)}, "\t\t\t\t\t\t\t1\t")
	s.thread, s.now = 11, s.now+10*ms
	object := s.driver(1, mib) // at 12 ms; the last call is at 223 ms
	for range 210 {
		s.use(object)
	}
	s.release(object, wire.OutcomeDriver)
	s.now += 1000 * ms
	s.exit()
	if d := diagnosis(s.analyse(t, policy("none", nil)), "keeps its buffers"); d == nil || !strings.Contains(d.Text, "uses existing buffers 105 times") {
		t.Errorf("%+v, want 105 uses in the later half", d)
	}
}

// TestObjectsAreCountedAtHalf: records that come late, with later times, do not begin the later half.
func TestObjectsAreCountedAtHalf(t *testing.T) {
	for _, late := range []uint64{0, 150 * ms} {
		s := newTape()
		object := s.driver(1, mib)
		s.put(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagPlace), Time: s.now + late}, "\t\t\t\t\t\t\t1\t").Thread = 0
		for range 200 {
			s.put(wire.UseFields{Command: wire.CommandMap, Object: object, Tag: 1, Bytes: mib}.Event(), "")
		}
		s.exit()
		if d := diagnosis(s.analyse(t), "map without unmap"); d == nil || !strings.Contains(d.Text, "; 101 fewer were open at half") {
			t.Errorf("a place %d ns later: %+v, want 101 fewer at half", late, d)
		}
	}
}

// TestEvictedAndMissedAgain: what comes back is not counted twice.
func TestEvictedAndMissedAgain(t *testing.T) {
	s := newTape()
	for n := range uint64(20) {
		object := s.create(wire.OutcomeMiss, 1, 3*mib, 3*mib, n+1)
		s.last().Reason = uint8(wire.MissLimit)
		s.release(object, wire.OutcomeRefused)
		s.put(wire.Event{Kind: wire.KindEvict, Link: n + 1, Granted: 3 * mib, Reason: uint8(wire.EvictLimit)}, "")
	}
	a := s.analyse(t, policy("futhark", recording.Limits{"max_cached_bytes": "1048576"}))
	if k := a.Misses[0].Knob; k.Value != "4194304" {
		t.Errorf("%+v, want a limit for one block of 3 MiB", k)
	}
}

// outgrowing has four buffers of 1 MiB at once, and later one of another size alone.
func outgrowing(s *tape, size uint64) {
	var objects []uint64
	for block := range uint64(4) {
		objects = append(objects, s.create(wire.OutcomeMiss, 1, mib, mib, block+1))
	}
	for _, object := range objects {
		s.release(object, wire.OutcomeCached)
	}
	s.release(s.create(wire.OutcomeMiss, 2, size, size, 9), wire.OutcomeCached)
}

// TestShortLagIsNone: it is the way from one line of the program to the next.
func TestShortLagIsNone(t *testing.T) {
	s := newTape()
	object := s.driver(1, mib)
	s.use(object)
	s.now -= ms / 2
	s.release(object, wire.OutcomeDriver)
	if d := diagnosis(s.analyse(t), "long after"); d != nil {
		t.Errorf("%+v", d)
	}
}

// TestLagOfLittleIsNone: it is not worth a change of the program.
func TestLagOfLittleIsNone(t *testing.T) {
	for size, found := range map[uint64]bool{mib: true, mib / 4: false} {
		s := newTape()
		object := s.driver(1, size)
		s.use(object)
		s.now += 100 * ms
		s.release(s.driver(2, size), wire.OutcomeDriver)
		s.release(object, wire.OutcomeDriver)
		if d := diagnosis(s.analyse(t), "long after"); (d != nil) != found || found && !strings.Contains(d.Text, "985.0 KiB of the 1.00 MiB in use were idle so") {
			t.Errorf("%d: %+v", size, d)
		}
	}
}

// TestLagIsPartOfWhatIsInUse also where the create comes after a later record of another thread.
func TestLagIsPartOfWhatIsInUse(t *testing.T) {
	s := newTape()
	s.release(s.driver(2, 64), wire.OutcomeDriver)
	s.now += 100 * ms
	s.release(s.driver(2, 64), wire.OutcomeDriver)
	s.now -= 99 * ms
	object := s.driver(1, mib)
	s.use(object)
	s.now += 200 * ms
	s.release(s.driver(2, 64), wire.OutcomeDriver)
	s.release(object, wire.OutcomeDriver)
	if d := diagnosis(s.analyse(t), "long after"); d == nil || !strings.Contains(d.Text, "980.1 KiB of the 994.7 KiB in use were idle so") {
		t.Errorf("%+v", d)
	}
}

// TestFragmentedMemoryAdvisesNoPolicy: none was tried.
func TestFragmentedMemoryAdvisesNoPolicy(t *testing.T) {
	for _, policy := range []string{"futhark", "slab"} {
		d, found := findFragmentation(&Evidence{
			Run: &stats.Snapshot{Policy: policy}, Memory: &Memory{When: now, InUse: mib, Reserved: 9 * mib, Fragmentation: 0.8},
		})
		if !found || strings.Contains(d.Text, "--policy") {
			t.Errorf("%s: %+v", policy, d)
		}
	}
}

// TestLagAtTheEndIsNone: memory that a program holds while it winds up is wanted by no one.
func TestLagAtTheEndIsNone(t *testing.T) {
	s := newTape()
	object := s.driver(1, mib)
	s.use(object)
	s.now += 1000 * ms
	s.release(object, wire.OutcomeDriver)
	if d := diagnosis(s.analyse(t), "long after"); d != nil {
		t.Errorf("%+v", d)
	}
}

// TestFractionIsTheKnob where it is the lower of both limits.
func TestFractionIsTheKnob(t *testing.T) {
	s := newTape()
	s.device(100 * mib)
	missing(s, wire.MissLimit, wire.EvictLimit)
	a := s.analyse(t, policy("futhark", recording.Limits{"max_cached_fraction": "0.01"}))
	at := slices.IndexFunc(a.Misses, func(m Miss) bool { return m.Reason == "limit" })
	if k := a.Misses[at].Knob; k.Limit != "max_cached_fraction" || k.Value != "0.12" {
		t.Errorf("%+v", k)
	}
}

// TestGrowthExplainsColdMisses: a loop that keeps what it creates gets one finding, not another about a useless pool.
func TestGrowthExplainsColdMisses(t *testing.T) {
	s := newTape()
	for n := range uint64(30) {
		s.create(wire.OutcomeMiss, 1, mib, mib, n+1)
		s.create(wire.OutcomeMiss, 2, mib, mib, n+101)
	}
	s.exit()
	for _, d := range s.analyse(t).Diagnoses {
		if d.Title == "the pool serves few requests" {
			t.Errorf("%+v", d)
		}
	}
}

// TestFillIsNoGrowth: a program that creates its buffers at its start, and then uses them or fails, keeps what it needs.
func TestFillIsNoGrowth(t *testing.T) {
	for name, test := range map[string]struct {
		uses, releases bool
		status         int16
		grows          bool
	}{
		"used": {uses: true}, "failed": {status: 1}, "killed": {status: 137}, "forgotten": {grows: true},
		"failed after a loop": {releases: true, status: 1, grows: true}, "used after a loop": {releases: true, uses: true, grows: true},
	} {
		s := newTape()
		var objects []uint64
		for n := range uint64(40) {
			if test.releases {
				s.release(s.driver(2, mib), wire.OutcomeDriver)
			}
			objects = append(objects, s.create(wire.OutcomeMiss, 1, mib, mib, n+1))
			s.now += ms
		}
		for range 20 {
			for _, object := range objects {
				if test.uses {
					s.use(object)
				}
			}
		}
		s.put(wire.ExitFields{Status: test.status}.Event(), "").Thread = 0 // from the session
		if d := diagnosis(s.analyse(t), "memory grows"); (d != nil) != test.grows {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
