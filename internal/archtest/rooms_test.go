package archtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of rooms into docs/ARCHITECTURE.md")

// TestRoomsAreDocumented: docs/ARCHITECTURE.md has the table that follows from the rules, and every place has a row.
func TestRoomsAreDocumented(t *testing.T) {
	for name := range Places {
		if roomOfPlace(name) == "" && name != "internal/tools" {
			t.Errorf("%s has no row in rooms.go", name)
		}
	}
	for _, r := range rooms {
		if _, ok := PlaceOf(r.folder); !ok && len(allowedImports(r.folder)) == 0 && r.folder != "allocator/concurrent" {
			t.Errorf("%s has a row in rooms.go and no place", r.folder)
		}
	}
	const begin, end = "<!-- rooms -->\n", "<!-- /rooms -->"
	name := filepath.Join("..", "..", "docs", "ARCHITECTURE.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	table, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks %q or %q", name, begin, end)
	}
	if want := RoomsTable(); table != want {
		if !*update {
			t.Fatal("docs/ARCHITECTURE.md has another table of rooms: run go test ./internal/archtest -update")
		}
		if err := os.WriteFile(name, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
