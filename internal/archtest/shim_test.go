package archtest

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestShimStandsOnItsFloors(t *testing.T) {
	files, err := LoadShimFiles(filepath.Join("..", "..", "shim"))
	if err != nil {
		t.Fatal(err)
	}
	defined := 0
	for _, file := range files {
		defined += len(file.Defines)
	}
	if len(files) < 40 || defined < 80 {
		t.Fatalf("only %d files with %d definitions found: the parser is broken", len(files), defined)
	}
	for _, finding := range CheckShimFiles(files) {
		t.Error(finding)
	}
}

func TestCheckCFinds(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"include that leads up", map[string]string{"order/a.c": `#include "../pool/b.h"`}, "order/a.c: pool/b.h lies above it"},
		{"include from nowhere", map[string]string{"order/a.c": `#include "../test/b.h"`}, "lies on no floor"},
		{"function without a header", map[string]string{"pool/a.c": "int gmt_a(void)\n{\n}\n"}, "gmt_a belongs in pool/a.h"},
		{"variable without a header", map[string]string{"pool/a.c": "_Alignas(64) _Atomic int gmt_a;\n"}, "gmt_a belongs in pool/a.h"},
		{"another file's header", map[string]string{
			"pool/a.c": "struct gmt_b *gmt_a(void)\n{\n}\n",
			"pool/b.h": "struct gmt_b *gmt_a(void);\n",
		}, "pool/b.h: pool/b.c does not define gmt_a"},
		{"two declarations", map[string]string{
			"pool/a.c": "int gmt_a(void)\n{\n}\n",
			"pool/a.h": "int gmt_a(void);\n",
			"pool/b.h": "int gmt_a(void);\n",
		}, "is declared in"},
		{"circle", map[string]string{
			"pool/a.c": "int gmt_a(void)\n{\n\treturn gmt_b();\n}\n",
			"pool/a.h": "int gmt_a(void);\n",
			"pool/b.c": "int gmt_b(void)\n{\n\treturn gmt_a();\n}\n",
			"pool/b.h": "int gmt_b(void);\n",
		}, "pool/a: in a circle"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if findings := strings.Join(checkTexts(test.files), "\n"); !strings.Contains(findings, test.want) {
				t.Errorf("findings %q, want one with %q", findings, test.want)
			}
		})
	}
}

func TestCheckCAccepts(t *testing.T) {
	findings := checkTexts(map[string]string{
		"base/a.h": "/* gmt_b(); */\nextern __thread int gmt_x __attribute__((tls_model(\"initial-exec\")));\nstruct gmt_b { int c; };\n",
		"base/a.c": "#include \"a.h\"\n__thread int gmt_x __attribute__((tls_model(\"initial-exec\")));\n",
		"pool/b.h": "#include \"../base/a.h\"\nstatic inline int gmt_inline(void)\n{\n\treturn 0;\n}\nint gmt_b(struct gmt_b *b);\n",
		"pool/b.c": "#include \"b.h\"\nint gmt_b(struct gmt_b *b)\n{\n\treturn b->c + gmt_x + gmt_inline();\n}\n",
	})
	if len(findings) > 0 {
		t.Errorf("findings %q, want none", findings)
	}
}

func checkTexts(texts map[string]string) []string {
	var files []CFile
	for name, text := range texts {
		files = append(files, ParseC(name, text))
	}
	return CheckShimFiles(files)
}
