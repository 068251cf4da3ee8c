package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestExpand(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	name, err := ExpandFileName("a-%n-%t-100%%p.gmt", "./dir/app", now)
	if want := "a-app-20260102-030405-100%p.gmt"; err != nil || name.String() != want || !name.IsSingle() {
		t.Errorf("got %q, %v; want %q", name, err, want)
	}
	if name, err = ExpandFileName(DefaultName, "app", now); err != nil || !name.IsSingle() || name.String() != fmt.Sprintf("./gpumemtop.app.%d.gmt", os.Getpid()) {
		t.Errorf("the default is %q, %v", name, err)
	}
	name, err = ExpandFileName("d/%p.%n.%p.gmt", "app", now)
	if err != nil || name.IsSingle() || name.ForProcess(12, 1) != "d/12.app.12.gmt" || name.ForProcess(12, 3) != "d/12.app.12.3.gmt" || name.String() != "d/%p.app.%p.gmt" {
		t.Errorf("got %q, %q, %v", name.ForProcess(12, 1), name, err)
	}
	for _, bad := range []string{"%", "x%q", "%%%", "d%p/x.gmt", "%p/%p"} {
		if got, err := ExpandFileName(bad, "app", now); err == nil || !strings.Contains(err.Error(), strconv.Quote(bad)) {
			t.Errorf("%q became %q, want an error that names it, not %v", bad, got, err)
		}
	}
}

func TestFolderOfRecordings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, good := range map[string]bool{dir + "/x-%p": true, dir + "/no/x-%p": false, file + "/x-%p": false, dir + "/no/x": true} {
		n, err := ExpandFileName(name, "app", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := n.CheckFolder(); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckWritable(t *testing.T) {
	folder := t.TempDir()
	there := filepath.Join(folder, "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "", "-": "", "/dev/null": "", filepath.Join(folder, "new"): "",
		there: there + " exists: use -f to overwrite it or --summary to name another", folder: "--summary " + folder + ": it is a folder: name a file",
	} {
		err := Output{Path: path}.CheckWritable("summary")
		if got := fmt.Sprint(err); (err != nil || want != "") && got != want {
			t.Errorf("%q: %s, want %q", path, got, want)
		}
	}
	for begins, again := range map[string]bool{"": true, "x": false} { // the file is empty
		o := Output{Path: there, Again: func(head []byte) bool { return string(head) == begins }}
		if err := o.CheckWritable("summary"); (err == nil) != again {
			t.Errorf("a file that begins with %q: %v", begins, err)
		}
	}
	if err := (Output{Path: there, Force: true}).CheckWritable("summary"); err != nil {
		t.Error(err)
	}
}

// FuzzExpandName: what it takes names one file, or one for each process in one folder.
func FuzzExpandName(f *testing.F) {
	for _, template := range []string{DefaultName, "a-%p.gmt", "%", "%%%p%t", "%p/a", "./%h-%p-%p", "%x"} {
		f.Add(template, "/bin/app")
	}
	f.Fuzz(func(t *testing.T, template, program string) {
		name, err := ExpandFileName(template, program, time.Unix(0, 0))
		if err != nil {
			return
		}
		if a, b := name.ForProcess(1, 1), name.ForProcess(2, 1); (a == b) != name.IsSingle() || filepath.Dir(a) != filepath.Dir(b) {
			t.Errorf("%q: %q and %q", template, a, b)
		}
	})
}
