package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// slowCall is how a test asks to run without the race detector.
const slowCall = "racetest.Slow"

// RaceFreeFolders returns the folders of the packages in which the race detector finds nothing, and which it makes several times slower:
// they read no clock, and neither they nor their tests start a goroutine. The one of recording.Records has its source to itself.
func RaceFreeFolders(files []File) []string {
	serial := map[string]bool{}
	for i := range files {
		folder := files[i].Folder()
		place, _ := PlaceOf(folder)
		before, seen := serial[folder]
		serial[folder] = (before || !seen) && Places[place].Timeless && !startsGoroutine(files[i].tree)
	}
	maps.DeleteFunc(serial, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(serial))
}

// startsGoroutine reports whether a file starts a goroutine, or a parallel test.
func startsGoroutine(tree *ast.File) (found bool) {
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Go" || n.Sel.Name == "Parallel"
		}
		return !found
	})
	return found
}

// SlowTests returns the tests and fuzz targets that begin with racetest.Slow, and their folders. Such a call anywhere else is an error:
// the test would be left out under the race detector, and not run without it.
func SlowTests(files []File) (tests, folders []string, err error) {
	for i := range files {
		calls := len(namesUsedFrom(files[i].tree, "racetest"))
		for _, declaration := range files[i].tree.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && beginsSlow(function) {
				tests, folders = append(tests, function.Name.Name), append(folders, files[i].Folder())
				calls--
			}
		}
		if calls != 0 {
			return nil, nil, fmt.Errorf("%s: %s belongs at the start of a test", files[i].Path, slowCall)
		}
	}
	return sortUnique(tests), sortUnique(folders), nil
}

// beginsSlow reports whether a function is a test whose first statement is racetest.Slow(t), or a fuzz target with racetest.Slow(f).
func beginsSlow(function *ast.FuncDecl) bool {
	given := "(t)"
	if strings.HasPrefix(function.Name.Name, "Fuzz") {
		given = "(f)"
	} else if !strings.HasPrefix(function.Name.Name, "Test") {
		return false
	}
	if function.Recv != nil || function.Body == nil || len(function.Body.List) == 0 {
		return false
	}
	first, ok := function.Body.List[0].(*ast.ExprStmt)
	return ok && types.ExprString(first.X) == slowCall+given
}
