package parquet

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
)

// TestWriterFails closes a file under its writer, as a full disk would: adding rows soon fails, and the rest is
// closed.
func TestWriterFails(t *testing.T) {
	f, err := openFolder(t.TempDir(), Runs)
	if err != nil {
		t.Fatal(err)
	}
	var k kind[tables.Event]
	for number := range uint32(2) {
		if err := k.createProcessFile(f, Events, &tables.Facts{Number: number, Recording: "r", Original: number}); err != nil {
			t.Fatal(err)
		}
	}
	other := k.open[1].file
	if err := k.open[0].file.Close(); err != nil {
		t.Fatal(err)
	}
	k.startWriting()
	for n := range 2 * rowGroup {
		if err = k.queueRow(0, &tables.Event{Time: int64(n), Kind: "create", Duration: rand.Int64()}); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("adding says %v", err)
	}
	k.beginCompleting()
	if err := k.waitForRows(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the end says %v", err)
	}
	if err := other.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a file is still open: %v", err)
	}
	if err := f.removeStage(); err != nil {
		t.Error(err)
	}
}
