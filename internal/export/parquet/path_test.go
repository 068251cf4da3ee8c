package parquet

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
)

func TestPartition(t *testing.T) {
	for value, want := range map[string]string{
		"":             "host=__HIVE_DEFAULT_PARTITION__",
		"node1.x-y_z":  "host=node1.x-y_z",
		"a/b":          "host=a%2Fb",
		"..":           "host=..",
		"../../etc":    "host=..%2F..%2Fetc",
		"a=b":          "host=a%3Db",
		"\x00\n\x7f":   "host=%00%0A%7F",
		"100%":         "host=100%25",
		`a\b:c*d?e"f'`: "host=a%5Cb%3Ac%2Ad%3Fe%22f%27",
		"ünïcödé":      "host=ünïcödé",
	} {
		if got := folderOfPartition("host", value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	long, other := strings.Repeat("é/", 150), strings.Repeat("é/", 150)+"x"
	if a, b := folderOfPartition("host", long), folderOfPartition("host", other); a == b || len(a) > nameMax || !utf8.ValidString(a) {
		t.Errorf("long names: %q and %q", a, b)
	}
}

// FuzzPartition: whatever a host is called, its folder has one name, from which the host follows.
func FuzzPartition(f *testing.F) {
	for _, seed := range []string{"", "..", "a/b", "a=b", "%2F", "\x00", "\xff", strings.Repeat("ü", 300), strings.Repeat("/", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		name := folderOfPartition("host", value)
		if len(name) > nameMax || !filepath.IsLocal(name) || filepath.Base(name) != name || strings.ContainsAny(name, "\x00/\\*?[\n") || !utf8.ValidString(name) {
			t.Fatalf("%q becomes %q", value, name)
		}
		if value == "" || len("host="+escapePartitionValue(value)) > nameMax {
			return
		}
		got, err := url.PathUnescape(strings.TrimPrefix(name, "host="))
		if want := strings.ToValidUTF8(value, "\xff"); err != nil || utf8.ValidString(value) && got != want {
			t.Fatalf("%q becomes %q, which means %q (%v)", value, name, got, err)
		}
	})
}

// TestHostileHosts writes below the folder and nowhere else.
func TestHostileHosts(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "a", "b")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	records := randomrun.MakeRunWithoutSlabs(1, 1, 20)
	hosts := []string{"", ".", "..", "../..", "/etc", "a/../../..", "=", "a=b", "\x00", strings.Repeat("x", 300), strings.Repeat("/", 300)}
	for _, host := range hosts {
		if err := WriteTables(dir, false, &randomrun.Tape{Records: records}, options(host)); err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
	if got := len(rows[tables.Process](t, dir, Processes)); got != len(hosts) {
		t.Errorf("%d processes of %d", got, len(hosts))
	}
	for _, folder := range []string{above, filepath.Join(above, "a")} {
		if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
			t.Errorf("%s has %v (%v)", folder, entries, err)
		}
	}
}
