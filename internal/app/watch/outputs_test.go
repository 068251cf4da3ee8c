package watch

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesOfARunAreDistinct: one name for two of them would cost the first, however the name is written.
func TestFilesOfARunAreDistinct(t *testing.T) {
	dir := t.TempDir()
	old, link := filepath.Join(dir, "old"), filepath.Join(dir, "link")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(old, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "here")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		recording, json, summary string
		want                     string // two flags, "" for no complaint
	}{
		{dir + "/x", dir + "/y", dir + "/z", ""},
		{dir + "/x", dir + "/./x", "", "--json and -o "},
		{dir + "/x", dir + "/here/x", "", "--json and -o "},
		{old, link, "", "--json and -o "},
		{dir + "/x", "", dir + "//x", "--summary and -o "},
		{"", dir + "/x", dir + "/x", "--json and --summary "},
		{dir + "/x-%p", dir + "/y", "", ""},
		{"", "", old, ""},
	} {
		options := OutputOptions{Recording: test.recording, Trace: test.json, Summary: test.summary, Force: true}
		_, err := NewOutputs(options, &Subject{Name: "app"}, &console.Notes{})
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
