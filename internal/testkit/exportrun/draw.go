// Package exportrun makes up runs for tests of exports: records of a correct target, with names that are hard to write, and
// nonsense.
package exportrun

import (
	"encoding/binary"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Origin is CLOCK_MONOTONIC at the start of the runs.
const Origin = randomrun.Start

// Names are payloads of SITE that are hard to write.
var Names = []string{
	"create\t/src/a.c\t7\t/bin/app+0x10\nmain\t/src/a.c\t30\t/bin/app+0x99\n",
	"cl::Buffer::Buffer\t/cl.hpp\t9\t/bin/app+0x5\nblur<\"x\", 'y'>(int)\t/src/b,c.cc\t8\t/bin/app+0x20\n",
	"\t\t\t/lib/strip\"ped,.so+0x1234\nf\x1b[31m\xff\u202e\t/src/a\rb.c\t-3\t/bin/app+0xzz\n",
	"nul\x00inside\tfile\\\t99999999999999999999\t+0x\n",
	"",
}

// DrawRun draws a run of three processes.
func DrawRun(t *rapid.T) []wire.Record {
	return randomrun.DrawRun(t, randomrun.Options{Processes: 3, Names: Names, NoReferences: true, NoOvertaking: true})
}

// NonsenseRecords makes arbitrary records from bytes.
func NonsenseRecords(data []byte) []wire.Record {
	var list []wire.Record
	for len(data) >= 40 {
		at := func(i int) uint64 { return binary.LittleEndian.Uint64(data[i:]) }
		r := wire.Record{Process: uint32(data[0] % 4), Thread: uint32(data[1] % 4)}
		r.Kind, r.Op, r.Outcome, r.Reason, r.Flags = wire.Kind(data[2]%24), data[3]%16, wire.Outcome(data[4]%10), data[5], data[6]
		r.Tag, r.Time, r.Duration = uint32(data[7]%8), at(8), uint32(at(16))
		r.Object, r.Link, r.Size, r.Granted = at(16)%8, at(24)%8, at(24), at(32)
		r.Status, r.Payload = int16(data[6]), data[8:40]
		list, data = append(list, r), data[40:]
	}
	return list
}

// ChurnRecords returns a long run with few live objects: pairs of creates and releases of one block, with a leak in every thousand.
func ChurnRecords(pairs uint64) []wire.Record {
	list := make([]wire.Record, 0, 2*pairs)
	for i := range pairs {
		r := wire.Record{Process: 1, Thread: 100}
		r.Time, r.Kind, r.Outcome, r.Object, r.Link = Origin+20*i, wire.KindCreate, wire.OutcomeHit, i+1, 1+i%8
		r.Size, r.Granted, r.Tag = 1000, 1024, uint32(i%50)
		if i%1000 == 999 {
			r.Link, r.Outcome = 0, wire.OutcomeDriver
			list = append(list, r)
			continue
		}
		list = append(list, r)
		r.Time, r.Kind, r.Outcome, r.Size, r.Granted = r.Time+10, wire.KindRelease, wire.OutcomeCached, 0, 0
		list = append(list, r)
	}
	return list
}
