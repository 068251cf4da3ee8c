package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// names are the identifiers that a package declares, methods and fields among them.
type names map[string]bool

var (
	firstWord  = regexp.MustCompile(`^\w+`)
	testName   = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark|Example)(?:[A-Z]|$)`)
	qualified  = regexp.MustCompile(`(?:^|[^\w./"-])([a-z][a-z0-9]*)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`)
	anyComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
)

// cFolders hold the C functions and variables that comments name.
var cFolders = []string{"shim", "internal/wire", "intercept", "tracer/kernel/bpf"}

// LoadCText returns the C files below the folders with C code of root, by path.
func LoadCText(root string) (map[string]string, error) {
	texts := map[string]string{}
	for _, folder := range cFolders {
		err := fs.WalkDir(os.DirFS(root), folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(".c .h .def", path.Ext(name)) {
				return err
			}
			text, err := os.ReadFile(filepath.Join(root, name))
			texts[name] = string(text)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read C sources: %w", err)
		}
	}
	return texts, nil
}

// CheckCommentNames returns a sentence for each doc comment that begins with another name than the one below it, and for each name
// in a comment that nothing has: "package.Name" in Go, and in Go and C those of the shim's names.
func CheckCommentNames(files []File, c map[string]string) []string {
	packages, imported := collectDeclarations(files)
	functions := names{}
	for _, text := range c {
		for _, name := range cName.FindAllString(anyComment.ReplaceAllString(text, ""), -1) {
			functions[name] = true
		}
	}
	var findings []string
	for i := range files {
		f := &files[i]
		report := func(at token.Pos, finding string) {
			findings = append(findings, fmt.Sprintf("%s:%d: %s", f.Path, f.lines.Position(at).Line, finding))
		}
		if !ast.IsGenerated(f.tree) {
			checkDocNames(f.tree, packages[f.Folder()], report)
		}
		for _, group := range f.tree.Comments {
			for _, comment := range group.List {
				for _, match := range qualified.FindAllStringSubmatch(comment.Text, -1) {
					if !f.mayNameSomething(match[1], match[2], packages, imported) {
						report(comment.Pos(), "no package has "+match[1]+"."+match[2])
					}
				}
				for _, name := range functions.missingCNames(comment.Text) {
					report(comment.Pos(), "no C code has "+name)
				}
			}
		}
	}
	for file, text := range c {
		for _, name := range functions.missingCNames(strings.Join(anyComment.FindAllString(text, -1), "\n")) {
			findings = append(findings, file+": no C code has "+name)
		}
	}
	return findings
}

// collectDeclarations returns what each folder declares, and the last names of all packages that the files import.
func collectDeclarations(files []File) (packages map[string]names, imported names) {
	packages, imported = map[string]names{}, names{}
	for i := range files {
		folder := files[i].Folder()
		if packages[folder] == nil {
			packages[folder] = names{}
		}
		packages[folder].addDeclarations(files[i].tree)
		for _, target := range files[i].Imports {
			imported[path.Base(target)] = true
		}
	}
	return packages, imported
}

// missingCNames returns the names of C in a comment that are not among n. "gmt_pool_*" stands for several.
func (n names) missingCNames(comment string) []string {
	return slices.DeleteFunc(cName.FindAllString(comment, -1), func(name string) bool { return n[name] || strings.HasSuffix(name, "_") })
}

// checkDocNames compares the doc comments of a file with the names below them. A test may say what it shows instead, and one of
// several constants or variables between parentheses what it and those below it are, unless that begins with another's name.
func checkDocNames(tree *ast.File, own names, report func(token.Pos, string)) {
	eachDoc(tree, func(name *ast.Ident, doc *ast.CommentGroup, grouped bool) {
		word := firstWord.FindString(doc.Text())
		switch {
		case doc.Text() == "" || word == name.Name || name.Name == "_":
		case testName.MatchString(name.Name) && !testName.MatchString(word):
		case grouped && !own[word]:
		default:
			report(doc.Pos(), fmt.Sprintf("the comment of %s begins with %q: begin with the name", name.Name, word))
		}
	})
}

// mayNameSomething reports whether "pkg.name" in a comment of the file may stand for something: a declaration of a package of ours, what a
// package of others has, or a field of a variable.
func (f *File) mayNameSomething(pkg, name string, packages map[string]names, imported names) bool {
	for i, target := range f.Imports {
		alias := f.tree.Imports[i].Name
		if folder, ours := strings.CutPrefix(target, Module+"/"); path.Base(target) == pkg || alias != nil && alias.Name == pkg {
			return !ours || packages[folder].declaresAll(name)
		}
	}
	ours := false
	for folder, own := range packages {
		if path.Base(folder) == pkg {
			if own.declaresAll(name) {
				return true
			}
			ours = true
		}
	}
	return !ours && imported[pkg] || f.usesBoth(pkg, name)
}

// usesBoth reports whether the code of the file has both identifiers.
func (f *File) usesBoth(pkg, name string) bool {
	found := map[string]bool{}
	ast.Inspect(f.tree, func(node ast.Node) bool {
		if identifier, ok := node.(*ast.Ident); ok {
			found[identifier.Name] = true
		}
		return true
	})
	return found[pkg] && found[name]
}

// addDeclarations adds what a file declares.
func (n names) addDeclarations(tree *ast.File) {
	ast.Inspect(tree, func(node ast.Node) bool {
		var declared []*ast.Ident
		switch d := node.(type) {
		case *ast.FuncDecl:
			declared = []*ast.Ident{d.Name}
		case *ast.TypeSpec:
			declared = []*ast.Ident{d.Name}
		case *ast.ValueSpec:
			declared = d.Names
		case *ast.Field:
			declared = d.Names
		}
		for _, identifier := range declared {
			n[identifier.Name] = true
		}
		return true
	})
}

// declaresAll reports whether a package declares all parts of "Name" or "Type.Method".
func (n names) declaresAll(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if !n[part] {
			return false
		}
	}
	return true
}

// eachDoc calls do with the name of each declaration outside of functions, its comment or nil, and whether the declaration is one
// of several between parentheses.
func eachDoc(tree *ast.File, do func(name *ast.Ident, doc *ast.CommentGroup, grouped bool)) {
	for _, declaration := range tree.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			do(function.Name, function.Doc, false)
			continue
		}
		general := declaration.(*ast.GenDecl)
		for _, spec := range general.Specs {
			grouped := general.Lparen.IsValid()
			switch s := spec.(type) {
			case *ast.TypeSpec:
				do(s.Name, docOfSpec(general, s.Doc), false)
			case *ast.ValueSpec:
				do(s.Names[0], docOfSpec(general, s.Doc), grouped)
			}
		}
	}
}

func docOfSpec(general *ast.GenDecl, own *ast.CommentGroup) *ast.CommentGroup {
	if general.Lparen.IsValid() {
		return own
	}
	return general.Doc
}
