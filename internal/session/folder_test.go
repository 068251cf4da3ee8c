package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestFolderIsPrivateAndGoesAway(t *testing.T) {
	place := t.TempDir()
	f, err := newFolder([]string{place}, map[string]content{"file": {func() (io.Reader, error) { return strings.NewReader("x"), nil }, 0o600, false}})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(f.pathOf("file")); string(data) != "x" {
		t.Errorf("the file holds %q: %v", data, err)
	}
	info, err := os.Stat(f.path)
	if err != nil || info.Mode().Perm()&^0o011 != 0o700 || filepath.Dir(f.path) != place {
		t.Errorf("folder %s: %v, %v", f.path, info.Mode(), err)
	}
	for range 2 {
		if _, err := f.deleteFolder(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(f.path); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// What is late has its name when it is whole, and also when it cannot be written.
func TestLateFiles(t *testing.T) {
	begin := make(chan struct{})
	defect := errors.New("defect")
	f, err := newFolder([]string{t.TempDir()}, map[string]content{
		"good": {func() (io.Reader, error) { <-begin; return strings.NewReader("x"), nil }, 0o600, true},
		"bad":  {func() (io.Reader, error) { <-begin; return iotest.ErrReader(defect), nil }, 0o600, true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if early, err := os.ReadDir(f.path); len(early) != 0 {
		t.Errorf("%v, %v", early, err)
	}
	close(begin)
	f.late.Wait()
	names, err := filepath.Glob(f.pathOf("*"))
	good, _ := os.ReadFile(f.pathOf("good"))
	bad, _ := os.ReadFile(f.pathOf("bad"))
	if !slices.Equal(names, []string{f.pathOf("bad"), f.pathOf("good")}) || string(good) != "x" || len(bad) != 0 {
		t.Errorf("%v, %q, %q, %v", names, good, bad, err)
	}
	if _, err := f.deleteFolder(); !errors.Is(err, defect) {
		t.Error(err)
	}
}

func TestFolderSkipsWhatCannotBePreloaded(t *testing.T) {
	good := t.TempDir()
	space := filepath.Join(t.TempDir(), "with space")
	colon := filepath.Join(t.TempDir(), "with:colon")
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	for _, dir := range []string{space, colon, long} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// /proc is mounted noexec wherever it is mounted by the book, and takes no folders anywhere.
	bad := []string{space, colon, long, "/proc", "relative", filepath.Join(good, "missing")}
	f, err := newFolder(append(slices.Clone(bad), good), nil)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(f.path) != good {
		t.Errorf("folder is %s, want it in %s", f.path, good)
	}
	if _, err := f.deleteFolder(); err != nil {
		t.Error(err)
	}
	if _, err := newFolder(bad, nil); err == nil || !strings.Contains(err.Error(), "set XDG_RUNTIME_DIR") {
		t.Errorf("without a usable place: %v", err)
	}
}

// A link leads elsewhere once its owner wants it to: the folder's path has none.
func TestFolderPathHasNoLinks(t *testing.T) {
	place := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(place, link); err != nil {
		t.Fatal(err)
	}
	f, err := newFolder([]string{link}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(f.path) != place {
		t.Errorf("folder %s, want one in %s", f.path, place)
	}
	if _, err := f.deleteFolder(); err != nil {
		t.Error(err)
	}
}

// A place is no good if another user could swap the folder in it.
func TestFolderIsOutOfReachOfOthers(t *testing.T) {
	base := t.TempDir()
	for _, c := range []struct {
		mode os.FileMode
		uid  int
		want string
	}{
		{0o755, os.Geteuid(), ""},
		{0o777 | os.ModeSticky, os.Geteuid(), ""},
		{0o777, os.Geteuid(), "others may write there"},
		{0o770, os.Geteuid(), "others may write there"},
		{0o700, 4711, "belongs to another user (4711)"},
	} {
		parent := filepath.Join(base, fmt.Sprintf("%o-%d", c.mode, c.uid))
		place := filepath.Join(parent, "place")
		if err := os.MkdirAll(place, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(parent, c.uid, -1); err != nil {
			continue // only root may
		}
		if err := os.Chmod(parent, c.mode); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{parent, place} {
			if err := checkPlaceIsSafe(path); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", path, err, c.want)
			}
		}
	}
}

func TestFolderOfDeadSessionIsRemoved(t *testing.T) {
	place := t.TempDir()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	gone := "gpumemtop-" + strconv.Itoa(dead.Process.Pid) + "-00"
	locked := "gpumemtop-" + strconv.Itoa(dead.Process.Pid) + "-11" // of a session in another pid namespace
	alive := "gpumemtop-" + strconv.Itoa(os.Getppid()) + "-00"
	old := "gpumemtop-" + strconv.Itoa(os.Getppid()) + "-22" // of a session that had its process id before
	for _, name := range []string{gone, locked, alive, old, "gpumemtop-notes-x", "other"} {
		if err := os.Mkdir(filepath.Join(place, name), 0o700); err != nil {
			t.Fatal(err)
		}
		before := time.Now().Add(-2 * lockedWithin)
		if name != alive && os.Chtimes(filepath.Join(place, name), before, before) != nil {
			t.Fatal(name)
		}
	}
	lock, err := lockOwnFolder(filepath.Join(place, locked))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() //nolint:errcheck // only a lock
	f, err := newFolder([]string{place}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, _ := os.ReadDir(place)
	for _, entry := range entries {
		if entry.Name() != filepath.Base(f.path) {
			left = append(left, entry.Name())
		}
	}
	want := []string{locked, alive, "gpumemtop-notes-x", "other"}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

func TestEnvironment(t *testing.T) {
	shim := "/run/x/" + wire.ShimName
	for name, c := range map[string]struct{ base, want []string }{
		"nothing there": {[]string{"A=1"}, []string{"A=1", "LD_PRELOAD=" + shim, "OPENCL_LAYERS=" + shim, wire.SessionEnv + "=/run/x"}},
		"other libraries": {
			[]string{"LD_PRELOAD=/lib/a.so /lib/b.so", "OPENCL_LAYERS=/a b.so:c.so", "B="},
			[]string{"B=", "LD_PRELOAD=" + shim + ":/lib/a.so:/lib/b.so", "OPENCL_LAYERS=/a b.so:c.so:" + shim, wire.SessionEnv + "=/run/x"},
		},
		"a session around": {
			[]string{"LD_PRELOAD=/lib/a.so:/old/" + wire.ShimName, "OPENCL_LAYERS=/old/" + wire.ShimName + ":c.so", wire.SessionEnv + "=/old"},
			[]string{"LD_PRELOAD=" + shim + ":/lib/a.so", "OPENCL_LAYERS=c.so:" + shim, wire.SessionEnv + "=/run/x"},
		},
	} {
		if got := targetEnvironment(c.base, "/run/x"); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A library with functions of OpenCL that goes on to others is no wrapper if it is a loader.
func TestPreloadKindOf(t *testing.T) {
	for library, want := range map[string]PreloadKind{
		"libOpenCL.so.1": PreloadLoader, "libc.so.6": PreloadOther, "/nonexistent/libx.so": PreloadOther, "libnonexistent.so": PreloadOther,
	} {
		if got := PreloadKindOf(library); got != want {
			t.Errorf("%s: %d, want %d", library, got, want)
		}
	}
}

func TestSanitized(t *testing.T) {
	for _, c := range []struct{ base, want []string }{
		{[]string{"A=1"}, []string{"A=1", "ASAN_OPTIONS=verify_asan_link_order=0"}},
		{[]string{"ASAN_OPTIONS=", "A=1"}, []string{"ASAN_OPTIONS=verify_asan_link_order=0", "A=1"}},
		{[]string{"ASAN_OPTIONS=detect_leaks=0"}, []string{"ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"}},
	} {
		if got := environmentForSanitizer(slices.Clone(c.base)); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.base, got, c.want)
		}
	}
}

// A leak checker that is linked into a program is seen by libraries only if the program exports it.
func TestHidesLeakCheck(t *testing.T) {
	source := filepath.Join(t.TempDir(), "x.c")
	if err := os.WriteFile(source, []byte("__attribute__((weak)) int __lsan_is_turned_off(void);\n"+
		"int main(void) { return __lsan_is_turned_off ? __lsan_is_turned_off() : 0; }\nint __lsan_disable(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		flags []string
		want  bool
	}{"hidden": {nil, true}, "exported": {[]string{"-rdynamic"}, false}, "none": {[]string{"-D__lsan_is_turned_off=other"}, false}} {
		program := filepath.Join(filepath.Dir(source), name)
		if out, err := exec.Command("cc", append(c.flags, "-o", program, source)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := hasOwnLeakChecker(program); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestObstacle(t *testing.T) {
	dir := t.TempDir()
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(shell)
	foreign[18], foreign[19] = 0xf3, 0x42 // e_machine
	narrow := slices.Clone(shell[:52])    // the header of a program of 32 bits, without sections
	copy(narrow[4:], []byte{1, 1, 1})
	clear(narrow[24:])
	narrow[18], narrow[19], narrow[40], narrow[46] = 3, 0, 52, 40 // e_machine, e_ehsize, e_shentsize
	files := map[string][]byte{
		"shell": shell, "foreign": foreign, "narrow": narrow, "script": []byte("#!/bin/sh\n"), "empty": nil,
		"musl":        bytes.Replace(shell, []byte("/lib64/ld-linux-x86-64.so.2"), []byte("/lib/ld-musl-x86_64.so.1\x00\x00\x00"), 1),
		"musl script": []byte("#! " + filepath.Join(dir, "musl") + " -e\n"),
		"circle":      []byte("#!" + filepath.Join(dir, "circle") + "\n"),
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"shell": "", "script": "", "empty": "", "missing": "", "circle": "",
		"musl": "another C library (musl)", "musl script": "another C library (musl)",
		"foreign": "another kind of processor", "narrow": "another kind of processor (32-bit 386)",
	} {
		got := PreloadObstacle(filepath.Join(dir, name))
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if linkerRefuses(filepath.Join(dir, name)) != strings.HasPrefix(want, "another") {
			t.Errorf("%s: wrong about the linker", name)
		}
	}
}
