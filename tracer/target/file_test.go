package target

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeLoader is a loader with more than one page of code, so that no offset is right by accident.
const fakeLoader = `
#define VISIBLE __attribute__((visibility("default")))
static volatile int calls;
VISIBLE int clGetPlatformIDs(void) { return ++calls; }
__attribute__((used)) static void space(void) { __asm__ volatile(".skip 20000, 0x90"); }
VISIBLE int clCreateBuffer(void) { return calls += 2; }
VISIBLE int clCreateContext(void) { return calls += 3; }
VISIBLE int clReleaseMemObject(void) { return calls += 4; }
VISIBLE int clEnqueueTask(void) __attribute__((alias("clReleaseMemObject")));
static int chosen(void) { return 5; }
static int (*choose(void))(void) { return chosen; }
VISIBLE int clFinish(void) __attribute__((ifunc("choose")));
VISIBLE int clFlush;
`

var (
	someCore       = []string{"clCreateBuffer", "clCreateContext", "clReleaseMemObject", "clEnqueueTask", "clFinish", "clFlush"}
	someExtensions = []string{"clCreateBufferWithPropertiesINTEL", "clSetContentSizeBufferPoCL", "clCreateCommandBufferKHR"}
)

func fakeLibrary(t *testing.T) string {
	return build(t, "libfake-1f.so.1", fakeLoader, "-shared", "-fPIC")
}

// sole returns the only library of a process.
func sole(t *testing.T, pid int) (*Process, []Mapping, Library) {
	t.Helper()
	p, maps := opened(t, pid)
	list := NewCatalog(someCore, someExtensions).LibrariesOfProcess(p, maps)
	if len(list) != 1 {
		t.Fatalf("%d libraries: %+v", len(list), list)
	}
	return p, maps, list[0]
}

// checkOffsets compares the offsets of functions with the addresses that the process reports.
func checkOffsets(t *testing.T, s *started, maps []Mapping, l *Library) {
	t.Helper()
	if len(s.addresses) == 0 {
		t.Error("the process reported no addresses")
	}
	for name, address := range s.addresses {
		if got, want := l.Functions[name], offsetOf(t, maps, address); got != want {
			t.Errorf("%s lies at %#x, not %#x", name, want, got)
		}
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		t.Fatal(err)
	}
	return info.Ino
}

func TestFileOfOurOwn(t *testing.T) {
	library := fakeLibrary(t)
	p, maps, l := sole(t, start(t, holder(t), library).Process.Pid)
	if l.Open != library || l.Path != library || p.OpenablePath(library) != library {
		t.Errorf("%s opens as %s", l.Path, l.Open)
	}
	for _, path := range []string{"", "[vdso]", "/not/mapped"} {
		if got := p.OpenablePath(path); got != "" {
			t.Errorf("%q opens as %s", path, got)
		}
	}
	for i := range maps {
		if _, err := p.MappingPath(maps[i]); (err == nil) != isMappingOfFile(&maps[i]) {
			t.Errorf("%+v: %v", maps[i], err)
		}
	}
}

// A process may have ended when its call sites are looked up.
func TestFileOfAProcessThatIsGone(t *testing.T) {
	library := fakeLibrary(t)
	s := start(t, holder(t), library)
	p, _ := opened(t, s.Process.Pid)
	s.stop()
	if got := p.OpenablePath(library); got != library {
		t.Errorf("%s opens as %q", library, got)
	}
	replaced := copyOf(t, library, "other.so")
	if err := os.Rename(replaced, library); err != nil {
		t.Fatal(err)
	}
	if got := p.OpenablePath(library); got != "" {
		t.Errorf("another file opens, as %q", got)
	}
}

func TestDeletedFile(t *testing.T) {
	needRoot(t)
	for _, name := range []string{"libx.so", "an (deleted)", "a line\nmore"} {
		library := copyOf(t, fakeLibrary(t), name)
		want := inode(t, library)
		s := start(t, holder(t), library, "-", "clCreateBuffer")
		if _, _, l := sole(t, s.Process.Pid); l.Open != library {
			t.Errorf("%q opens as %s", library, l.Open)
		}
		if err := os.Remove(library); err != nil {
			t.Fatal(err)
		}
		_, maps, l := sole(t, s.Process.Pid)
		if !strings.Contains(l.Open, "/map_files/") || inode(t, l.Open) != want {
			t.Errorf("%q opens as %s", library, l.Open)
		}
		checkOffsets(t, s, maps, &l)
	}
}

// A package is upgraded while a program runs.
func TestReplacedFile(t *testing.T) {
	needRoot(t)
	library := copyOf(t, fakeLibrary(t), "libOpenCL.so.1")
	want := inode(t, library)
	s := start(t, holder(t), library, "-", "clCreateContext")
	upgrade := build(t, "new", "int moved[9000];"+fakeLoader, "-shared", "-fPIC")
	if err := os.Rename(copyOf(t, upgrade, "new"), library); err != nil {
		t.Fatal(err)
	}
	p, maps, l := sole(t, s.Process.Pid)
	if inode(t, l.Open) != want || inode(t, p.OpenablePath(library)) != want {
		t.Errorf("it opens as %s", l.Open)
	}
	checkOffsets(t, s, maps, &l)
	later := start(t, holder(t), library)
	if _, _, l := sole(t, later.Process.Pid); l.Open != library {
		t.Errorf("the new one opens as %s", l.Open)
	}
}

// The right to inspect a process does not include that to open all files it has mapped.
func TestReplacedFileOfAnOrdinaryUser(t *testing.T) {
	needRoot(t)
	program, library := holder(t), copyOf(t, fakeLibrary(t), "libOpenCL.so.1")
	reachable(t, program, library)
	s := start(t, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, library)
	if said := asNobody(t, s.Process.Pid); said != "false <nil>\n" {
		t.Error(said)
	}
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	if said := asNobody(t, s.Process.Pid); !strings.HasPrefix(said, "true ") || !strings.Contains(said, "CAP_CHECKPOINT_RESTORE") {
		t.Error(said)
	}
}

// reachable makes the folders of a test accessible to all users.
func reachable(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// Without the right to open the mapped file there is none, rather than a wrong one.
func TestReplacedFileWithoutRights(t *testing.T) {
	i := imagine(t)
	dir := i.process(70, statLine(70, "x", "S", 1, 0, 1, 1))
	i.put(dir+"/root/lib/libOpenCL.so.1", "another one")
	i.put(dir+"/maps", "1000-2000 r-xp 00000000 08:01 1 /lib/libOpenCL.so.1 (deleted)\n3000-4000 r-xp 00000000 08:01 2 /lib/libother.so\n")
	p, err := i.root.openProcess(70)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := p.ReadMappings()
	if err != nil {
		t.Fatal(err)
	}
	list := NewCatalog(someCore, nil).LibrariesOfProcess(p, maps)
	if len(list) != 1 || list[0].Path != "/lib/libOpenCL.so.1" || list[0].Err == nil || !strings.Contains(list[0].Err.Error(), "restart the program") {
		t.Errorf("%+v", list)
	}
	i.put(dir+"/stat", statLine(70, "x", "S", 1, 0, 1, 2))
	if _, err := p.MappingPath(maps[0]); !errors.Is(err, ErrGone) {
		t.Errorf("of a process that is another one now: %v", err)
	}
}

// inMountNamespace starts a holder in a new mount namespace, in which a script has mounted something.
func inMountNamespace(t *testing.T, script string, arguments ...string) *started {
	t.Helper()
	needRoot(t)
	command := []string{"unshare", "-m", "sh", "-e", "-c", script + "\n" + `exec "$@"`, "sh", holder(t)}
	return start(t, append(command, arguments...)...)
}

// A path in a container leads to another file than the same path here.
func TestMountNamespace(t *testing.T) {
	here := fakeLibrary(t)
	there := build(t, "libthere.so", "int moved[9000];"+fakeLoader, "-shared", "-fPIC")
	s := inMountNamespace(t, "mount --bind "+there+" "+here, here, "-", "clCreateBuffer")
	p, maps, l := sole(t, s.Process.Pid)
	if p.sameMounts {
		t.Error("it has our mount namespace")
	}
	if l.Path != here || !strings.HasSuffix(l.Open, "/root"+here) || inode(t, l.Open) != inode(t, there) {
		t.Errorf("%s opens as %s", l.Path, l.Open)
	}
	checkOffsets(t, s, maps, &l)
}

// A tmpfs that only the process sees.
func TestPrivateMount(t *testing.T) {
	library := fakeLibrary(t)
	dir := t.TempDir()
	path := dir + "/lib y.so"
	s := inMountNamespace(t, "mount -t tmpfs none "+dir+"; cp "+library+" '"+path+"'", path, "-", "clCreateBuffer")
	_, maps, l := sole(t, s.Process.Pid)
	if l.Path != path || !strings.HasSuffix(l.Open, "/root"+path) {
		t.Errorf("%s opens as %s", l.Path, l.Open)
	}
	checkOffsets(t, s, maps, &l)
}

// Two containers of one image share a file and its breakpoints, though each has its own device.
func TestContainersShareAFile(t *testing.T) {
	library := fakeLibrary(t)
	lower := filepath.Dir(library)
	s := make([]*started, 2)
	found := make([]Library, 2)
	for i := range s {
		dir := t.TempDir()
		script := "mount -t tmpfs none " + dir + "; cd " + dir + "; mkdir up work all\n" +
			"mount -t overlay overlay -o lowerdir=" + lower + ",upperdir=up,workdir=work all"
		s[i] = inMountNamespace(t, script, dir+"/all/libfake-1f.so.1", "-", "clCreateBuffer")
		_, maps, l := sole(t, s[i].Process.Pid)
		if !strings.HasSuffix(l.Open, "/root"+dir+"/all/libfake-1f.so.1") {
			t.Errorf("%s opens as %s", l.Path, l.Open)
		}
		checkOffsets(t, s[i], maps, &l)
		found[i] = l
	}
	if found[0].Device != found[1].Device || found[0].Inode != found[1].Inode || found[0].Open == found[1].Open {
		t.Errorf("one file has two identities: %+v", found)
	}
}

// A file with the mapped inode number on another device is accepted only if its content is the same.
func TestTheSameInodeElsewhere(t *testing.T) {
	library := fakeLibrary(t)
	p, maps := opened(t, start(t, holder(t), library).Process.Pid)
	for i := range maps {
		m := maps[i]
		if m.Path != library || m.Offset != 0 {
			continue
		}
		m.Device++ // as on btrfs and overlayfs
		if info := p.statusIfSame(&m, library); info == nil {
			t.Error("the same content is rejected")
		}
		if p.hasSameContent(&m, build(t, "other", "int x;"+fakeLoader, "-shared", "-fPIC")) {
			t.Error("other content is accepted")
		}
		m.Offset = 4096
		if p.statusIfSame(&m, library) != nil {
			t.Error("another device is accepted without a comparison")
		}
		return
	}
	t.Fatal("the library is not mapped from its beginning")
}
