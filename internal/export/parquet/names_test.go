package parquet

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/parquet-go/parquet-go"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
)

// TestLakeColumns compares the columns of a lake's runs with those that questions name.
func TestLakeColumns(t *testing.T) {
	var list []string
	for _, f := range parquet.SchemaOf(lake.Run{}).Fields() {
		kind := "group"
		if f.Leaf() {
			kind = f.Type().String()
		}
		list = append(list, f.Name()+" "+kind)
	}
	slices.Sort(list)
	golden.RequireEqual(t, strings.Join(list, "\n")+"\n")
}
