package session

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestNeighboursAnswer: sessions ask one another over sockets, and not themselves; an answer that does not come is none.
func TestNeighboursAnswer(t *testing.T) {
	var folders []string
	var heard []string
	for range 2 {
		f, err := newFolder(runtimeFolderPlaces(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.deleteFolder() //nolint:errcheck // it is empty
		folders = append(folders, f.path)
		n, err := listenToNeighbours(f.pathOf(neighboursName), func(need uint64, identities []string) uint64 {
			if haveCommonDevice(identities, []string{"uuid of " + t.Name()}) { // a session that is no part of this test asks about another device
				heard = append(heard, filepath.Base(f.path)+" "+strings.Join(identities, "+"))
				return need / 2
			}
			return 0
		})
		if err != nil {
			t.Fatal(err)
		}
		defer n.close()
	}
	identities := []string{"uuid of " + t.Name(), "name x"}
	if given := askNeighbours(folders[0], 100, identities, time.Now().Add(5*time.Second)); given != 50 {
		t.Errorf("%d bytes, want 50", given)
	}
	want := []string{filepath.Base(folders[1]) + " uuid of " + t.Name() + "+name x"}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if given := askNeighbours(folders[0], 100, identities, time.Now()); given != 0 {
		t.Errorf("%d bytes in no time", given)
	}
}

// TestPlaceOf: the devices of a process by what they are called in all processes.
func TestPlaceOf(t *testing.T) {
	in := intake{places: map[uint32]place{}}
	device := func(name, identity string, unified bool) {
		r := wire.DeviceFields{Unified: unified}.Record([]byte(name + "\x00driver\x00" + identity))
		r.Process = 3
		in.noteDevicePlace(&r)
	}
	device("A", "pci 0000:03:00.0 uuid 01", false)
	device("A", "pci 0000:03:00.0 uuid 01", false)
	device("B", "local 1", true)
	device("C", "", false)
	want := place{devices: []uint64{3 << 8}, identities: []string{"pci 0000:03:00.0 uuid 01", "name B", "name C"}, host: true}
	if diff := cmp.Diff(want, in.places[3], cmp.AllowUnexported(place{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if haveCommonDevice(want.identities, []string{"name A", "uuid 01"}) || !haveCommonDevice(want.identities, []string{"name B"}) ||
		haveCommonDevice(nil, nil) {
		t.Error("devices are mistaken")
	}
}
