package parquet

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/parquet-go/parquet-go"
)

// TestLakeColumns compares the columns of a lake's runs with those that questions name.
func TestLakeColumns(t *testing.T) {
	var list []string
	for _, f := range parquet.SchemaOf(reflect.New(runType).Interface()).Fields() {
		kind := "group"
		if f.Leaf() {
			kind = f.Type().String()
		}
		list = append(list, f.Name()+" "+kind)
	}
	slices.Sort(list)
	golden.RequireEqual(t, strings.Join(list, "\n")+"\n")
}
