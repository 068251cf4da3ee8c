// Package archtest holds the shape of the repository to its plan: which package may import which, who may use cgo and
// unsafe, and what the pure packages must not touch. The rules are in rules.go, as data; the test reads the sources
// itself, because a test that asks the go command is answered from the test cache after a violation was added.
package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path that all imports of ours begin with.
const Module = "codeberg.org/gpumemtop/gpumemtop"

// File is what the rules need to know of one Go source file.
type File struct {
	Path    string   // relative to the module, with slashes
	Test    bool     // its name ends in _test.go
	Name    string   // of the package, as declared
	Ignored bool     // "//go:build ignore": a generator's input, part of no package
	Doc     bool     // it carries the package's doc comment
	Imports []string // in order
	Uses    []string // what it uses of packages time and os: "time.Now", "os.File"...

	tree  *ast.File
	lines *token.FileSet
}

// Folder returns the folder of the file, "." for the module's root.
func (f *File) Folder() string { return path.Dir(f.Path) }

// ParseGoFile reads one file's text. The error says that it is no Go.
func ParseGoFile(name string, text []byte) (File, error) {
	lines := token.NewFileSet()
	tree, err := parser.ParseFile(lines, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, fmt.Errorf("parse: %w", err)
	}
	file := File{
		Path:    name,
		Test:    strings.HasSuffix(name, "_test.go"),
		Name:    tree.Name.Name,
		Ignored: isIgnoredByBuild(tree),
		Doc:     tree.Doc != nil,
		tree:    tree,
		lines:   lines,
	}
	for _, spec := range tree.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return File{}, fmt.Errorf("parse %s: import %s: %w", name, spec.Path.Value, err)
		}
		file.Imports = append(file.Imports, target)
	}
	file.Uses = namesUsedFrom(tree, "time", "os")
	return file, nil
}

func isIgnoredByBuild(tree *ast.File) bool {
	for _, group := range tree.Comments {
		for _, comment := range group.List {
			if comment.Pos() < tree.Package && comment.Text == "//go:build ignore" {
				return true
			}
		}
	}
	return false
}

// namesUsedFrom lists what a file takes from packages, by their names; the code never renames these two imports.
func namesUsedFrom(tree *ast.File, packages ...string) []string {
	var found []string
	ast.Inspect(tree, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := selector.X.(*ast.Ident)
		if ok && slices.Contains(packages, from.Name) {
			found = append(found, from.Name+"."+selector.Sel.Name)
		}
		return true
	})
	return found
}

// LoadGoFiles parses every Go file of the module at root. Folders that the go command ignores are left out.
func LoadGoFiles(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			// A file that vanished while others build is no finding.
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return fmt.Errorf("walk the sources: %w", err)
		}
		if entry.IsDir() {
			if name != root && isSkippedFolder(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(entry.Name(), "_") || strings.HasPrefix(entry.Name(), ".") {
			return nil
		}
		file, err := readAndParseFile(root, name)
		if err == nil {
			files = append(files, file)
		}
		return err
	})
	return files, err
}

func isSkippedFolder(folder string) bool {
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_") || folder == "testdata" || folder == "bin" ||
		folder == "build"
}

func readAndParseFile(root, name string) (File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return File{}, fmt.Errorf("read source: %w", err)
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return File{}, fmt.Errorf("place source: %w", err)
	}
	return ParseGoFile(filepath.ToSlash(relative), text)
}
