package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// rawReaders lists the files outside internal/wire that name fields of wire.Event, which mean something else in each kind
// of event, with the reason.
var rawReaders = map[string]string{
	"internal/recording/codec.go":         "the format stores the fields as they are",
	"internal/recording/ndjson/ndjson.go": "a line has a key for each field",
	"internal/recording/ndjson/reader.go": "a line has a key for each field",
	"internal/export/tables/walk.go":      "the table of events has a column for each field",
	"internal/export/tables/words.go":     "the table of events has a column for each field",
}

// testSupport writes events as tests do, field by field: the fields, too, must be tested.
const testSupport = "internal/testkit"

// Only internal/wire knows which field of an event holds what. All others use the views, field structs and payload
// parsers there.
func TestOnlyWireNamesFieldsOfEvents(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := LoadGoFiles(root) // so that a new file is no news to the test cache
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	packages, err := listPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	// One importer for all, which reads the export data of each package once: reading it is most of what this takes.
	set := token.NewFileSet()
	imported := importer.ForCompiler(set, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
	event := eventFields(imported)
	for _, p := range packages {
		folder := strings.TrimPrefix(p.ImportPath, Module+"/")
		if p.DepOnly || folder == "internal/wire" || under(folder, testSupport) {
			continue
		}
		for _, use := range rawUses(t, &p, set, imported, event) {
			file := path.Join(folder, filepath.Base(use.Filename))
			if _, excepted := rawReaders[file]; !excepted {
				t.Errorf("%s:%d: a field of wire.Event: use a view such as e.AsCreate(), or CreateFields{}.Event()", file, use.Line)
			}
		}
	}
}

func under(folder, place string) bool { return folder == place || strings.HasPrefix(folder, place+"/") }

type listed struct {
	ImportPath, Dir, Export string
	CompiledGoFiles         []string
	DepOnly                 bool
}

// listPackages returns all packages of the module and what they import, with their export data. With -trimpath the build
// cache has what "make" built.
func listPackages(root string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-trimpath", "-export", "-deps", "-compiled", "-json=ImportPath,Dir,Export,CompiledGoFiles,DepOnly", "./...")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// rawUses returns where a package selects or sets a field of wire.Event other than Time and Kind.
func rawUses(t *testing.T, p *listed, set *token.FileSet, imported types.Importer, event map[*types.Var]bool) (uses []token.Position) {
	t.Helper()
	var trees []*ast.File
	for _, name := range p.CompiledGoFiles {
		if !filepath.IsAbs(name) { // else cgo made it
			name = filepath.Join(p.Dir, name)
		}
		tree, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imported, Error: func(error) {}} // the compiler has accepted it
	_, _ = config.Check(p.ImportPath, set, trees, info)
	for name, object := range info.Uses {
		if field, ok := object.(*types.Var); ok && event[field] {
			uses = append(uses, set.Position(name.Pos()))
		}
	}
	return uses
}

// eventFields returns the fields whose meaning depends on the kind.
func eventFields(imported types.Importer) map[*types.Var]bool {
	fields := map[*types.Var]bool{}
	wire, err := imported.Import(Module + "/internal/wire")
	if err != nil {
		return fields
	}
	event := wire.Scope().Lookup("Event").Type().Underlying().(*types.Struct)
	for field := range event.Fields() {
		if field.Name() != "Time" && field.Name() != "Kind" {
			fields[field] = true
		}
	}
	return fields
}
