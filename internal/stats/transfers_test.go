package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// move feeds a command that moves bytes, with a TRANSFER before it if that has a site.
func (s *stream) move(u wire.UseFields, more wire.TransferFields) {
	s.time += 1000
	u.Time = s.time
	if more.Time = u.Time; more.Site != 0 {
		s.feed(more.Event())
	}
	s.feed(u.Event())
	s.time = u.Time
}

func TestTransfersCount(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 1000, 1000, 3)
	write := wire.UseFields{Command: wire.CommandWrite, Writes: true, Object: 1, Bytes: 600, Tag: 3, Duration: 300}
	s.move(write, wire.TransferFields{Site: 8, Pinned: true})
	s.move(write, wire.TransferFields{Site: 8, Pageable: true})
	s.move(wire.UseFields{Command: wire.CommandRead, Reads: true, Object: 1, Bytes: 50, Tag: 3}, wire.TransferFields{Site: 9, Pageable: true, Pages: 16, Cold: 4})
	s.move(wire.UseFields{Command: wire.CommandCopy, Reads: true, Object: 1, Bytes: 70, Tag: 3}, wire.TransferFields{})
	s.time -= 1000 // the other side of it
	s.move(wire.UseFields{Command: wire.CommandCopy, Writes: true, Object: 1, Bytes: 70, Tag: 3}, wire.TransferFields{})
	s.move(wire.UseFields{Command: wire.CommandMap, Reads: true, Object: 1, Bytes: 90, Tag: 3}, wire.TransferFields{Site: 8})
	s.move(wire.UseFields{Command: wire.CommandKernel, Object: 1, Bytes: 1, Tag: 3}, wire.TransferFields{})
	s.move(wire.UseFields{Command: wire.CommandMigrate, Object: 1, Tag: 3}, wire.TransferFields{}) // of undefined contents
	got := s.Snapshot().Transfers
	want := [AtCreate + 1]Flow{
		ToDevice: {Calls: 2, Bytes: 1200, Blocking: 2, TimedBytes: 1200, NS: 600, Pinned: 600, Pageable: 600},
		ToHost:   {Calls: 1, Bytes: 50, Pageable: 50, Pages: 16, Cold: 4, Looks: 1},
		Within:   {Calls: 1, Bytes: 70},
		Mapped:   {Calls: 1, Bytes: 90},
	}
	if got.Directions != want {
		t.Errorf("%+v\nwant %+v", got.Directions, want)
	}
	if rate := got.Directions[ToDevice].BytesPerSecond(); rate != 2e9 {
		t.Errorf("%v bytes per second", rate)
	}
	if len(got.Sites) != 4 || got.Sites[0].Name != "tag 8" || got.Sites[0].Command != wire.CommandWrite || !got.OwnSites {
		t.Errorf("%+v", got.Sites)
	}
	if tags := s.Snapshot().Tags; len(tags) != 1 {
		t.Errorf("call sites of transfers are among those of memory: %+v", tags)
	}
}

// TestReadsThatWait: a read that blocks waits where the process had queued a command before it.
func TestReadsThatWait(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 1000, 1000, 3)
	read := wire.UseFields{Command: wire.CommandRead, Reads: true, Object: 1, Bytes: 50, Tag: 3, Duration: 300}
	s.move(read, wire.TransferFields{Site: 9})
	s.uses(1, 1)
	s.move(read, wire.TransferFields{Site: 9})
	s.move(read, wire.TransferFields{Site: 9})
	if f := s.Snapshot().Transfers.Sites[0].Flow; f.Waits != 1 || f.Blocking != 3 {
		t.Errorf("%+v, want one wait in three blocking calls", f)
	}
}

// What a device measured gives the speed, and adds no call.
func TestProfiledTransfers(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 1000, 1000, 3)
	s.move(wire.UseFields{Command: wire.CommandWrite, Writes: true, Object: 1, Bytes: 600, Duration: 300}, wire.TransferFields{Site: 8})
	s.move(wire.UseFields{Command: wire.CommandWrite, Writes: true, Object: 1, Bytes: 600}, wire.TransferFields{Site: 8})
	s.feed(wire.TransferFields{Time: s.time, Profiled: wire.CommandWrite, Site: 8, Moved: 600, Took: 100}.Event())
	got := s.Snapshot().Transfers
	want := Flow{Calls: 2, Bytes: 1200, Blocking: 1, TimedBytes: 600, NS: 300, Profiled: 1, ProfiledBytes: 600, ProfiledNS: 100}
	if got.Directions[ToDevice] != want || len(got.Sites) != 1 || got.Sites[0].Flow != want || want.BytesPerSecond() != 6e9 {
		t.Errorf("%+v", got)
	}
}

// Sites that turn out to show the same line are one.
func TestTransferSitesFold(t *testing.T) {
	s := newStream(Options{})
	for tag := range uint32(3) {
		u := wire.UseFields{Command: wire.CommandRead, Reads: true, Object: 1, Bytes: 10}
		s.move(u, wire.TransferFields{Site: 5 + tag})
	}
	line := []byte("f\t/a/b.c\t7\tapp+0x10\n")
	s.feed(wire.Event{Kind: wire.KindSite, Tag: 5}, line...)
	s.feed(wire.Event{Kind: wire.KindSite, Tag: 7}, line...)
	sites := s.Snapshot().Transfers.Sites
	if len(sites) != 2 || sites[0].Calls != 2 || sites[0].Name != "b.c:7 f" || sites[0].Bytes != 20 {
		t.Errorf("%+v", sites)
	}
}

// Tags of one line take no room of others, however many there are.
func TestManyTransferSitesFold(t *testing.T) {
	s := newStream(Options{})
	const tags = 3 * transfersMax
	for tag := range uint32(tags) {
		s.move(wire.UseFields{Command: wire.CommandRead, Reads: true, Object: 1, Bytes: 10}, wire.TransferFields{Site: 5 + tag})
		s.feed(wire.Event{Kind: wire.KindSite, Tag: 5 + tag}, []byte("f\t/a/b.c\t7\tapp+0x10\n")...)
	}
	if x := s.Snapshot().Transfers; x.OtherSites != 0 || len(x.Sites) != 1 || x.Sites[0].Calls != tags {
		t.Errorf("%d other sites, %+v", x.OtherSites, x.Sites)
	}
}

func TestTransfersBySecond(t *testing.T) {
	s := newStream(Options{})
	for second := range uint64(70) {
		s.time = streamStart + second*1e9 + 5e8
		s.move(wire.UseFields{Command: wire.CommandWrite, Writes: true, Object: 1, Bytes: 10 + second}, wire.TransferFields{})
		s.move(wire.UseFields{Command: wire.CommandRead, Reads: true, Object: 1, Bytes: 1}, wire.TransferFields{})
	}
	s.AdvanceTime(s.time + 4e8)
	got := s.Snapshot().Transfers
	if got.Window != [2]uint64{79, 1} {
		t.Errorf("the last second: %d", got.Window)
	}
	for way, want := range [2]uint64{78, 1} {
		if n := len(got.Trend[way]); n < trendPoints-1 || got.Trend[way][n-1] != want {
			t.Errorf("%d seconds %v", n, got.Trend[way])
		}
	}
}

// Where kernels are not reported, nothing follows from a lack of uses.
func TestTransfersAloneAreNoUses(t *testing.T) {
	s := newStream(Options{TransfersOnly: true})
	s.miss(1, 1, 1000, 1000, 3)
	s.write(1, 1000, 300)
	if got := s.Snapshot(); got.Totals.Uses != 0 || got.Transfers.Directions[ToDevice].Calls != 1 || got.Totals.SavedTouches.Fresh != 0 {
		t.Errorf("%+v", got.Totals)
	}
}
