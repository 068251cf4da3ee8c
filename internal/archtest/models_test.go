package archtest

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modelLines is how long a model may be: longer ones are hard to compare with the code.
const modelLines = 150

var (
	modelAction = regexp.MustCompile(`^(?:inline|active.* proctype|proctype) (\w+)\(`)
	modelName   = regexp.MustCompile(`[A-Z]\w*\.[A-Za-z]\w*|[A-Za-z_]\w*`)
	modelFile   = regexp.MustCompile(`[\w/]+\.(?:go|c|h|pml|inc)\b`)
	codeName    = regexp.MustCompile(`^(?:\w+_\w+|cl[A-Z]\w+|[A-Z]\w*\.\w+)$`)
	cCall       = regexp.MustCompile(`\b[a-z]\w+\(`)
	cWord       = regexp.MustCompile(`\w+`)
)

// namesInCode holds the functions of C and Go, methods with their type, and all words of C and names of Go.
type namesInCode struct{ functions, words names }

func loadNamesInCode(root string) (namesInCode, error) {
	n := namesInCode{names{}, names{}}
	c, err := LoadCText(root)
	if err != nil {
		return n, err
	}
	files, err := LoadGoFiles(root)
	for _, text := range c {
		text = anyComment.ReplaceAllString(text, "")
		for _, call := range cCall.FindAllString(text, -1) {
			n.functions[strings.TrimSuffix(call, "(")] = true
		}
		for _, word := range cWord.FindAllString(text, -1) {
			n.words[word] = true
		}
	}
	for i := range files {
		n.words.addDeclarations(files[i].tree)
		for _, declaration := range files[i].tree.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				name := receiver(function) + function.Name.Name
				n.functions[name] = true
			}
		}
	}
	return n, err
}

// receiver returns "Type." of a method, "" of a function.
func receiver(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "."
	}
	return "" // generic
}

// checkModel returns what is wrong with a model: its length, a comment that names what no code has, or an action whose comment names
// no function.
func (n namesInCode) checkModel(name, text string) (findings []string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > modelLines {
		findings = append(findings, fmt.Sprintf("%s has %d lines of %d", name, len(lines), modelLines))
	}
	for _, comment := range anyComment.FindAllString(text, -1) {
		for _, word := range modelName.FindAllString(modelFile.ReplaceAllString(comment, ""), -1) {
			if codeName.MatchString(word) && !n.words.declaresAll(word) {
				findings = append(findings, fmt.Sprintf("%s: no code has %s", name, word))
			}
		}
	}
	for i, line := range lines {
		action := modelAction.FindStringSubmatch(line)
		if action == nil {
			continue
		}
		begin := i // of the comment above, if there is one
		for begin > 0 && lines[begin-1] != "" && !strings.HasPrefix(lines[begin-1], "}") {
			begin--
		}
		comment := strings.Join(anyComment.FindAllString(strings.Join(lines[begin:i+1], "\n"), -1), " ")
		named := slices.ContainsFunc(modelName.FindAllString(comment, -1), func(word string) bool { return n.functions[word] })
		if !named && !strings.Contains(comment, "no code of ours") {
			findings = append(findings, fmt.Sprintf("%s:%d: the comment of %s names no function", name, i+1, action[1]))
		}
	}
	return findings
}

// TestModelsNameTheCode keeps the models in docs/models short, and what their comments name in the code.
func TestModelsNameTheCode(t *testing.T) {
	root := filepath.Join("..", "..")
	code, err := loadNamesInCode(root)
	if err != nil {
		t.Fatal(err)
	}
	models, err := filepath.Glob(filepath.Join(root, "docs", "models", "*.[pi][mn][lc]"))
	if err != nil || len(models) < 8 {
		t.Fatalf("%d models (%v)", len(models), err)
	}
	for _, model := range models {
		text, err := os.ReadFile(model)
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range code.checkModel(filepath.Base(model), string(text)) {
			t.Error(finding)
		}
	}
}

func TestCheckModelFinds(t *testing.T) {
	code := namesInCode{names{"gmt_a": true, "Pool.Serve": true}, names{"gmt_a": true, "gmt_state": true, "Pool": true, "Serve": true}}
	for _, test := range []struct{ text, want string }{
		{strings.Repeat("skip\n", modelLines+1), "151 lines of 150"},
		{"/* gmt_b */\nbyte x\n", "no code has gmt_b"},
		{"/* Pool.Take */\nbyte x\n", "no code has Pool.Take"},
		{"/* gmt_state */\ninline a() { skip }\n", "m:2: the comment of a names no function"},
		{"/* gmt_a */\nbyte x;\n\nactive [2] proctype a()\n{\n}\n", "m:4: the comment of a names no function"},

		{strings.Repeat("skip\n", modelLines), ""},
		{"/* gmt_a changes gmt_state. */\ninline a() { skip }\n", ""},
		{"/* Pool.Serve */\nactive [2] proctype a()\n{\n}\n", ""},
		{"inline a() { skip } /* gmt_a */\n", ""},
		{"/* no code of ours */\nproctype a() { skip }\n", ""},
	} {
		findings := code.checkModel("m", test.text)
		if test.want == "" && len(findings) > 0 || test.want != "" && (len(findings) != 1 || !strings.Contains(findings[0], test.want)) {
			t.Errorf("%q: findings %q, want %q", test.text, findings, test.want)
		}
	}
}
