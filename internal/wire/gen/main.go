// Command gen writes what follows from event.h: layouts through cgo -godefs into types_linux.go, enumerations with
// their names into enums.go, and, from the table of each kind of event, typed views into views.go and accessors for C
// into event_access.h. From eligible.def follows eligible.go. It runs from go generate in internal/wire.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

const notice = "// Code generated from event.h by internal/wire/gen; DO NOT EDIT.\n\n"

func main() {
	log.SetFlags(0)
	log.SetPrefix("wire/gen: ")
	header, err := os.ReadFile("event.h")
	if err != nil {
		log.Fatal(err)
	}
	writeGenerated("types_linux.go", generateGoStructs())
	writeGenerated("enums.go", generateGoEnums(string(header)))
	kinds, err := parseTables(string(header))
	if err != nil {
		log.Fatalf("event.h: %v", err)
	}
	writeGenerated("views.go", generateGoTables(kinds))
	writeGenerated("eligible.go", generateGoEligible())
	if err := os.WriteFile("event_access.h", generateCTables(kinds), 0o644); err != nil {
		log.Fatal(err)
	}
}

func writeGenerated(name string, source []byte) {
	formatted, err := format.Source(source)
	if err != nil {
		log.Fatalf("%s: %v\n%s", name, err, source)
	}
	if err := os.WriteFile(name, formatted, 0o644); err != nil {
		log.Fatal(err)
	}
}

// generateGoStructs runs cgo -godefs and gives the enumerated fields of Event their types.
func generateGoStructs() []byte {
	objects, err := os.MkdirTemp("", "godefs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(objects)
	defer os.Remove("_cgo_2.o") // left behind whatever -objdir says
	cmd := exec.Command("go", "tool", "cgo", "-objdir", objects, "-godefs", "types_def.go")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		log.Fatalf("cgo -godefs: %v", err)
	}
	_, body, found := bytes.Cut(out, []byte("package wire\n"))
	if !found {
		log.Fatal("cgo -godefs printed no package clause")
	}
	for field, width := range map[string]string{"Kind": "uint16", "Outcome": "uint8", "Sight": "uint16"} {
		re := regexp.MustCompile(`(?m)^(\s+` + field + `\s+)` + width + `$`)
		body = re.ReplaceAll(body, []byte("${1}"+field))
	}
	return append([]byte(notice+"package wire\n"), body...)
}

var (
	enumRE  = regexp.MustCompile(`(?s)(?:/\*([^*]*)\*/\s*)enum gmt(\w+) \{(.*?)\n\};`)
	valueRE = regexp.MustCompile(`GMT_([A-Z]+)_(\w+) = (\d+),(?: */\* *(.*?) *\*/)?`)
	goNames = map[string]string{"tagmode": "TagMode"}
	widths  = map[string]string{"kind": "uint16", "sight": "uint16"}
)

func generateGoEnums(header string) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "package wire\n\nimport \"strconv\"\n")
	for _, m := range enumRE.FindAllStringSubmatch(header, -1) {
		writeGoEnum(&b, strings.Join(strings.Fields(m[1]), " "), m[2], m[3])
	}
	return b.Bytes()
}

func writeGoEnum(b *bytes.Buffer, doc, name, body string) {
	typ := goNames[name]
	if typ == "" {
		typ = strings.ToUpper(name[:1]) + name[1:]
	}
	width := widths[name]
	if width == "" {
		width = "uint8"
	}
	values := valueRE.FindAllStringSubmatch(body, -1)
	if len(values) == 0 {
		log.Fatalf("enum gmt%s: no values found", name)
	}
	fmt.Fprintf(b, "\n// %s: %s\ntype %s %s\n\nconst (\n", typ, doc, typ, width)
	var names []string
	gaps := false
	for _, v := range values {
		number, err := strconv.Atoi(v[3])
		if err != nil || number < len(names) || len(names) == 0 && number > 0 {
			log.Fatalf("enum gmt%s: %s is %s behind %d; values rise from 0", name, v[2], v[3], len(names)-1)
		}
		for ; len(names) < number; gaps = true {
			names = append(names, "") // a later version's
		}
		prefix := typ
		if v[1] == "TAGS" {
			prefix = "Tags"
		}
		names = append(names, strings.ToLower(strings.ReplaceAll(v[2], "_", " ")))
		fmt.Fprintf(b, "\t%s%s %s = %s", prefix, toCamelCase(v[2]), typ, v[3])
		if v[4] != "" {
			fmt.Fprintf(b, " // %s", v[4])
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, ")\n\nvar names%s = [...]string{", typ)
	for _, n := range names {
		fmt.Fprintf(b, "%q, ", n)
	}
	fmt.Fprintf(b, "}\n\n// String returns the word that screens and reports use.\nfunc (v %s) String() string {\n", typ)
	named := ""
	if gaps {
		named = fmt.Sprintf(" && names%s[v] != \"\"", typ)
	}
	fmt.Fprintf(b, "\tif int(v) < len(names%s)%s {\n\t\treturn names%s[v]\n\t}\n\treturn strconv.Itoa(int(v))\n}\n", typ, named, typ)
}

func toCamelCase(upper string) string {
	var b strings.Builder
	for _, word := range strings.Split(strings.ToLower(upper), "_") {
		switch word {
		case "usm", "svm", "rss", "drm", "nvml", "dmem":
			b.WriteString(strings.ToUpper(word))
		case "suballoc":
			b.WriteString("SubAlloc")
		case "subbuffer":
			b.WriteString("SubBuffer")
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
